"""Similarity of heads: their distances as Clark et al. measure them (arXiv:1906.04341,
head_distances.py), their cosine as Kovaleva et al. do (arXiv:1908.08593)."""

import numpy as np


def _entropy(p):
    """Returns the entropy in nats, with 0 log 0 = 0, over the last axis."""
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)


def jensen_shannon(attention: np.ndarray) -> np.ndarray:
    """Returns the Jensen-Shannon divergence of each two heads, in nats, summed over a text's rows:
    [L, N, n, n] -> [L * N, L * N]. The original sums it over texts too.

    Rows are smoothed to 0.999 a + 0.001 / n.
    """
    n = attention.shape[-1]
    heads = 0.999 * attention.reshape(-1, n, n).astype(np.float64) + 0.001 / n
    entropies = _entropy(heads)                                         # [L * N, n]
    found = np.zeros((len(heads),) * 2)
    for i, head in enumerate(heads):
        mixed = _entropy((head + heads[i:]) / 2) - (entropies[i] + entropies[i:]) / 2
        found[i, i:] = found[i:, i] = mixed.sum(-1)
    return found


def scale(distances: np.ndarray) -> np.ndarray:
    """Returns points in the plane, [M, 2], whose distances are near those given, [M, M]: classical
    multidimensional scaling."""
    squares = np.asarray(distances, np.float64) ** 2
    centred = squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean()
    sizes, directions = np.linalg.eigh(-centred / 2)
    return directions[:, :-3:-1] * np.sqrt(np.maximum(sizes[:-3:-1], 0))


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns the cosine of each head's flattened maps in two networks: [..., n, n] -> [...]."""
    a, b = (np.reshape(maps, (*maps.shape[:-2], -1)).astype(np.float64)
            for maps in (first, second))
    return (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))
