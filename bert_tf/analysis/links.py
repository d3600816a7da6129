"""Heads that attend from a word to another one that it is linked to (Clark et al.,
arXiv:1906.04341, section 4)."""

import collections
from collections.abc import Sequence

import numpy as np


class LinkHeads:
    """The share of links whose word's strongest weight in a head leads to the link's other end.

    [CLS], [SEP] and the word itself do not count.

    Attributes:
        totals: {kind of link: number of links}.
    """

    def __init__(self):
        self._right: dict[str, np.ndarray] = {}
        self._offsets: dict[str, collections.Counter] = {}
        self.totals: collections.Counter = collections.Counter()

    def add_links(self, attention: np.ndarray, links: Sequence[tuple[int, int, str]]) -> None:
        """Adds a sentence: `attention`, float [L, N, w, w] between its words alone, and (word,
        other word, kind) of each link."""
        others = np.where(np.eye(attention.shape[-1], dtype=bool), -1.0, attention)
        # From a word, and to it: [2, L, N, w].
        strongest = np.stack([others.argmax(-1), others.argmax(-2)])
        for word, other, kind in links:
            right = strongest[..., word] == other
            self._right[kind] = self._right.get(kind, 0) + right
            self._offsets.setdefault(kind, collections.Counter())[other - word] += 1
            self.totals[kind] += 1

    def scores(self, kind: str) -> np.ndarray:
        """Returns the shares that are right: [2, L, N], by attention from the word and to it."""
        return self._right[kind] / self.totals[kind]

    def best_offset(self, kind: str) -> tuple[int, float]:
        """Returns the distance to the other word that is right most often, and how often it is."""
        offset, count = self._offsets[kind].most_common(1)[0]
        return offset, count / self.totals[kind]
