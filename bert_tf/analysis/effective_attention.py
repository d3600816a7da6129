"""The part of an attention map that a head's output depends on (Brunner et al., arXiv:1908.04211).

A head gives A V W: its map A [n, n], its values V [n, D] and its slice W [D, H] of the output
projection. Adding to a row of A any x with x V W = 0, the left null space of T = V W with n -
rank(T) dimensions, has no effect. Effective attention is A without it; rows of A without the left
null space of [T, 1] still sum to 1. In a network that reads from left to right, x has weights at
the token and on its left alone: row i has the null space of the first i + 1 rows of T.

W has full rank in any trained network, so that V and T have one left null space; both may be given.
Computed in float64: in float32, rounding would decide about the smallest singular values.
"""

import numpy as np


def _singular(transformed, sums_to_one, full=False):
    """Returns the left singular vectors [n, n or fewer] of T [n, D] or of [T, 1], and the rank."""
    transformed = np.asarray(transformed, np.float64)
    if sums_to_one:
        transformed = np.append(transformed, np.ones((len(transformed), 1)), 1)
    left, sizes, _ = np.linalg.svd(transformed, full_matrices=full)
    least = sizes.max(initial=0.0) * np.finfo(np.float64).eps * max(transformed.shape)
    return left, int((sizes > least).sum())


def numerical_rank(transformed: np.ndarray) -> int:
    """Returns the rank of V or T, [n, D]: the singular values above the largest one times max(n, D)
    times float64's precision, as in numpy.linalg.matrix_rank."""
    return _singular(transformed, False)[1]


def left_null_space(transformed: np.ndarray, sums_to_one: bool = False) -> np.ndarray:
    """Returns an orthonormal basis of {x: x T = 0}: float64 [n - rank, n], of V or T [n, D]. With
    `sums_to_one`, a basis of {x: x [T, 1] = 0}: changes of a row that keep its sum."""
    left, rank = _singular(transformed, sums_to_one, full=True)
    return left[:, rank:].T


def effective_attention(attention: np.ndarray, transformed: np.ndarray, sums_to_one: bool = False,
                        causal: bool = False) -> tuple[np.ndarray, int | np.ndarray]:
    """Returns A, float64 [..., n, n], maps of one head, without its part in the left null space of
    T, and the rank of T. The product with T stays the same; weights may be negative.

    Args:
        transformed: float [n, D], V or T, without padding, whose values would change the result.
        sums_to_one: takes the null space and the rank of [T, 1], so that rows sum to 1.
        causal: whether a token attends to no token on its right. Each row then has its own null
            space, and the rank is an int [n], one per row.
    """
    attention = np.asarray(attention, np.float64)
    if not causal:
        return _effective(attention, transformed, sums_to_one)
    effective, ranks = np.zeros_like(attention), np.zeros(len(transformed), int)
    for row in range(len(transformed)):
        seen = np.s_[..., row, :row + 1]
        effective[seen], ranks[row] = _effective(
            attention[seen], transformed[:row + 1], sums_to_one)
    return effective, ranks


def _effective(rows, transformed, sums_to_one):
    """The rows [..., n] of maps without their part in the left null space, and the rank."""
    left, rank = _singular(transformed, sums_to_one)
    basis = left[:, :rank]
    return rows @ basis @ basis.T, rank


def effective_maps(attention: np.ndarray, values: np.ndarray, sums_to_one: bool = False,
                   causal: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Returns `effective_attention` of every head of a text, float64 [L, N, n, n], and the ranks,
    int [L, N], or [L, N, n] with `causal`. `attention` is [L, N, n, n], `values` [L, N, n, D]."""
    heads = attention.shape[:2]
    effective = np.zeros(attention.shape)
    ranks = np.zeros(attention.shape[:2 + causal], int)
    for head in np.ndindex(*heads):
        effective[head], ranks[head] = effective_attention(
            attention[head], values[head], sums_to_one, causal)
    return effective, ranks


def correlation(attention: np.ndarray, effective: np.ndarray, causal: bool = False) -> np.ndarray:
    """Returns Pearson's correlation of the weights of two maps, float [...], over their last two
    axes; 0 where one is constant. With `causal`, weights of tokens on the right are left out."""
    n = attention.shape[-1]
    counted = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
    a, b = (np.asarray(x, np.float64)[..., counted] for x in (attention, effective))
    a, b = (x - x.mean(-1, keepdims=True) for x in (a, b))
    product = (a * b).sum(-1)
    scale = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return np.divide(product, scale, out=np.zeros_like(product), where=scale > 0)
