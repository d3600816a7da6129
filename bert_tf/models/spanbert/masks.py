"""SpanBERT's masks (arXiv:1907.10529): spans of words, which are predicted from their ends too.

Static masks are drawn as its pre-training code draws them (fairseq/data/masking.py:
PairWithSpanMaskingScheme and its relatives), from one stream of numpy's legacy generator, which
continues from block to block. Masks that training draws have the same distribution. A sequence is
one segment, a block.
"""

import dataclasses
import math
from collections.abc import Sequence

import lazy_loader
import numpy as np

from bert_tf.data.masking import base, dynamic
from bert_tf.data.masking.base import KEEP, MASK, DrawnMasks, Masks, quotas
from bert_tf.data.records import manifest
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.errors import InputError
from bert_tf.flags import only, option

tf = lazy_loader.load("tensorflow")

SPAN_FEATURES = ("span_left", "span_right", "span_offset", "span_weights")
_DRAWS = 4          # numbers of a turn: whether it is an entity, which, the length, the anchor
# A run of chosen tokens: the first, and the last + 1.
Run = tuple[int, int]


def length_limits(masking: "Masking") -> np.ndarray:
    """float64 [lengths], the shares of spans up to each: a geometric distribution, cut off."""
    exponents = np.arange(masking.span_lower, masking.span_upper + 1) - 1
    shares = np.array([masking.geometric_p * (1 - masking.geometric_p)**int(exponent)
                       for exponent in exponents])
    limits = (shares / shares.sum()).cumsum()
    return limits / limits[-1]      # as numpy.random.choice does


def runs_of(marks: np.ndarray) -> list[Run]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marks, [0]]).astype(np.int8))).tolist()
    return list(zip(edges[::2], edges[1::2]))


class SpanChooser:
    """Chooses the tokens of blocks with numpy's legacy generator."""

    def __init__(self, masking: "Masking", rng: np.random.RandomState) -> None:
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
        `begins` are the first token of each word, then the number of tokens. If `entities` is not
        None, entities are drawn, too, and covered as a whole.

        A span begins with the word of a token that is drawn of all that are not covered yet. It
        passes over words that are covered, which count as words of the span. Spans that overlap or
        touch are one.
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


class SpanMasks(DrawnMasks):
    """Draws the masks of blocks, as `bert.StaticMasks`. Random tokens are as frequent as in the
    text."""

    def __init__(self, masking, documents, vocabulary, stream, options, room):
        super().__init__(masking, documents, vocabulary, stream, options, room)
        self._layout = vocabulary.layout
        self._quotas = quotas(options.max_seq_length, options.masked_lm_prob, self._slots,
                              raised_without=self._layout.special(False))
        self._rng = np.random.RandomState(stream.seed % 2**32)
        self._chooser = SpanChooser(masking, self._rng)
        self._rows: list[list[tuple]] = []

    def draw(self, a_start: int, a_length: int, b_start: int, b_length: int) -> None:
        """Draws the predictions of a block; none of one longer than `room`, which is left out."""
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
        thrown, predictions = rng.random_sample(), []
        for token in range(first, end):
            if masking.replacement_method == "word_piece" and scheme != "random":
                thrown = rng.random_sample()
            shown = MASK if thrown < masked else KEEP
            if masked <= thrown < masked + random:
                shown = int(tokens[rng.randint(len(tokens))])
            offset = token - first
            pair = 0, 0, 0, 0
            if has_pair and offset < masking.max_pair_targets:
                pair = left + before, right + before, offset, 1
            predictions.append((token + before, shown, *pair))
        return predictions

    def place(self) -> Masks:
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


