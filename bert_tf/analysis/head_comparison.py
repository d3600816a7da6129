"""Similarity of heads, as three studies measure it.

Distances: Clark et al. (arXiv:1906.04341, head_distances.py). Divergence, agreement and distance of
the maximum: Michel et al. (arXiv:1905.10650, examples/util.py). Cosine: Kovaleva et al.
(arXiv:1908.08593).
"""

import numpy as np


def _entropy(p):
    """In nats, with 0 log 0 = 0, over the last axis."""
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)


def jensen_shannon(attention: np.ndarray) -> np.ndarray:
    """Returns the Jensen-Shannon divergence of each two heads, in nats, summed over a text's rows:
    [L, N, m, n] -> [L * N, L * N]. The original sums it over texts too.

    Rows are smoothed to 0.999 a + 0.001 / n.
    """
    m, n = attention.shape[-2:]
    heads = 0.999 * attention.reshape(-1, m, n).astype(np.float64) + 0.001 / n
    entropies = _entropy(heads)                                         # [L * N, m]
    divergences = np.zeros((len(heads),) * 2)
    for i, head in enumerate(heads):
        mixed = _entropy((head + heads[i:]) / 2) - (entropies[i] + entropies[i:]) / 2
        divergences[i, i:] = divergences[i:, i] = mixed.sum(-1)
    return divergences


def scale(distances: np.ndarray) -> np.ndarray:
    """Returns points in the plane, [M, 2], whose distances approximate the given distances, [M, M]:
    classical multidimensional scaling."""
    squares = np.asarray(distances, np.float64) ** 2
    centred = squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean()
    sizes, directions = np.linalg.eigh(-centred / 2)
    return directions[:, :-3:-1] * np.sqrt(np.maximum(sizes[:-3:-1], 0))


def pairwise_divergence(attention: np.ndarray) -> np.ndarray:
    """Returns the Kullback-Leibler divergence of head j from head i of a layer, row by row:
    [L, N, n, n] -> [L, N, N, n]. log 0 counts as -40."""
    attention = np.asarray(attention, np.float64)
    logs = np.where(attention > 0, np.log(np.where(attention > 0, attention, 1.0)), -40.0)
    cross = -np.einsum("lirc,ljrc->lijr", attention, logs)
    return cross - _entropy(attention)[:, :, None]


def agreement(rows: np.ndarray) -> np.ndarray:
    """Returns the product of two heads' rows, summed over rows, mean over all pairs of a layer's
    heads, each with itself too: [L, N, n, ...] -> [L].

    The original calls it disagreement. Give attention maps, or outputs scaled to length 1.
    """
    mean = np.asarray(rows, np.float64).mean(1)
    return (mean ** 2).sum((-1, -2))


def distance_of_maximum(attention: np.ndarray) -> np.ndarray:
    """Returns |row - column of the largest weight|, mean over rows: [..., n, n] -> [...]."""
    rows = np.arange(attention.shape[-1])
    return np.abs(attention.argmax(-1) - rows).mean(-1)


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns the cosine of each head's flattened maps in two networks: [..., n, n] -> [...]."""
    a, b = (np.reshape(maps, (*maps.shape[:-2], -1)).astype(np.float64) for maps in (first, second))
    return (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def largest_to(attention: np.ndarray, columns: list[int]) -> np.ndarray:
    """Returns Kovaleva's attention to a set of tokens: the weight on each column, mean over rows,
    and the largest of these means: [..., n, n] -> [...]."""
    return attention[..., columns].mean(-2).max(-1)


def largest_between(attention: np.ndarray, sources: list[int], targets: list[int]) -> np.ndarray:
    """Returns the largest single weight from a source to its target: [..., n, n] -> [...]."""
    return attention[..., sources, targets].max(-1)
