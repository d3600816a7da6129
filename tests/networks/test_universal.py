"""The Universal Transformer: tensor2tensor's outputs and gradients, halting, and its files."""

import ast

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import checkpoints
from bert_tf.bert.layers import padding_bias
from bert_tf.config import UniversalConfig, config_from_dict
from bert_tf.errors import InputError
from bert_tf.models.universal.layers import Halting, timing_signal
from bert_tf.models.universal.network import UniversalTransformer
from bert_tf.models.universal.objective import PonderTime
from bert_tf.training import Learner
from tests.goldens import part
from tests.rounding import ROUNDED, assert_same, off
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")
CASES = ("basic", "sinusoid", "act", "act_accumulated")
# Ours by tensor2tensor's names, after "encoder/universal_transformer_*/".
NAMES = {
    "layer_embedding": "layer_0/step_embeddings",
    "sigmoid_activation_for_pondering/dense": "layer_0/halting",
    "rec_layer_0/self_attention/layer_prepostprocess/layer_norm": "layer_0/attention/LayerNorm",
    "rec_layer_0/self_attention/multihead_attention/q": "layer_0/attention/self/query",
    "rec_layer_0/self_attention/multihead_attention/k": "layer_0/attention/self/key",
    "rec_layer_0/self_attention/multihead_attention/v": "layer_0/attention/self/value",
    "rec_layer_0/self_attention/multihead_attention/output_transform":
        "layer_0/attention/output/dense",
    "rec_layer_0/ffn/layer_prepostprocess/layer_norm": "layer_0/LayerNorm",
    "rec_layer_0/ffn/conv1": "layer_0/intermediate/dense",
    "rec_layer_0/ffn/conv2": "layer_0/output/dense",
    "layer_prepostprocess/layer_norm": "LayerNorm"}
ENDINGS = {"layer_norm_scale": "gamma", "layer_norm_bias": "beta"}


def our_name(name):
    """Our name of a tensor2tensor variable."""
    parts = [part for part in name.split("/") if part != "encoder"
             and not part.startswith("universal_transformer")]
    if "/".join(parts) in NAMES:
        return f"encoder/{NAMES['/'.join(parts)]}"
    return f"encoder/{NAMES['/'.join(parts[:-1])]}/{ENDINGS.get(parts[-1], parts[-1])}"


def sizes_of(hparams):
    """The configuration that tensor2tensor's settings describe."""
    same = ("recurrence_type", "step_timing_signal_type", "act_type", "act_epsilon",
            "act_loss_weight", "act_max_steps")
    return UniversalConfig(
        vocab_size=9, hidden_size=hparams["hidden_size"],
        num_hidden_layers=hparams["num_rec_steps"],
        num_attention_heads=hparams["num_heads"], intermediate_size=hparams["filter_size"],
        max_position_embeddings=32, layer_norm_eps=hparams["norm_epsilon"],
        **{name: hparams[name] for name in same})


