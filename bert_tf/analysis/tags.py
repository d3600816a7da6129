"""Knowledge of tagged words: probes of layers, and heads that attend from a word to one that it is
linked to, such as its chunk's last one (Clark et al., arXiv:1906.04341, section 4)."""

import collections
from collections.abc import Sequence

import numpy as np

from bert_tf import metrics
from bert_tf.analysis.identification import LinearProbe


def probe_layers(train: Sequence[Sequence[np.ndarray]], train_tags: Sequence[Sequence[str]],
                 held_out: Sequence[Sequence[np.ndarray]]) -> list[list[list[str]]]:
    """Predicts tags with a linear probe: for each layer, the tags of each held-out sentence.

    A probe is the affine map with the least squared error to one number a tag; the largest number
    decides. It reads the vector of a word's first sub-word. `train` and `held_out` have, for each
    layer, the vectors [n, H] of each sentence's words."""
    names = sorted({tag for tags in train_tags for tag in tags})
    places = {tag: place for place, tag in enumerate(names)}
    predicted = []
    for layer, others in zip(train, held_out):
        probe = LinearProbe(layer[0].shape[1], len(names))
        for vectors, tags in zip(layer, train_tags):
            probe.add(vectors, np.eye(len(names))[[places[tag] for tag in tags]])
        probe.solve()
        predicted.append([[names[place] for place in probe(vectors).argmax(1)]
                          for vectors in others])
    return predicted


def most_frequent(train_words: Sequence[Sequence[str]], train_tags: Sequence[Sequence[str]],
                  words: Sequence[Sequence[str]]) -> list[list[str]]:
    """Returns each word's most frequent tag, of a new word all words': the baseline of a probe."""
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    total: collections.Counter = collections.Counter()
    for sentence, tags in zip(train_words, train_tags):
        total.update(tags)
        for word, tag in zip(sentence, tags):
            counts[word][tag] += 1
    best = {word: counter.most_common(1)[0][0] for word, counter in counts.items()}
    other = total.most_common(1)[0][0]
    return [[best.get(word, other) for word in sentence] for sentence in words]


class LinkHeads:
    """The share of links whose word's strongest weight in a head leads to the link's other end.
    [CLS], [SEP] and the word itself do not count. `totals` is {kind of link: number of links}."""

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


class ChunkHeads(LinkHeads):
    """Links from the words of a chunk to its last word, by type of chunk."""

    def add(self, attention: np.ndarray, tags: Sequence[str]) -> None:
        """Adds a sentence: `attention`, float [L, N, w, w] between its words alone, and the words'
        chunk tags in IOB1 or BIO."""
        self.add_links(attention, [(word, end - 1, kind)
                                   for first, end, kind in metrics.entities(list(tags))
                                   for word in range(first, end - 1)])
