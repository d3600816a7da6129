"""Heads of words in a sentence, from attention (Clark et al., arXiv:1906.04341, section 4.2).
Shapes: w words of a sentence, K = L N heads of the network, E width of words' vectors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_NEVER = -1e30      # the score of a word as its own head


class Parsed(NamedTuple):
    """A sentence: the attention between its words alone, float [L, N, w, w]; the number of each
    word's head among the words, -1 for the root; the words' own vectors, float [w, E], or None."""

    attention: np.ndarray
    heads: list[int]
    vectors: np.ndarray | None = None


class DependencyProbe:
    """Finds the head of each word by a linear function of both words' attention to each other.

    Word j's head is i with the probability exp(s_ij) / (exp(s_1j) + ... + exp(s_wj)), where s_ij is
    the sum over all heads of a weight times the attention from j to i, and another weight times
    the attention from i to j. With vectors, each weight is an affine function of the vectors of i
    and j. The loss is convex, and is minimised by L-BFGS; it has the term `decay` times the sum of
    all squared parameters. Roots do not count, and no word is its own head.
    """

    def __init__(self, decay: float = 1e-4, steps: int = 60) -> None:
        self._decay, self._steps = decay, steps
        self.parameters: np.ndarray | None = None

    def train(self, sentences: Sequence[Parsed]) -> float:
        """Learns from sentences; returns the loss for each word with a head."""
        from scipy.optimize import minimize
        parts = [_part(one) for one in sentences]
        width = parts[0][1].shape[1]
        result = minimize(lambda x: self.loss(parts, x.reshape(-1, width)),
                         np.zeros(parts[0][0].shape[0] * width), jac=True, method="L-BFGS-B",
                         options={"maxiter": self._steps})
        self.parameters = result.x.reshape(-1, width)
        return float(result.fun)

    def loss(self, parts: Sequence[tuple], parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Returns the mean loss of words with a head, and its gradient, for results of `_part` and
        `parameters`, float [2 K, 1 + 2 E]."""
        total, slope, count = 0.0, np.zeros_like(parameters), 0
        for attention, features, heads in parts:
            words = np.flatnonzero(heads >= 0)
            scores = _scores(attention, features, parameters)
            scores = scores - scores.max(0)
            odds = np.exp(scores)
            sums = odds.sum(0)
            total += (np.log(sums[words]) - scores[heads[words], words]).sum()
            odds /= sums
            odds[heads[words], words] -= 1
            odds[:, heads < 0] = 0
            half, weighted = (features.shape[1] + 1) // 2, attention * odds
            slope += np.concatenate([weighted.sum(2) @ features[:, :half],
                                     weighted.sum(1) @ features[:, half:]], 1)
            count += len(words)
        total = total / count + self._decay * (parameters ** 2).sum()
        return total, (slope / count + 2 * self._decay * parameters).ravel()

    def predict(self, sentence: Parsed) -> np.ndarray:
        """Returns the number of each word's likeliest head, int [w]."""
        assert self.parameters is not None
        attention, features, _ = _part(sentence)
        return _scores(attention, features, self.parameters).argmax(0)


def _part(sentence):
    """Attention [2 K, w, w], from j to i and from i to j at [i, j]; the features [w, 1 + 2 E] of i,
    1 and its vector, and of j, its vector; and the heads."""
    maps = np.asarray(sentence.attention, np.float64)
    maps = maps.reshape(-1, *maps.shape[-2:])
    size = maps.shape[-1]
    vectors = sentence.vectors
    if vectors is None:
        vectors = np.zeros((size, 0))
    return (np.concatenate([maps.swapaxes(1, 2), maps]),
            np.concatenate([np.ones((size, 1)), vectors, vectors], 1), np.array(sentence.heads))


def _scores(attention, features, parameters):
    """Returns the score of i as the head of j at [i, j], float [w, w]; least on the diagonal."""
    half = (features.shape[1] + 1) // 2         # columns of token i
    of_i = parameters[:, :half] @ features[:, :half].T                      # [2 K, w]
    of_j = parameters[:, half:] @ features[:, half:].T
    scores = np.einsum("kij,ki->ij", attention, of_i) + np.einsum("kij,kj->ij", attention, of_j)
    np.fill_diagonal(scores, _NEVER)
    return scores


def attachment(sentences: Sequence[Parsed], predicted: Sequence[np.ndarray]) -> float:
    """Returns the share of words with a head whose prediction is right (UAS)."""
    right = [np.equal(guess, one.heads)[np.array(one.heads) >= 0]
             for one, guess in zip(sentences, predicted)]
    return float(np.concatenate(right).mean())


def offset_heads(sentence: Parsed, offset: int) -> np.ndarray:
    """Returns for each word the index of the word `offset` places on, or -2 without such a word."""
    places = np.arange(len(sentence.heads)) + offset
    return np.where((places >= 0) & (places < len(places)), places, -2)
