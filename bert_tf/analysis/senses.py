"""Senses of words by nearest neighbours (Wiedemann et al., arXiv:1909.10430)."""

import collections
from collections.abc import Mapping, Sequence

import numpy as np


class Neighbours:
    """The senses of each lemma's instances, with their vectors; and `counts`, {lemma: a Counter of
    its senses}."""

    def __init__(self) -> None:
        self._vectors: dict[str, list[np.ndarray]] = collections.defaultdict(list)
        self._senses: dict[str, list[str]] = collections.defaultdict(list)
        self.counts: Mapping[str, collections.Counter] = collections.defaultdict(
            collections.Counter)

    def add(self, lemma: str, senses: Sequence[str], vector: np.ndarray) -> None:
        """Adds an instance with its vector, float [H]; of several senses each."""
        for sense in senses:
            self._vectors[lemma].append(vector)
            self._senses[lemma].append(sense)
            self.counts[lemma][sense] += 1

    def most_frequent(self, lemma: str) -> str | None:
        """Returns the lemma's most frequent sense, the first of several; None without one."""
        return self.counts[lemma].most_common(1)[0][0] if lemma in self.counts else None

    def predict(self, lemma: str, vectors: np.ndarray, count: int) -> list[str]:
        """The sense that most of the `count` nearest neighbours have, by the cosine with `vectors`,
        float [n, H]; the nearest decides between equally frequent senses. `lemma` has instances."""
        from sklearn.neighbors import NearestNeighbors
        senses = self._senses[lemma]
        neighbours = NearestNeighbors(n_neighbors=min(count, len(senses)), metric="cosine").fit(
            np.stack(self._vectors[lemma]).astype(np.float64)).kneighbors(
                vectors.astype(np.float64), return_distance=False)
        return [collections.Counter(senses[place] for place in row).most_common(1)[0][0]
                for row in neighbours]
