"""T5 computes what tensorflow/mesh computes with the same weights."""

import itertools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.weights import variables
from bert_tf.config import T5Config
from bert_tf.models.t5.layers import buckets
from bert_tf.models.t5.network import T5
from bert_tf.models.t5.objective import SequenceLM
from bert_tf.training.learners.learner import Learner
from tests.goldens import at_hand
from tests.original_t5 import config_of, our_weights
from tests.rounding import ROUNDED, off

pytestmark = pytest.mark.usefixtures("eagerly")
TINY = T5Config(vocab_size=20, d_model=8, d_kv=3, d_ff=12, num_layers=2, num_heads=2)


@pytest.fixture(name="load", scope="module")
def fixture_load(test_data):
    def load(name, dtype="float32", **options):
        golden = np.load(test_data / "golden" / "t5" / f"{name}_seed1.npz")
        config = config_of(json.loads(str(golden["config"])), **options)
        learner = Learner(T5(config, dtype=dtype), [SequenceLM(config, dtype=dtype)])
        learner.epsilon, wanted = 0.0, our_weights(golden)
        for path, variable in variables(learner).items():
            variable.assign(wanted.pop(path))
        assert not wanted
        return golden, learner
    return load


@pytest.fixture(name="in_float64")
def fixture_in_float64(monkeypatch):
    """Computes in float64 what a network or a loss asks for in float32, whose rounding changes some
    gradients by 5e-5."""
    def widened(function):
        def wide(value):
            return "float64" if isinstance(value, str) and value == "float32" else value
        return lambda *args, **options: function(
            *map(wide, args), **{name: wide(value) for name, value in options.items()})

    for name in ("cast", "zeros", "zeros_like", "ones", "ones_like", "one_hot"):
        monkeypatch.setattr(keras.ops, name, widened(getattr(keras.ops, name)))
    floatx = keras.config.floatx()
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx(floatx)


def batch_of(golden):
    targets = golden["targets"].astype("int32")
    shifted = np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
    batch = {"encoder_input_tokens": golden["inputs"], "decoder_input_tokens": shifted,
             "decoder_target_tokens": targets}
    if "weights/shared/embedding" not in golden.files:      # its inputs are the decoder's
        del batch["encoder_input_tokens"]
    if "targets_segmentation" in golden.files:
        batch |= {"decoder_input_tokens": np.where(golden["targets_position"] == 0, 0, shifted),
                  "encoder_segment_ids": golden["inputs_segmentation"],
                  "decoder_segment_ids": golden["targets_segmentation"]}
    return {name: tf.constant(value, tf.int32) for name, value in batch.items()}


def check(learner, batch, golden, prefix=""):
    logits = learner.encoder.logits(learner.encoder(batch)["sequence_output"])
    is_token = golden["targets"] > 0
    assert off(np.array(logits)[is_token], golden[f"{prefix}logits"][is_token]) < ROUNDED
    loss = learner.total_loss(learner.measure(batch))
    assert abs(float(loss) - float(golden[f"{prefix}loss"])) < 2e-6


@pytest.mark.parametrize("version", at_hand("golden/t5/{}_seed1.npz", ("t5_v1_0", "t5_v1_1")))
def test_layers_and_losses_are_the_originals(version, load):
    golden, learner = load(version)
    batch, network = batch_of(golden), learner.encoder
    check(learner, batch, golden, "eval/")
    encoded = network.encode(batch["encoder_input_tokens"])
    decoded = network.decode(batch["decoder_input_tokens"], encoded)
    for name, found, tokens in (("encoder", encoded, golden["inputs"]),
                                ("decoder", decoded, golden["targets"])):
        parts = [found["embeddings"], *(layer[part] for layer in found["layers"] for part in (
            "attention", "cross_attention", "feed_forward") if part in layer)]
        for number, part in enumerate([*parts[:-1], found["output"]]):
            wanted = golden[f"eval/{name}_layer/{number}"]
            assert off(np.array(part)[tokens != 0], wanted[tokens != 0]) < ROUNDED, (name, number)
    assert not np.array(encoded["output"])[golden["inputs"] == 0].any()


