"""The figures of Brunner et al. (arXiv:1908.04211), measured on a network and a text."""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from bert_tf.analysis.effective_attention import correlation, effective_maps
from bert_tf.analysis.identification import MEASURES, LinearProbe, identified
from bert_tf.analysis.reading import Reading
from bert_tf.analysis.statistics import attention_to, token_kinds
from bert_tf.tokenization.vocabulary import Vocabulary


def compare_maps(readings: Iterable[Reading], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """Raw beside effective attention, means over texts: dict of float64 [L, N].

    `correlation` is Pearson's of all weights of a map, `null_space` the dimensions n - rank; `raw
    KIND` and `effective KIND`, for each of `statistics.KINDS`, are the weight on these tokens, mean
    over rows; `share KIND` is that of the magnitudes of effective weights, which may be negative.
    """
    sums: dict[str, np.ndarray] = {}
    count = 0
    for reading in readings:
        count += 1
        effective, ranks = effective_maps(reading.attention, reading.values)
        sizes = np.abs(effective)
        total = attention_to(sizes, np.ones(len(reading.input_ids), bool))
        found = {"correlation": correlation(reading.attention, effective),
                 "null_space": len(reading.input_ids) - ranks}
        for kind, columns in token_kinds(reading.input_ids, vocabulary).items():
            found[f"raw {kind}"] = attention_to(reading.attention, columns)
            found[f"effective {kind}"] = attention_to(effective, columns)
            found[f"share {kind}"] = attention_to(sizes, columns) / total
        for name, value in found.items():
            sums[name] = sums.get(name, 0) + value
    return {name: value / count for name, value in sums.items()}


@dataclasses.dataclass
class Identification:
    """The share of tokens that each reading identifies in each layer.

    Attributes:
        shares: {"cosine", "l2", "linear": float [L + 1]}; the first is that of the input itself.
        tokens: how many tokens there are; of `linear`, in the texts that were not learned from.
    """

    shares: dict[str, np.ndarray]
    tokens: dict[str, int]


def identify(readings: Sequence[Reading], learn: float = 0.7) -> Identification:
    """Nearest neighbours of all texts, and of a linear probe learned from a share `learn` of them.
    """
    learned = max(int(len(readings) * learn), 1)
    layers, _, width = readings[0].hidden.shape
    right: dict[str, list] = {name: [] for name in (*MEASURES, "linear")}
    for layer in range(layers):
        pairs = [(reading.hidden[layer], reading.hidden[0]) for reading in readings]
        for measure in MEASURES:
            right[measure].append(_share(identified(*pair, measure) for pair in pairs))
        probe = LinearProbe(width, width)
        for pair in pairs[:learned]:
            probe.add(*pair)
        probe.solve()
        right["linear"].append(_share(identified(probe(hidden), inputs)
                                      for hidden, inputs in pairs[learned:]))
    tokens = [len(reading.input_ids) for reading in readings]
    return Identification(
        {name: np.array(shares) for name, shares in right.items()},
        dict.fromkeys(MEASURES, sum(tokens)) | {"linear": sum(tokens[learned:])})


def _share(found):
    right = np.concatenate(list(found))
    return right.mean() if len(right) else np.nan


def summarize_attribution(contributions: Sequence[np.ndarray], reach: int = 10
                          ) -> dict[str, np.ndarray]:
    """Means over tokens but for the first and last of each text, which are [CLS] and [SEP].

    Args:
        contributions: what `attribution.token_attribution` gives for each text, [L, n, n].
        reach: the longest distance.

    Returns:
        `own` [L], what a token contributes to itself; `own_largest` [L], the share of tokens to
        which none contributes more; `by_distance` [L, 2 * reach + 1], what the token at a distance
        from -reach to reach contributes, mean over the tokens that have one there.
    """
    own, largest = [], []
    layers = len(contributions[0])
    sums, counts = np.zeros((layers, 2 * reach + 1)), np.zeros(2 * reach + 1)
    for shares in contributions:
        inner = np.arange(1, shares.shape[-1] - 1)
        own.append(shares[:, inner, inner])
        largest.append(shares[:, inner].argmax(-1) == inner)
        for i in inner:
            j = np.arange(max(1, i - reach), min(shares.shape[-1] - 1, i + reach + 1))
            sums[:, j - i + reach] += shares[:, i, j]
            counts[j - i + reach] += 1
    return {"own": np.concatenate(own, 1).mean(1),
            "own_largest": np.concatenate(largest, 1).mean(1),
            "by_distance": sums / np.maximum(counts, 1)}
