"""Knowledge of tagged words: probes of each layer, and heads that attend from a word to its chunk's
last word.
"""

import collections
from collections.abc import Sequence

import numpy as np

from bert_tf import metrics
from bert_tf.analysis.identification import LinearProbe


def probe_layers(train: Sequence[Sequence[np.ndarray]], train_tags: Sequence[Sequence[str]],
                 held_out: Sequence[Sequence[np.ndarray]]) -> list[list[list[str]]]:
    """Predicts tags with a linear probe of each layer.

    A probe is the affine map with the least squared error to one number a tag; the largest number
    decides. It reads the vector of a word's first sub-word.

    Args:
        train: for each layer, the vectors [n, H] of each sentence's words.
        train_tags: the tags of each sentence.
        held_out: as `train`.

    Returns:
        for each layer, the tags of each held-out sentence.
    """
    names = sorted({tag for tags in train_tags for tag in tags})
    places = {tag: place for place, tag in enumerate(names)}
    found = []
    for layer, others in zip(train, held_out):
        probe = LinearProbe(layer[0].shape[1], len(names))
        for vectors, tags in zip(layer, train_tags):
            probe.add(vectors, np.eye(len(names))[[places[tag] for tag in tags]])
        probe.solve()
        found.append([[names[place] for place in probe(vectors).argmax(1)] for vectors in others])
    return found


def most_frequent(train_words: Sequence[Sequence[str]], train_tags: Sequence[Sequence[str]],
                  words: Sequence[Sequence[str]]) -> list[list[str]]:
    """Returns each word's most frequent tag, or all words' most frequent tag for a new word: the
    baseline of a probe."""
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    total: collections.Counter = collections.Counter()
    for sentence, tags in zip(train_words, train_tags):
        total.update(tags)
        for word, tag in zip(sentence, tags):
            counts[word][tag] += 1
    best = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    other = total.most_common(1)[0][0]
    return [[best.get(word, other) for word in sentence] for sentence in words]


class ChunkHeads:
    """The share of words whose strongest weight in a head leads to their chunk's last word.

    [CLS], [SEP] and the word itself do not count, as Clark et al. (arXiv:1906.04341) measure
    dependencies.

    Attributes:
        totals: {type of chunk: number of words that are not its last}.
    """

    def __init__(self):
        self._right: dict[str, np.ndarray] = {}
        self._offsets: dict[str, collections.Counter] = {}
        self.totals: collections.Counter = collections.Counter()

    def add(self, attention: np.ndarray, tags: Sequence[str]) -> None:
        """Adds a sentence: `attention`, float [L, N, w, w] between its words alone, and the words'
        chunk tags in IOB1 or BIO."""
        others = np.where(np.eye(len(tags), dtype=bool), -1.0, attention)
        # From a word, and to it: [2, L, N, w].
        strongest = np.stack([others.argmax(-1), others.argmax(-2)])
        for first, end, kind in metrics.entities(list(tags)):
            last = end - 1
            for word in range(first, last):
                right = strongest[..., word] == last
                self._right[kind] = self._right.get(kind, 0) + right
                self._offsets.setdefault(kind, collections.Counter())[last - word] += 1
                self.totals[kind] += 1

    def scores(self, kind: str) -> np.ndarray:
        """Returns the shares that are right: [2, L, N], by attention from the word and to it."""
        return self._right[kind] / self.totals[kind]

    def best_offset(self, kind: str) -> tuple[int, float]:
        """Returns the distance to the last word that is right most often, and the share that it is.
        """
        offset, count = self._offsets[kind].most_common(1)[0]
        return offset, count / self.totals[kind]
