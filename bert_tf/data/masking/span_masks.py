"""SpanBERT's static masks (arXiv:1907.10529), drawn as its pre-training code draws them
(fairseq/data/masking.py: PairWithSpanMaskingScheme and its relatives).

A sequence is one segment, a block. All is drawn from one stream of numpy's legacy generator, which
runs on from block to block.
"""

from collections.abc import Sequence

import numpy as np

from bert_tf.data.masking.masks import KEEP, MASK, Masks
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.corruption import MaskTokens
from bert_tf.tokenization.vocabulary import Vocabulary

SPAN_FEATURES = ("span_left", "span_right", "span_offset", "span_weights")
# A run of chosen tokens: the first, and the last + 1.
Run = tuple[int, int]


def length_limits(masking: MaskTokens) -> np.ndarray:
    """float64 [span_upper - span_lower + 1], the shares of spans up to each length in words: a
    geometric distribution without what is outside of the bounds."""
    exponents = np.arange(masking.span_lower, masking.span_upper + 1) - 1
    shares = np.array([masking.geometric_p * (1 - masking.geometric_p)**int(exponent)
                       for exponent in exponents])
    limits = (shares / shares.sum()).cumsum()
    return limits / limits[-1]      # as numpy.random.choice does


def runs_of(marks: np.ndarray) -> list[Run]:
    """The maximal runs of a bool [n]."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marks, [0]]).astype(np.int8))).tolist()
    return list(zip(edges[::2], edges[1::2]))


class SpanChooser:
    """Chooses the tokens of blocks.

    Args:
        masking: `MaskTokens`.
        rng: numpy's legacy generator.
    """

    def __init__(self, masking: MaskTokens, rng: np.random.RandomState) -> None:
        self._rng, self._lower = rng, masking.span_lower
        self._entity_prob = masking.ner_masking_prob
        self._limits = length_limits(masking)

    def random(self, count: int, budget: int) -> list[Run]:
        """Single tokens, `budget` of `count`, in order."""
        chosen = self._rng.choice(count, budget, replace=False)
        return [(token, token + 1) for token in sorted(chosen.tolist())]

    def spans(self, begins: Sequence[int], budget: int,
              entities: Sequence[Run] | None = None) -> list[Run]:
        """Spans of whole words, until `budget` tokens are covered; the last may end inside a word.

        A span begins with the word of a token that is drawn of all that are not covered yet. It
        passes over words that are covered, which count as words of the span. Spans that overlap or
        touch are one.

        Args:
            begins: the first token of each word, then the number of tokens.
            budget: how many tokens to cover, at most all.
            entities: if not None, entities are drawn, too, and covered as a whole.
        """
        rng, count, left = self._rng, begins[-1], budget
        word_of = np.repeat(np.arange(len(begins) - 1), np.diff(begins)).tolist()
        covered = bytearray(count)
        while left:
            if entities is not None and rng.random_sample() <= self._entity_prob:
                if not entities:
                    continue
                first, end = entities[rng.randint(len(entities))]
            else:
                length = self._lower + int(
                    np.searchsorted(self._limits, rng.random_sample(), "right"))
                if entities is None:
                    rng.random_sample()     # whether it begins at a tagged token: never
                anchor = rng.randint(count)
                if covered[anchor]:
                    continue
                word = word_of[anchor]
                first, end = begins[word], begins[min(word + length, len(begins) - 1)]
            for token in range(first, end):
                if not left:
                    break
                left -= not covered[token]
                covered[token] = 1
        return runs_of(np.frombuffer(covered, np.uint8))


class SpanMasks:
    """Draws the masks of blocks, as `StaticMasks` does.

    Args: see `StaticMasks`. Random tokens are tokens of `documents`, as often as they are there.
    """

    def __init__(self, masking: MaskTokens, documents: Documents, stream: PythonRandom,
                 vocabulary: Vocabulary, quotas: Sequence[int], max_predictions_per_seq: int,
                 room: int) -> None:
        self._masking, self._documents, self._stream = masking, documents, stream
        self._layout, self._room, self._quotas = vocabulary.layout, room, quotas
        self._rng = np.random.RandomState(stream.seed % 2**32)
        self._chooser = SpanChooser(masking, self._rng)
        self._slots, self._joins = max_predictions_per_seq, documents.joins(masking.units)
        self._rows: list[list[tuple]] = []

    def draw(self, a_start: int, a_length: int, b_start: int, b_length: int) -> None:
        """Draws the predictions of one block; none of one that is longer than `room`, which is
        left out."""
        if a_length > self._room:
            return
        masking, block = self._masking, slice(a_start, a_start + a_length)
        budget = self._quotas[self._layout.length(a_length, 0)]
        scheme = masking.schemes[self._stream.below(len(masking.schemes))]
        if scheme == "random":
            runs = self._chooser.random(a_length, budget)
        else:
            begins = [*range(a_length + 1)]
            if self._joins is not None:
                starts = np.flatnonzero(self._joins[block] == 0).tolist()
                begins = [0, *(start for start in starts if start), a_length]
            entities = runs_of(self._documents.entities[block]) if scheme == "ner_span" else None
            runs = self._chooser.spans(begins, budget, entities)
        row: list[tuple] = []
        for run in runs:
            row += self._predictions(run, a_length, scheme)
        self._rows.append(row)

    def _predictions(self, run, count, scheme):
        """For each token of a run: position, replacement and the values of SPAN_FEATURES."""
        masking, rng, before = self._masking, self._rng, self._layout.before
        masked, random = masking.shares
        tokens = self._documents.tokens
        first, end = run
        left, right, has_pair = first - 1, end, first > 0 and end < count
        if masking.endpoints == "internal":
            left, right, has_pair = first, end - 1, True
        has_pair &= scheme != "random"
        thrown, found = rng.random_sample(), []
        for token in range(first, end):
            if masking.replacement_method == "word_piece" and scheme != "random":
                thrown = rng.random_sample()
            shown = MASK if thrown < masked else KEEP
            if masked <= thrown < masked + random:
                shown = int(tokens[rng.randint(len(tokens))])
            offset = token - first
            pair = ((left + before, right + before, offset, 1)
                    if has_pair and offset < masking.max_pair_targets else (0, 0, 0, 0))
            found.append((token + before, shown, *pair))
        return found

    def place(self) -> Masks:
        """The predictions of the blocks drawn since the last call."""
        counts = np.array([len(row) for row in self._rows], np.uint16)
        columns = np.zeros((len(self._rows), self._slots, 2 + len(SPAN_FEATURES)), np.int32)
        columns[:, :, 1] = KEEP
        if self._rows:
            used = np.arange(self._slots) < counts[:, None]
            columns[used] = np.array([values for row in self._rows for values in row])
        self._rows = []
        positions, replacements, *pairs = np.moveaxis(columns, 2, 0)
        extra = dict(zip(SPAN_FEATURES, pairs))
        extra["span_weights"] = extra["span_weights"].astype(np.float32)
        return Masks(positions.astype(np.uint16), replacements, counts, extra)
