"""Heads of T5 and XLNet: masks of all kinds of attention, importance, and chance."""

import itertools

import keras
import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from bert_tf import analysis, compression
from bert_tf.config import T5Config, XLNetConfig
from bert_tf.errors import InputError
from bert_tf.models.t5.network import T5
from bert_tf.models.t5.objective import SequenceLM
from bert_tf.networks import attentions, build
from bert_tf.training.learners.learner import Learner

pytestmark = pytest.mark.usefixtures("eagerly")
CONFIG = T5Config(vocab_size=20, d_model=8, d_kv=3, d_ff=12, num_layers=2, num_decoder_layers=3,
                  num_heads=2, initializer_factor=2.0, feed_forward_proj="gated-gelu")
NAMES = [f"{kind} {number}" for kind, layers in (("encoder", 2), ("cross", 3), ("decoder", 3))
         for number in range(1, layers + 1)]


def make_batch(seed=0):
    """Three pairs of other lengths, with padding."""
    rng = np.random.default_rng(seed)
    inputs, targets = rng.integers(2, 20, (3, 7)), rng.integers(2, 20, (3, 5))
    inputs[1, 4:] = targets[2, 3:] = 0
    return {"encoder_input_tokens": inputs.astype("int32"),
            "decoder_input_tokens": np.pad(targets, ((0, 0), (1, 0)))[:, :-1].astype("int32"),
            "decoder_target_tokens": targets.astype("int32")}


@pytest.fixture(name="whole", scope="module")
def fixture_whole():
    network = T5(CONFIG)
    assert list(attentions(network)) == NAMES
    return network, np.array(network(make_batch())["sequence_output"])