def small(**overrides):
    """A configuration of two steps."""
    return UniversalConfig(**{
        "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 12, "max_position_embeddings": 16, **overrides})


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_the_originals(case, test_data):
    golden = np.load(test_data / "golden" / "universal" / f"{case}_seed1.npz")
    config = sizes_of(ast.literal_eval(str(golden["hparams"])))
    network = UniversalTransformer(config)
    variables = {v.path.removeprefix("bert/"): v for v in network.weights}
    theirs = {our_name(name): value for name, value in part(golden, "weight/").items()}
    assert set(theirs) == {name for name in variables if name.startswith("encoder/")}
    for name, value in theirs.items():
        variables[name].assign(value.reshape(variables[name].shape))
    real = golden["nonpadding"]
    with tf.GradientTape() as tape:
        outputs = network.take_steps(tf.constant(golden["input"]),
                                     padding_bias(tf.constant(real, tf.int32), -1e9))
        result = outputs["layer_outputs"][-1]
        loss = tf.reduce_sum(result * golden["target"] * real[..., None])
        if config.halts:
            cost = config.act_loss_weight * tf.reduce_mean(
                outputs["ponder_times"] + outputs["remainders"])
            loss += 10 * cost
    assert off(result, golden["output"]) < ROUNDED
    if config.halts:
        np.testing.assert_array_equal(outputs["ponder_times"], golden["ponder_times"])
        assert off(outputs["remainders"], golden["remainders"]) < ROUNDED
        assert float(cost) == pytest.approx(float(golden["act_loss"]), rel=ROUNDED)
    gradients = tape.gradient(loss, [variables[name].value for name in theirs])
    by_name = dict(zip(theirs, gradients))
    for name in golden.files:
        if name.startswith("grad/"):
            found = by_name[our_name(name.removeprefix("grad/"))].numpy()
            assert off(found.reshape(golden[name].shape), golden[name]) < ROUNDED, name


def slow_halting(probabilities, epsilon):
    """One position after the other: weights of the steps, their number, and the remainder."""
    total, weights = 0.0, []
    for p in probabilities:
        if total + p > 1 - epsilon:
            return weights + [1 - total], len(weights) + 1, 1 - total
        total += p
        weights.append(p)
    return weights, len(weights), 0.0


@pytest.mark.parametrize("seed", range(3))
def test_halting_is_that_of_each_position(seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0, 0.5, (6, 4, 5)).astype("float32")                # steps, B, S
    p[:, 0, 0] = 0.01                                                   # never ends
    halting = Halting(small(recurrence_type="act"), tf.zeros([4, 5, 8]))
    weights = np.stack([halting.take_step(tf.constant(step)) for step in p])
    for b, s in np.ndindex(4, 5):
        wanted, count, remainder = slow_halting(p[:, b, s].astype("float64"), 0.01)
        wanted = np.pad(wanted, (0, len(p) - len(wanted)))
        np.testing.assert_allclose(weights[:, b, s], wanted, rtol=1e-6, atol=1e-6)
        assert float(halting.ponder_times[b, s]) == count
        assert float(halting.remainders[b, s]) == pytest.approx(remainder, rel=1e-6, abs=1e-6)


def test_rows_that_fill_up_a_batch_do_not_ponder():
    config = small(recurrence_type="act")
    learner = Learner(UniversalTransformer(config), [PonderTime(config)])
    ids = np.random.default_rng(0).integers(1, 30, (2, 9))
    wanted = learner.measure({"input_ids": ids})["ponder_time"]["loss"]
    filled = {"input_ids": np.pad(ids, ((0, 1), (0, 0))), "is_real_example": np.array([1., 1, 0])}
    found = learner.measure(filled)["ponder_time"]["loss"]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert float(learner.counts(filled)["ponder_time"]) == ids.size == float(found[1])


def test_signals_are_sines_then_cosines():
    signal = timing_signal(40, 7)
    for position in (0, 3, 39):
        angles = [position / 10_000**(i / 2) for i in range(3)]
        np.testing.assert_allclose(
            signal[position], [*np.sin(angles), *np.cos(angles), 0], rtol=1e-5, atol=1e-5)


def test_padding_and_other_rows_have_no_influence():
    network = UniversalTransformer(small(recurrence_type="act"))
    ids = np.random.default_rng(0).integers(1, 30, (3, 9))
    long = {"input_ids": np.pad(ids, ((0, 0), (0, 4))),
            "input_mask": np.pad(np.ones_like(ids), ((0, 0), (0, 4)))}
    whole = network(long, return_attention=True)
    alone = network({"input_ids": ids[1:2]})
    np.testing.assert_allclose(whole["sequence_output"][1:2, :9], alone["sequence_output"],
                               rtol=1e-5, atol=1e-5)
    assert len(whole["attention_probs"]) == len(whole["layer_outputs"]) == network.config.depth == 4
    with pytest.raises(ValueError, match="17 tokens long.*16"):
        network({"input_ids": np.ones((1, 17), int)})


def test_dropout_is_a_function_of_the_seed():
    network = UniversalTransformer(small())
    ids = {"input_ids": np.ones((2, 5), int)}
    one, same, other = (network(ids, training=True, dropout_seed=seed)["sequence_output"].numpy()
                        for seed in ([1, 2], [1, 2], [1, 3]))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_files_hold_every_weight(tmp_path):
    config = small(recurrence_type="act")
    learner = Learner(UniversalTransformer(config), [
        bert_tf.MaskedLM(config), bert_tf.Classification(config, 3), PonderTime(config)])
    for number, variable in enumerate(learner.weights):
        if variable.trainable:
            variable.assign(keras.random.normal(variable.shape, seed=number))
    learner.save(tmp_path / "model.keras")
    assert checkpoints.read_config(tmp_path / "model.keras") == config
    again = keras.models.load_model(tmp_path / "model.keras")
    fresh = Learner(UniversalTransformer(config), [bert_tf.MaskedLM(config),
                                                   bert_tf.Classification(config, 3)])
    account = checkpoints.load(tmp_path / "model.keras", fresh)
    assert not account.missing and len(account.mapped) == len(
        [v for v in learner.weights if v.trainable])
    for one, two, three in zip(learner.trainable_variables, again.trainable_variables,
                               fresh.trainable_variables, strict=True):
        assert np.array_equal(one, two) and np.array_equal(one, three)
    checkpoints.convert(str(tmp_path / "model.keras"), str(tmp_path / "out"), "keras")
    assert_same(*(tiny.weights_at(tmp_path / name) for name in ("out", "model.keras")))
    for form in ("google", "huggingface", "model_garden", "keras_hub"):
        with pytest.raises(InputError, match="universal"):
            checkpoints.convert(str(tmp_path / "model.keras"), str(tmp_path / form), form)
    with pytest.raises(InputError, match="num_hidden_layers is 2, but the model has 3"):
        checkpoints.load(tmp_path / "model.keras", UniversalTransformer(
            small(recurrence_type="act", num_hidden_layers=3)))


@pytest.mark.parametrize("values, message", [
    ({"recurrence_type": "gru"}, "recurrence_type must be one of basic, act"),
    ({"act_type": "global"}, "act_type must be one of basic, accumulated"),
    ({"num_attention_heads": 3}, "num_attention_heads .3. must divide"),
    ({"act_epsilon": 1}, "act_epsilon must be a number of at least 0"),
    ({"act_max_steps": 0}, "act_max_steps"), ({"num_hidden_groups": 1}, "num_hidden_groups")])
def test_refusals_name_the_key(values, message):
    with pytest.raises(InputError, match=message):
        config_from_dict({**small().to_dict(), **values})


def test_a_file_is_known_by_its_keys():
    values = small(recurrence_type="act").to_dict()
    del values["model_type"]
    assert config_from_dict(values) == small(recurrence_type="act")
