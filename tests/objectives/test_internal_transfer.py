"""Aguilar et al.'s transfer of layers, beside the paper's equations in float64 with gradients
derived by hand."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.models.tinybert.objective import AttentionTransfer
from bert_tf.objectives.internal_transfer import InternalAttention, InternalCosine
from bert_tf.objectives.taught import of_teacher
from tests.training import tiny

B, S, N, H, LAYERS, EVERY = 3, 5, 2, 4, 3, 2
LENGTHS = (5, 3, 1)
MASK = np.array([[1] * length + [0] * (S - length) for length in LENGTHS])


def softmax(x):
    odds = np.exp(x - x.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def attention(ours, theirs):
    """The mean over examples of one layer's divergence, and its gradient by our scores."""
    total, slope = 0.0, np.zeros_like(ours)
    for b, length in enumerate(LENGTHS):
        for head in range(N):
            for row in range(length):
                p, q = softmax(theirs[b, head, row]), softmax(ours[b, head, row])
                seen = p > 0
                total += (p[seen] * np.log(p[seen] / q[seen])).sum() / (N * length * B)
                slope[b, head, row] = (q - p) / (N * length * B)
    return total, slope


def cosine(ours, theirs):
    """The same of the vectors of [CLS]."""
    total, slope = 0.0, np.zeros_like(ours)
    for b in range(B):
        s, t = ours[b, 0], theirs[b, 0]
        lengths = np.linalg.norm(s) * np.linalg.norm(t)
        found = s @ t / lengths
        total += (1 - found) / B
        slope[b, 0] = (found * s / (s @ s) - t / lengths) / B
    return total, slope


def tensors(shape, hides):
    rng = np.random.default_rng(0)
    ours, theirs = (rng.normal(size=(count, *shape)) for count in (LAYERS, LAYERS * EVERY))
    if hides:
        ours, theirs = (x - 10000.0 * (1 - MASK[:, None, None]) for x in (ours, theirs))
    return ours.astype(np.float32), theirs.astype(np.float32)


CASES = [(InternalAttention, attention, (B, N, S, S)), (InternalCosine, cosine, (B, S, H))]


@pytest.mark.parametrize("make, slow, shape", CASES)
@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("step, begun", [(None, None), (0, 0), (9, 0), (10, 1), (29, 2), (99, 2)])
def test_losses_and_gradients_are_those_of_the_equations(make, slow, shape, stacked, step, begun):
    ours, theirs = tensors(shape, make is InternalAttention)
    objective = make(tiny.config(), phase_steps=10, stacked=stacked)
    (name,) = objective.internals
    batch = {"input_ids": np.ones((B, S), np.int32), "input_mask": MASK.astype(np.int32),
             of_teacher(name): list(theirs)}
    if step is not None:
        batch["step"] = tf.constant(step, tf.int64)
    with tf.GradientTape() as tape:
        given = [tf.constant(x) for x in ours]
        tape.watch(given)
        loss, count = objective.measure(objective({name: given}, batch),
                                        *objective.targets(batch))["loss"]
        loss = loss / count
    chosen = {layer for layer in range(LAYERS)
              if begun is None or layer == begun or (stacked and layer < begun)}
    total = 0.0
    for layer, slope in enumerate(tape.gradient(loss, given)):
        wanted, by_hand = slow(ours[layer].astype(np.float64),
                               theirs[EVERY * layer + EVERY - 1].astype(np.float64))
        total += wanted * (layer in chosen)
        np.testing.assert_allclose(slope, by_hand * (layer in chosen), rtol=1e-6, atol=1e-6)
    assert float(loss) == pytest.approx(total, abs=1e-6)


def test_rows_that_fill_up_a_batch_do_not_count():
    ours, theirs = tensors((B, S, H), False)
    objective = InternalCosine(tiny.config())
    batch = {"input_ids": np.ones((B, S), np.int32), "input_mask": MASK.astype(np.int32),
             of_teacher("layer_outputs"): list(theirs),
             "is_real_example": np.array([[1], [0], [0]])}
    losses = np.array(objective({"layer_outputs": list(ours)}, batch))
    assert losses[0] > 0 and (losses[1:] == 0).all() and float(objective.count(batch)) == 1


@pytest.mark.parametrize("make, shape", [
    (InternalAttention, (4, N, S, S)), (InternalCosine, (4, S, H)),
    (AttentionTransfer, (4, N, S, S))])
def test_choices_are_compared_as_single_texts(make, shape):
    """Two examples of two choices, the second of which only fills up the batch."""
    objective, mask = make(tiny.config()), MASK[[0, 1, 2, 0]].astype(np.int32)
    (name,) = objective.internals
    ours, theirs = map(list, tensors(shape, False))
    inner = {"input_ids": mask, "input_mask": mask, of_teacher(name): theirs,
             "is_real_example": np.array([[1], [1], [0], [0]])}
    choices = {**inner, "input_ids": mask.reshape(2, 2, S), "input_mask": mask.reshape(2, 2, S),
               "is_real_example": np.array([[1], [0]])}
    wanted, found = ((np.array(objective({name: ours}, batch)), float(objective.count(batch)))
                     for batch in (inner, choices))
    np.testing.assert_array_equal(found[0], wanted[0])
    assert found[1] == wanted[1] and wanted[0][0] > 0


@pytest.mark.parametrize("make, shape, message", [
    (InternalAttention, (B, N + 1, S, S), "3 attention heads and the student 2"),
    (InternalCosine, (B, S, H + 1), "5 wide and the student 4")])
def test_other_sizes_are_refused(make, shape, message):
    objective = make(tiny.config())
    (name,) = objective.internals
    ours = np.zeros((B, N, S, S) if make is InternalAttention else (B, S, H), np.float32)
    with pytest.raises(InputError, match=message):
        objective({name: [ours]}, {"input_ids": MASK, "input_mask": MASK,
                                   of_teacher(name): [np.zeros(shape, np.float32)]})
