"""Attention of heads to kinds of tokens, as in clarkkev/attention-analysis (Clark et al.,
arXiv:1906.04341; General_Analysis.ipynb)."""

from collections.abc import Sequence

import numpy as np

from bert_tf.tokenization.vocabulary import Vocabulary

KINDS = ("cls", "sep", "punctuation", "rest")
# Titles for the columns of `Statistics.result`.
TITLES = {"cls": "[CLS]", "sep": "[SEP]", "punctuation": ". ,", "rest": "rest", "self": "itself",
          "left": "previous", "right": "next", "entropy": "entropy",
          "entropy_from_cls": "entropy [CLS]", "sep_from_sep": "[SEP] to [SEP]",
          "sep_from_rest": "rest to [SEP]"}
# Marks of a word's beginning: SentencePiece's and byte-level BPE's.
_MARKS = "\u2581\u0120"


def titles(vocabulary: Vocabulary) -> dict[str, str]:
    """Returns `TITLES` with the vocabulary's own tokens in the place of [CLS] and [SEP]."""
    cls, sep = (vocabulary.special.get(role, TITLES[role]) for role in ("cls", "sep"))
    return {name: title.replace(TITLES["cls"], cls).replace(TITLES["sep"], sep)
            for name, title in TITLES.items()}


def token_kinds(ids: Sequence[int], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """Returns {kind: bool [n]} for `KINDS`, without "cls" where the vocabulary has no such token
    (T5). Punctuation is "." and "," alone."""
    ids = np.asarray(ids)
    marks = [index for index in set(ids.tolist())
             if vocabulary.tokens[index].lstrip(_MARKS) in (".", ",")]
    kinds = {"sep": ids == vocabulary.sep_id, "punctuation": np.isin(ids, marks)}
    if vocabulary.cls_id is not None:
        kinds = {"cls": ids == vocabulary.cls_id, **kinds}
    return {**kinds, "rest": ~np.logical_or.reduce(list(kinds.values()))}


def attention_to(attention: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Returns the weight on the columns, bool [n], mean over rows: [..., m, n] -> [...]."""
    return attention[..., columns].sum((-1, -2)) / attention.shape[-2]


def entropy(attention: np.ndarray) -> np.ndarray:
    """Returns each row's entropy in nats, [..., n], after smoothing to 0.9999 a + 0.0001 / n."""
    rows = 0.9999 * attention + 0.0001 / attention.shape[-1]
    return -(rows * np.log(rows)).sum(-1)


class Statistics:
    """Each head's means over texts. Neighbours are divided by n, as in the original, although n - 1
    tokens have one."""

    def __init__(self):
        self._sums: dict[str, np.ndarray] = {}
        self._uniform, self.texts = 0.0, 0

    def add(self, attention: np.ndarray, kinds: dict[str, np.ndarray], maps: str = "encoder"
            ) -> None:
        """Adds a text: its attention, float [L, N, n, n], or [L, N, m, n] from the tokens of
        another text, and the `token_kinds` of the n tokens that are attended to. In `maps`
        "encoder", all tokens attend to all; in "decoder", to the tokens up to their own place; in
        "cross", to another text's tokens: its statistics have no neighbours."""
        attention = np.asarray(attention, np.float64)
        entropies, n = entropy(attention), attention.shape[-1]
        figures = {kind: attention_to(attention, columns) for kind, columns in kinds.items()}
        figures["entropy"] = entropies.mean(-1)
        if maps != "cross":     # its tokens attend to each other
            sep = kinds["sep"]
            from_sep = attention[..., sep, :][..., sep].sum((-1, -2))
            to_sep = attention[..., sep].sum((-1, -2))
            figures |= {
                "self": np.trace(attention, 0, -2, -1) / n,
                "left": np.trace(attention, -1, -2, -1) / n,
                "right": np.trace(attention, 1, -2, -1) / n,
                # A text without [SEP] has no such rows; the original always has two.
                "sep_from_sep": from_sep / max(sep.sum(), 1),
                "sep_from_rest": (to_sep - from_sep) / max((~sep).sum(), 1)}
            if "cls" in kinds:
                figures["entropy_from_cls"] = entropies[..., kinds["cls"].argmax()]
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0) + value
        seen = np.arange(1, n + 1) if maps == "decoder" else n
        self._uniform += np.log(seen).mean()
        self.texts += 1

    def result(self) -> dict[str, np.ndarray]:
        """Returns float64 [L, N] by the names of `TITLES`, without the kinds that no text has."""
        return {name: value / self.texts for name, value in self._sums.items()}

    @property
    def uniform_entropy(self) -> float:
        """Returns the mean entropy of a head that attends to all tokens alike."""
        return float(self._uniform / self.texts)


def jensen_shannon(attention: np.ndarray) -> np.ndarray:
    """Returns the Jensen-Shannon divergence of each two heads, in nats, summed over a text's rows:
    [L, N, m, n] -> [L * N, L * N] (head_distances.py, which sums it over texts too). Rows are
    smoothed to 0.999 a + 0.001 / n."""
    m, n = attention.shape[-2:]
    heads = 0.999 * attention.reshape(-1, m, n).astype(np.float64) + 0.001 / n
    entropies = -(heads * np.log(heads)).sum(-1)                        # [L * N, m]
    divergences = np.zeros((len(heads),) * 2)
    for i, head in enumerate(heads):
        mean = (head + heads[i:]) / 2
        mixed = -(mean * np.log(mean)).sum(-1) - (entropies[i] + entropies[i:]) / 2
        divergences[i, i:] = divergences[i:, i] = mixed.sum(-1)
    return divergences


def scale(distances: np.ndarray) -> np.ndarray:
    """Returns points in the plane, [M, 2], whose distances approximate the given distances, [M, M]:
    classical multidimensional scaling."""
    squares = np.asarray(distances, np.float64) ** 2
    centred = squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean()
    sizes, directions = np.linalg.eigh(-centred / 2)
    return directions[:, :-3:-1] * np.sqrt(np.maximum(sizes[:-3:-1], 0))


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns the cosine of each head's flattened maps in two networks (Kovaleva et al.,
    arXiv:1908.08593): [..., n, n] -> [...]."""
    a, b = (np.reshape(maps, (*maps.shape[:-2], -1)).astype(np.float64) for maps in (first, second))
    return (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def pairwise_divergence(attention: np.ndarray) -> np.ndarray:
    """Returns the Kullback-Leibler divergence of head j from head i of a layer, row by row:
    [L, N, n, n] -> [L, N, N, n] (Michel et al., arXiv:1905.10650, examples/util.py, as the next
    two). log 0 counts as -40."""
    attention = np.asarray(attention, np.float64)
    logs = np.where(attention > 0, np.log(np.where(attention > 0, attention, 1.0)), -40.0)
    cross = -np.einsum("lirc,ljrc->lijr", attention, logs)
    own = -np.where(attention > 0, attention * logs, 0.0).sum(-1)
    return cross - own[:, :, None]


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


def largest_to(attention: np.ndarray, columns: list[int]) -> np.ndarray:
    """Returns Kovaleva's attention to a set of tokens: the weight on each column, mean over rows,
    and the largest of these means: [..., n, n] -> [...]."""
    return attention[..., columns].mean(-2).max(-1)


def largest_between(attention: np.ndarray, sources: list[int], targets: list[int]) -> np.ndarray:
    """Returns the largest single weight from a source to its target: [..., n, n] -> [...]."""
    return attention[..., sources, targets].max(-1)
