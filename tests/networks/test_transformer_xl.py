"""Transformer-XL: rows of text in segments, with a memory that covers them, are the whole text."""

import math

import numpy as np
import pytest

from bert_tf.checkpoints.conversion import convert
from bert_tf.config import XLNetConfig
from bert_tf.data.text.corpus import Documents
from bert_tf.errors import InputError
from bert_tf.models.recurrent.instances import stream_rows
from bert_tf.models.xlnet.network import XLNet
from bert_tf.models.xlnet.objective import StreamLM
from bert_tf.training.learners.learner import Learner
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")
ROWS, COUNT = 2, 21


def config(**values):
    return XLNetConfig(**{
        "vocab_size": 30, "d_model": 8, "n_layer": 2, "n_head": 2, "d_head": 4, "d_inner": 16,
        "directionality": "left_to_right", "use_summ_proj": False, "untie_r": False,
        "initializer_range": 0.5, **values})


@pytest.fixture(name="weights")
def fixture_weights():
    sizes = config()
    learner = Learner(XLNet(sizes), [StreamLM(sizes)])
    learner.objectives[0].output_bias.assign(np.linspace(-1, 1, 30))
    return learner.get_weights()


def records(steps):
    """Records of 3 documents of 20 tokens, most of which continue a word."""
    rng = np.random.default_rng(0)
    return stream_rows(Documents(
        tokens=rng.integers(5, 30, 20).astype(np.int32), sentence_starts=[0, 5, 9, 20],
        ranges=[(0, 1), (1, 2), (2, 3)], continues=rng.integers(0, 2, 20).astype(np.uint8)),
        3, ROWS, steps)


def run(weights, steps, **values):
    """The sum of all losses, the number of words, and the losses [ROWS, batches * steps]."""
    sizes = config(**values)
    learner, carried = Learner(XLNet(sizes), [StreamLM(sizes)]), {}
    learner.set_weights(weights)
    objective, total, words, losses = learner.objectives[0], 0.0, 0.0, []
    if sizes.mem_len:
        carried = {"carried": {name: np.full((ROWS, *shape), 1.0, np.float32)   # to be forgotten
                               for name, shape in learner.carries.items()}}
    found = records(steps)
    for start in range(0, len(found["input_ids"]), ROWS):
        batch = {name: values[start:start + ROWS] for name, values in found.items()}
        logits = learner({**batch, **carried})
        carried = {"carried": logits["carried"]} if carried else {}
        measured = objective.measure(logits[objective.name], *objective.targets(batch))
        total += float(measured["total_loss"])
        words += float(measured["words"])
        losses.append(np.array(logits[objective.name])[..., 0] * batch["next_token_weights"])
    return total, words, np.concatenate(losses, axis=1)


def test_segments_with_memory_equal_the_whole_text(weights):
    steps = 4       # the last segment is shorter
    wanted, words, losses = run(weights, COUNT)
    total, same, found = run(weights, steps, mem_len=COUNT)
    assert total == pytest.approx(wanted, abs=1e-4) and same == words
    length = min(found.shape[1], losses.shape[1])
    np.testing.assert_allclose(found[:, :length], losses[:, :length], rtol=1e-5, atol=1e-5)
    assert abs(run(weights, steps, mem_len=2)[0] - wanted) > 1e-3
    assert abs(run(weights, steps)[0] - wanted) > 1e-3


def test_a_token_sees_nothing_on_its_right():
    network = XLNet(config())
    ids = records(20)["input_ids"][:1]
    before = np.array(network({"input_ids": ids})["sequence_output"])
    changed = ids.copy()
    changed[0, 12] = 29 - changed[0, 12]
    after = np.array(network({"input_ids": changed})["sequence_output"])
    moved = np.abs(after - before).max(-1)[0]
    assert moved[:12].max() == 0 and moved[12:].min() > 1e-4


def test_perplexity_of_words_divides_the_sum_of_the_losses_by_the_words(weights):
    total, words, losses = run(weights, 7, mem_len=16)
    objective = StreamLM(config())
    assert objective.summarize({"total_loss": total, "words": words}) == {
        "word_perplexity": pytest.approx(math.exp(losses.sum() / words))}
    assert not objective.summarize({"total_loss": 1.0, "words": 0.0})


def test_it_is_for_networks_from_left_to_right():
    assert StreamLM.fits(config()) and not StreamLM.fits(config(directionality="bidi"))
    assert not StreamLM.fits(tiny.config())
    with pytest.raises(InputError, match="directionality must be one of bidi, left_to_right"):
        config(directionality="right_to_left")


@pytest.mark.parametrize("form", ["google", "huggingface"])
def test_formats_of_xlnet_refuse_it(tmp_path, form):
    sizes = config(d_head=4)
    Learner(XLNet(sizes), [StreamLM(sizes)]).save(tmp_path / "model.keras")
    with pytest.raises(InputError, match="directionality is left_to_right"):
        convert(tmp_path / "model.keras", tmp_path / "out", form)
