"""A softmax over a few candidates drawn from a large vocabulary (arXiv:1412.2007), as
`tf.nn.sampled_softmax_loss` with distinct candidates.

Shapes: T tokens, E width, V vocabulary, K candidates.
"""

import numpy as np
from keras import ops

from bert_tf.layers.base import Tensor
from bert_tf.layers.seeds import uniform

_TINY = 1e-30
_NO_LOGIT = -1e9


def log_uniform(size: int) -> np.ndarray:
    """Returns each token's share by its rank, float32 [V]: TensorFlow's
    `log_uniform_candidate_sampler`, for a vocabulary in the order of frequency."""
    ranks = np.arange(size, dtype=np.float64)
    return ((np.log(ranks + 2) - np.log(ranks + 1)) / np.log(size + 1)).astype(np.float32)


def draw_candidates(shares: Tensor, count: int, seed: Tensor) -> tuple[Tensor, Tensor]:
    """Draws distinct candidates, distributed as drawing by `shares` until there are `count`.

    Each token first appears at an exponential time whose rate is its share; the first `count` are
    drawn. TensorFlow counts the draws that this took. The time is the mean of that count, and is
    used in its place.

    Args:
        shares: float32 [V].
        count: K, less than V.
        seed: integer [2], which determines the candidates.

    Returns:
        int32 [K], and float32 [V]: log of each token's expected number among candidates.
    """
    times = -ops.log(uniform(ops.shape(shares), seed) + _TINY) / ops.maximum(shares, _TINY)
    nearest, candidates = ops.top_k(-times, count)
    end = -ops.min(nearest)
    return ops.cast(candidates, "int32"), ops.log(ops.maximum(-ops.expm1(-shares * end), _TINY))


def sampled_losses(x: Tensor, table: Tensor, bias: Tensor, labels: Tensor, shares: Tensor,
                   count: int, seed: Tensor) -> Tensor:
    """Returns float32 [T, 2]: each label's cross-entropy among itself and the candidates, and
    whether its logit is the largest.

    Args:
        x: float [T, E].
        table: float [V, E].
        bias: float32 [V].
        labels: integer [T].
        shares, count, seed: see `draw_candidates`.
    """
    labels = ops.cast(labels, "int32")
    candidates, expected = draw_candidates(shares, count, seed)
    bias = bias - expected
    true = ops.sum(ops.cast(x * ops.take(table, labels, axis=0), "float32"), axis=-1)
    true = true + ops.take(bias, labels)                                # [T]
    logits = ops.matmul(x, ops.transpose(ops.take(table, candidates, axis=0)))
    logits = ops.cast(logits, "float32") + ops.take(bias, candidates)   # [T, K]
    is_hit = ops.equal(labels[:, None], candidates[None])
    logits = ops.where(is_hit, _NO_LOGIT, logits)
    largest = ops.maximum(ops.max(logits, axis=-1), true)
    total = ops.sum(ops.exp(logits - largest[:, None]), axis=-1) + ops.exp(true - largest)
    is_best = ops.cast(true >= largest, "float32")
    return ops.stack([ops.log(total) + largest - true, is_best], axis=-1)