@pytest.mark.parametrize("version", at_hand("golden/t5/{}_seed1.npz", ("t5_v1_0", "t5_v1_1")))
def test_gradients_are_the_originals_and_the_slopes_of_the_loss(version, load, in_float64):
    golden, learner = load(version, "float64")
    batch, named = batch_of(golden), variables(learner)

    tf.config.run_functions_eagerly(False)      # a graph, since the loss is measured very often

    @tf.function
    def measure():
        # There is no dropout, but the term of the softmax's denominators.
        return learner.total_loss(learner.measure(batch, True, tf.constant([1, 2])))

    with tf.GradientTape() as tape:
        loss = measure()
    assert loss.dtype == tf.float64 and abs(float(loss) - float(golden["train/loss"])) < 2e-6
    grads = tape.gradient(loss, [variable.value for variable in named.values()])
    wanted, rng = our_weights(golden, "grad/"), np.random.default_rng(1)
    for (name, variable), grad in zip(named.items(), grads):
        grad = np.array(tf.convert_to_tensor(grad))
        if name in wanted:      # rounded in the original alone
            assert off(grad, wanted[name]) < 2 * ROUNDED, name
        way, at = rng.standard_normal(variable.shape), np.array(variable)
        ends = []
        for step in (1e-8, -1e-8):
            variable.assign(at + step * way)
            ends.append(float(measure()))
        variable.assign(at)
        slope, ours = (ends[0] - ends[1]) / 2e-8, float((grad * way).sum())
        assert abs(slope - ours) < 5e-6 * max(1, abs(ours)), name


def test_examples_of_a_packed_row_do_not_see_each_other(load):
    golden, learner = load("t5_packed")
    batch = batch_of(golden)
    check(learner, batch, golden)
    before = np.array(learner.encoder(batch)["sequence_output"])
    first = golden["inputs_segmentation"] == 1
    changed = {**batch, "encoder_input_tokens": np.where(first, 7, golden["inputs"])}
    after = np.array(learner.encoder(changed)["sequence_output"])
    others = golden["targets_segmentation"] > 1
    assert np.array_equal(before[others], after[others])
    assert np.abs(before - after)[golden["targets_segmentation"] == 1].max() > 0.1


def test_language_models_are_the_originals(load):
    golden, learner = load("t5_lm", architecture="language_model")
    check(learner, batch_of(golden), golden)
    golden, learner = load("t5_prefix_lm", architecture="prefix_lm")
    targets = golden["targets"]
    ends = np.cumsum(targets == 1, axis=1) - (targets == 1)     # before each position
    # The original's unpacked rows show padding to all tokens; the last input is read at the place
    # that predicts the first target.
    seen = (ends % 2 == 0) | np.pad(ends % 2 == 0, ((0, 0), (1, 0)))[:, :-1]
    batch = {**batch_of(golden), "decoder_causal_attention": tf.constant(seen, tf.int32),
             "decoder_loss_weights": tf.constant((ends > 0) & (targets > 0), tf.int32)}
    check(learner, batch, golden)


@pytest.mark.parametrize("version, beams", at_hand("golden/t5/{}_seed1.npz", [
    ("t5_v1_0", 4), ("t5_v1_1", 1), ("t5_v1_1", 4)]))
def test_sequences_are_those_that_the_original_makes(version, beams, load):
    golden, learner = load(version)
    wanted = golden[f"decode_beam{beams}"]
    ended = np.cumsum(wanted == 1, axis=1) - (wanted == 1) > 0
    found = learner.encoder.generate(tf.constant(golden["inputs"], tf.int32), 12, beams)
    assert np.array_equal(found, np.where(ended, 0, wanted))