@pytest.mark.parametrize("name", ["encoder 2", "cross 1", "decoder 2"])
def test_a_mask_equals_rows_of_zeros_in_the_output_projection(name, whole):
    (network, whole), batch = whole, make_batch()
    number, mask = NAMES.index(name), np.ones((len(NAMES), 2), "float32")
    mask[number, 1] = 0
    masked = np.array(network(batch, head_mask=mask)["sequence_output"])
    assert np.abs(masked - whole).max() > 1e-3
    with analysis.disabled(network, [(number, 1)], "zero"):
        off = np.array(network(batch)["sequence_output"])
        written = np.array(network.generate(batch["encoder_input_tokens"], 3))
    kernel = attentions(network)[name].output_.kernel
    values = kernel.numpy()
    kernel.assign(values * (np.arange(6) < 3)[:, None])
    cut = np.array(network(batch)["sequence_output"])
    also = np.array(network.generate(batch["encoder_input_tokens"], 3))
    kernel.assign(values)
    np.testing.assert_allclose(masked, cut, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(off, cut, rtol=1e-6, atol=1e-6)
    assert np.array_equal(written, also)


@pytest.mark.parametrize("architecture", ["language_model", "prefix_lm"])
def test_a_decoder_alone_has_one_kind(architecture):
    config = T5Config(vocab_size=20, d_model=8, d_kv=3, d_ff=12, num_layers=2, num_heads=2,
                      architecture=architecture)
    network, batch = T5(config), make_batch()
    assert list(attentions(network)) == ["decoder 1", "decoder 2"]
    masked = np.array(network(batch, head_mask=np.eye(2))["sequence_output"])
    with analysis.disabled(network, [(0, 1), (1, 0)], "zero"):
        np.testing.assert_allclose(masked, np.array(network(batch)["sequence_output"]),
                                   rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("maps", ["decoder", "cross"])
def test_maps_of_the_decoder_are_read_without_padding(maps, whole):
    """Each pair alone gives the maps that it has in a batch."""
    network, batch = whole[0], make_batch()
    del batch["decoder_target_tokens"]
    found = list(analysis.read_decoder(network, [batch], maps))
    assert len(found) == 3
    for row, reading in enumerate(found):
        source, target = (ids[row][ids[row] > 0] for ids in batch.values())
        target = np.append(0, target)
        alone = {"encoder_input_tokens": source[None], "decoder_input_tokens": target[None]}
        outputs = network(alone, return_attention=True)
        expected = outputs[{"decoder": "attention_probs", "cross": "cross_attention_probs"}[maps]]
        np.testing.assert_allclose(reading.attention, np.array(expected)[:, 0], rtol=1e-4,
                                   atol=1e-6)
        np.testing.assert_allclose(reading.attention.sum(-1), 1, rtol=1e-6, atol=1e-6)
        assert reading.input_ids.tolist() == (target if maps == "decoder" else source).tolist()
        if maps == "decoder":       # no token sees a later one
            assert not np.triu(reading.attention, 1).any() and reading.from_ids is None
        else:
            assert reading.from_ids.tolist() == target.tolist()


def test_importance_is_the_derivative_of_each_examples_loss():
    """Against the quotient of differences, example by example."""
    keras.utils.set_random_seed(3)
    learner, batch, step = Learner(T5(CONFIG), [SequenceLM(CONFIG)]), make_batch(), 2e-3
    tf.config.run_functions_eagerly(False)
    measure = tf.function(lambda batch: learner.measure(batch)["sequence_lm"]["loss"][0])

    def loss(row, number, head, factor):
        mask = np.ones((len(NAMES), 2), "float32")
        mask[number, head] = factor
        one = {name: tf.constant(values[row:row + 1]) for name, values in batch.items()}
        return float(measure({**one, "head_mask": list(map(tf.constant, mask))}))

    found = compression.importance(learner, [batch])
    assert [scores.shape for scores in found] == [(2,)] * len(NAMES)
    for number, head in itertools.product(range(len(NAMES)), range(2)):
        wanted = np.mean([abs(loss(row, number, head, 1 + step) - loss(row, number, head, 1 - step))
                          for row in range(3)]) / (2 * step)
        assert found[number][head] == pytest.approx(wanted, rel=0.02, abs=2e-3)


def test_heads_of_xlnet():
    network = build(XLNetConfig(vocab_size=20, d_model=8, d_inner=12, n_layer=2, n_head=2,
                                d_head=4))
    batch = {"input_ids": make_batch()["encoder_input_tokens"]}
    mask = np.array([[1, 0], [1, 1]], "float32")
    masked = np.array(network(batch, head_mask=mask)["sequence_output"])
    assert np.abs(masked - np.array(network(batch)["sequence_output"])).max() > 1e-4
    with analysis.disabled(network, [(0, 1)], "zero"):
        np.testing.assert_allclose(masked, np.array(network(batch)["sequence_output"]),
                                   rtol=1e-6, atol=1e-6)


def test_what_cannot_be_switched_off():
    for place, form, part in (((0, 0), "uniform", "in the form zero"),
                              ((8, 0), "zero", "layer 9 has no head 1"),
                              ((0, 2), "zero", "layer 1 has no head 3")):
        with pytest.raises(InputError, match=part):
            analysis.switch_off(T5(CONFIG), [place], form)


def test_chance_of_translations():
    """The difference of two corpora's BLEU: exchanged at random, and with all exchanges."""
    wanted = ["ein Hund schläft hier.", "zwei Hunde schlafen heute nicht.", "das ist klein, oder?"]
    texts = [["ein Hund schläft hier.", "zwei Hunde schlafen heute.", "das ist klein"],
             ["ein Hund ist hier.", "zwei schlafen heute nicht.", "das ist groß, oder?"]]

    def bleu(found):
        return sacrebleu.corpus_bleu(found, [wanted], tokenize="intl").score

    def difference(places):
        return bleu([texts[one][i] for i, one in enumerate(places)]) - bleu(
            [texts[1 - one][i] for i, one in enumerate(places)])

    every = np.array([difference(places) for places in itertools.product((0, 1), repeat=3)])
    seen = difference((0, 0, 0))
    sides = [np.mean(every >= seen - 1e-9), np.mean(every <= seen + 1e-9)]
    assert analysis.p_value(wanted, *texts, "bleu") == pytest.approx(min(1, 2 * min(sides)))
    assert analysis.p_value(wanted, texts[0], texts[0], "bleu") == 1
    assert analysis.p_value(*(side[:1] for side in (wanted, *texts)), "bleu") == 1
    assert analysis.p_value([1.0], [2.0], [3.0], "pearson") == 1