def cover_spans_batch(words, budget, limits, lower: int, draw, entity_prob=None, entities=None):
    """Covers a batch's spans as `SpanChooser.spans`; returns the covered candidates, bool [B, S].

    Args:
        words: int32 [B, S], the number of each candidate's word, from 0; -1 for tokens that are
            never predicted. The candidates of a row are neighbours and begin at position 1.
        budget: int32 [B], how many candidates to cover.
        limits: float32 [n], see `length_limits`; `lower` is the first of these lengths.
        draw: function of the number of a turn that returns float32 [B, 4] in [0, 1).
        entity_prob: float32 [B], how often an entity is drawn instead of a span; -1 for never.
        entities: int32 [B, S], the number of each candidate's entity, from 0, and -1 elsewhere.
    """
    candidates = words >= 0
    count = tf.reduce_sum(tf.cast(candidates, tf.int32), 1)

    def turn(number, covered, left):
        kind, which, length, anchor = tf.unstack(draw(number), axis=1)
        words_of_span = lower + tf.reduce_sum(tf.cast(length[:, None] >= limits, tf.int32), 1)
        position = 1 + tf.minimum(tf.cast(anchor * tf.cast(count, tf.float32), tf.int32),
                                  tf.maximum(count - 1, 0))
        word = tf.gather(words, position, batch_dims=1)
        inside = (words >= word[:, None]) & (words < (word + words_of_span)[:, None])
        inside &= ~tf.gather(covered, position, batch_dims=1)[:, None]
        if entities is not None:
            of_row = tf.reduce_max(entities, 1) + 1
            chosen = tf.minimum(tf.cast(which * tf.cast(of_row, tf.float32), tf.int32), of_row - 1)
            entity = (entities == chosen[:, None]) & (entities >= 0)
            inside = tf.where((kind <= entity_prob)[:, None], entity, inside)
        new = inside & candidates & ~covered
        new &= tf.cumsum(tf.cast(new, tf.int32), 1) <= left[:, None]
        return number + 1, covered | new, left - tf.reduce_sum(tf.cast(new, tf.int32), 1)

    return tf.while_loop(lambda _, covered, left: tf.reduce_any(left > 0), turn,
                         (tf.constant(0), tf.zeros_like(candidates), budget))[1]