@pytest.mark.parametrize("alpha", (0.6, 1.5))
def test_beams_as_wide_as_there_are_beginnings_find_the_best_sequence(alpha):
    keras.utils.set_random_seed(3)
    config = T5Config(vocab_size=4, d_model=8, d_kv=3, d_ff=12, num_layers=1, num_heads=2)
    network, length = T5(config), 3
    all_ids = np.array(list(itertools.product(range(4), repeat=length)), "int32")
    tokens = np.array([[2, 1, 2]], "int32")
    log = np.array(keras.ops.log_softmax(network.logits(network({
        "encoder_input_tokens": np.repeat(tokens, len(all_ids), 0),
        "decoder_input_tokens": np.pad(all_ids, ((0, 0), (1, 0)))[:, :-1]})["sequence_output"])))
    scores = {}
    for row, ids in zip(log, all_ids.tolist()):
        if 1 in ids:
            count = ids.index(1) + 1
            total = sum(row[i, token] for i, token in enumerate(ids[:count]))
            scores[*ids[:count]] = total / ((5 + count) / 6)**alpha
    best = max(scores, key=scores.get)
    found = np.array(network.generate(tokens, length, 16, alpha))[0]
    assert found.tolist() == [*best, *[0] * (length - len(best))]


def test_buckets_of_relative_positions(test_data):
    golden = np.load(test_data / "golden" / "t5" / "relative_position_buckets.npz")
    for name in set(golden.files) - {"relative_position"}:
        side, count, most = name.split("_")
        places = np.clip(golden["relative_position"], -int(most), int(most)) + int(most)
        found = buckets(int(count), int(most), side == "both")
        assert np.array_equal(found[places], golden[name]), name


def test_dropout_has_one_mask_for_all_positions():
    keras.utils.set_random_seed(1)
    batch = {"encoder_input_tokens": np.ones((9, 5), "int32"),
             "decoder_input_tokens": np.ones((9, 4), "int32")}
    outputs = T5(TINY)(batch, training=True, dropout_seed=np.array([1, 2]))
    dropped = np.array(outputs["sequence_output"]) == 0
    assert dropped.any() and (dropped == dropped[:, :1]).all()
    assert (dropped != dropped[:1]).any()


def test_float16_does_not_overflow_where_released_models_do():
    """Sums beyond 65,504 in a feed-forward network, as in huggingface/transformers, #4586."""
    network = T5(TINY, dtype="mixed_float16")
    for path, variable in variables(network).items():
        if "/wo/" in path:
            variable.assign(variable + 1e5)
    batch = {"encoder_input_tokens": np.ones((1, 4), "int32"),
             "decoder_input_tokens": np.zeros((1, 3), "int32")}
    outputs = network(batch)["sequence_output"]
    assert outputs.dtype == "float16" and np.isfinite(np.array(outputs)).all()


@pytest.mark.parametrize("architecture", ("language_model", "prefix_lm"))
def test_a_language_model_goes_on_from_its_inputs(architecture):
    """In rows of any length, and token by token as all at once."""
    keras.utils.set_random_seed(2)
    network = T5(T5Config.from_dict({**TINY.to_dict(), "architecture": architecture}))
    tokens = np.array([[5, 6, 7, 8, 1], [9, 1, 0, 0, 0]], "int32")
    found = np.array(network.generate(tokens, 4))
    for row, ids in zip(tokens, found):
        prompt = [0, *row[row > 0]]
        for number in range(len(ids)):
            line = np.array([[*prompt, *ids[:number]]], "int32")
            seen = (np.arange(line.shape[1]) < len(prompt)).astype("int32")[None]
            outputs = network({"decoder_input_tokens": line, "decoder_causal_attention": seen})
            logits = np.array(network.logits(outputs["sequence_output"]))[0, -1]
            assert ids[number] == logits.argmax()
            if ids[number] == 1:
                break
    targets = np.pad(found, ((0, 0), (1, 0)))[:, :-1]
    batch = {"encoder_input_tokens": tokens, "decoder_input_tokens": targets}
    together = np.array(network(batch)["sequence_output"])
    assert together.shape == (2, 4, 8) and np.allclose(together[0, :1 + number], np.array(
        network({name: rows[:1] for name, rows in batch.items()})["sequence_output"])[
            0, :1 + number], atol=1e-5)
    alone = network({"encoder_input_tokens": tokens[1:, :2], "decoder_input_tokens": targets[1:]})
    assert np.allclose(together[1:], alone["sequence_output"], atol=1e-5)
    wanted = np.array(network.logits(together)).argmax(-1)
    is_token = np.cumsum(found == 1, axis=1) - (found == 1) == 0
    assert np.array_equal(wanted[is_token], found[is_token])