@dataclasses.dataclass(frozen=True)
class DynamicSpans(dynamic.DynamicMasks):
    """Draws masks while training, random tokens by the text's counts `token_counts`, int64 [V]."""

    token_counts: np.ndarray

    def __call__(self, batch: dict, seed: int, numbers) -> dict:
        ids, mask = batch["input_ids"], batch["input_mask"]
        size, slots = self.max_seq_length, self.max_predictions_per_seq
        uniforms = dynamic.draw_uniforms(seed, numbers, 1 + 3 * slots + size)
        scheme, throws, drawn, keys = tf.split(uniforms, [1, slots, 2 * slots, size], 1)
        limits = quotas(size, self.masked_lm_prob, slots, raised_without=2)
        budget = tf.gather(limits, tf.reduce_sum(mask, 1))
        schemes = self.masking.schemes
        scheme = tf.cast(scheme[:, 0] * len(schemes), tf.int32)
        is_random = tf.gather([name == "random" for name in schemes], scheme)

        def draw(turn):
            return dynamic.draw_uniforms(seed, numbers, _DRAWS, uniforms.shape[1] + _DRAWS * turn)

        candidates = self.candidates(ids, mask)
        chosen = tf.zeros_like(candidates)
        if "random" in schemes:
            chosen = is_random[:, None] & dynamic.choose_tokens_batch(
                candidates, budget, keys, slots)
        if set(schemes) != {"random"}:
            entity_prob = tf.gather([self.masking.ner_masking_prob if name == "ner_span" else -1.0
                                     for name in schemes], scheme)
            chosen |= self._cover(batch, candidates, tf.where(is_random, 0, budget), draw,
                                  entity_prob)
        others = {name: value for name, value in batch.items()
                  if name not in ("token_boundary", "entities")}
        return {**others, **self._hide(ids, tf.reduce_sum(mask, 1), chosen, is_random, throws,
                                      drawn)}

    def _cover(self, batch, candidates, budget, draw, entity_prob):
        begins = candidates
        if "token_boundary" in batch:
            begins &= (batch["token_boundary"] > 0) | (
                tf.cumsum(tf.cast(candidates, tf.int32), 1) == 1)
        entities = None
        if "ner_span" in self.masking.schemes:
            named = candidates & (batch["entities"] > 0)
            first = named & ~tf.pad(named[:, :-1], [[0, 0], [1, 0]])
            entities = tf.where(named, tf.cumsum(tf.cast(first, tf.int32), 1) - 1, -1)
        words = tf.cumsum(tf.cast(begins, tf.int32), 1) - 1
        return cover_spans_batch(
            tf.where(candidates, words, -1), budget,
            tf.constant(length_limits(self.masking), tf.float32), self.masking.span_lower, draw,
            entity_prob, entities)

    def _hide(self, ids, length, chosen, is_random, throws, drawn):
        """The features, given chosen, bool [B, S], and the lengths of sequences, int32 [B]."""
        slots, masking = self.max_predictions_per_seq, self.masking
        positions, used = dynamic.positions_of(chosen, slots)
        labels = tf.where(used, tf.gather(ids, positions, batch_dims=1), 0)
        # The slots of one span follow each other.
        follows = (positions[:, 1:] == positions[:, :-1] + 1) & used[:, 1:] & ~is_random[:, None]
        follows = tf.pad(follows, [[0, 0], [1, 0]])
        slot = tf.range(slots)
        later = slot[None, :] >= slot[:, None]                              # [P, P]
        first = tf.reduce_max(tf.where(tf.transpose(later) & ~follows[:, None], slot, 0), 2)
        ends = ~tf.pad(follows[:, 1:], [[0, 0], [0, 1]])
        last = tf.reduce_min(tf.where(later & ends[:, None], slot, slots - 1), 2)       # [B, P]
        if masking.replacement_method != "word_piece":
            throws = tf.where(is_random[:, None], throws, tf.gather(throws, first, batch_dims=1))
        masked, random = masking.shares
        shown = tf.where(throws < masked, self.mask_id, tf.where(
            throws < masked + random, self._draw_ids(drawn), labels))
        return {**dynamic.hide_batch(ids, positions, labels, shown, used),
                **self._pairs(positions, first, last, used & ~is_random[:, None], length)}

    def _pairs(self, positions, first, last, used, length):
        """SPAN_FEATURES, given the first and the last slot of each slot's span, int32 [B, P]."""
        left, right = (tf.gather(positions, slots, batch_dims=1) for slots in (first, last))
        offset = tf.range(self.max_predictions_per_seq) - first
        used &= offset < self.masking.max_pair_targets
        if self.masking.endpoints == "external":
            left, right = left - 1, right + 1
            used &= (left > 0) & (right < length[:, None] - 1)
        return {"span_left": tf.where(used, left, 0), "span_right": tf.where(used, right, 0),
                "span_offset": tf.where(used, offset, 0), "span_weights": tf.cast(used, tf.float32)}

    def _draw_ids(self, uniforms):
        """Tokens as often as the text has them, int32 [B, P], from float32 [B, 2P]."""
        high, low = tf.split(tf.cast(uniforms, tf.float64), 2, 1)
        limits = tf.constant(self.token_counts.cumsum(), tf.float64)
        drawn = (high + low * 2.0**-24) * limits[-1]
        return tf.reshape(tf.searchsorted(limits, tf.reshape(drawn, [-1]), "right"),
                          tf.shape(drawn))


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    """Spans that are masked together (SpanBERT)."""

    called, static_class = "spans", SpanMasks
    extra_features = SPAN_FEATURES

    schemes: tuple[str, ...] = option(
        ("pair_span",), "How the tokens of a sequence are chosen; each sequence gets one of the "
        "named schemes: pair_span, spans of words; random, single tokens; ner_span, entities and "
        "spans.", choices=("pair_span", "random", "ner_span"))
    span_lower: int = option(1, "Minimum words of a span.", least=1, most=1 << 10)
    span_upper: int = option(
        10, "Maximum words of a span; 1 masks single words.", least=1, most=1 << 10)
    geometric_p: float = option(
        0.2, "p of the geometric distribution of a span's length; near 0 for a uniform one.",
        above=0, below=1)
    replacement_method: str = option(
        "span", "Replace a whole span in one way (span), or each of its tokens separately "
        "(word_piece).", choices=("span", "word_piece"))
    endpoints: str = option(
        "external", "Tokens from which a span is predicted: the tokens around the span (external), "
        "or its first and last token (internal).", choices=("external", "internal"))
    max_pair_targets: int = option(
        15, "Number of tokens of a span that are predicted from --endpoints.", least=1,
        most=1 << 10)
    ner_masking_prob: float = only("schemes", "ner_span")(
        0.5, "Probability of masking an entity rather than a span.", least=0, most=0.99)

    def dynamic_masks(self, record, max_seq_length, max_predictions_per_seq):
        return DynamicSpans.of(self, record, max_seq_length, max_predictions_per_seq,
                               token_counts=manifest.token_counts(record))

    def check(self, segments):
        super().check(segments)
        if self.span_upper < self.span_lower:
            raise InputError(f"--span_upper is {self.span_upper}; it must be at least "
                             f"--span_lower={self.span_lower}.")
        if segments.sentence_ends or PAIRINGS[segments.pairing].segments > 1:
            raise InputError(f"--segments={segments.pairing}: spans need sequences of one text "
                             "without separators; give --segments=doc_blocks or doc_sentences.")

    def features(self):
        entities = ["entities"] * (self.dynamic and "ner_span" in self.schemes)
        return [*super().features(), *entities]

    def most_predictions(self, max_seq_length, masked_lm_prob):
        return math.ceil(masked_lm_prob * (max_seq_length - 2))

    least_slots = most_predictions
