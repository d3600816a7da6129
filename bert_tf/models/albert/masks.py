"""ALBERT's masks: up to `ngram` units in a row at once (google-research/albert,
create_pretraining_data.py, create_masked_lm_predictions).

The original draws masks while records are made. Masks of training have the same distribution.
"""

import dataclasses

import lazy_loader
import numpy as np

from bert_tf.data.masking import base
from bert_tf.data.masking.bert import StaticMasks
from bert_tf.data.masking.dynamic import DynamicMasks, units_of
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.errors import InputError
from bert_tf.flags import option
from bert_tf.tokenization.vocabulary import Vocabulary

tf = lazy_loader.load("tensorflow")

_LENGTHS_AT_ONCE = 1 << 14
_THROWN = -3        # the place of a replacement that is not known yet


class NgramMasks(StaticMasks):
    """Draws masks while records are made; see `StaticMasks`. The original draws the lengths from
    NumPy's global generator, which it never seeds; here it has the seed of the other stream (modulo
    2**32, the seeds that it takes)."""

    def __init__(self, masking: "Masking", documents: Documents, vocabulary: Vocabulary,
                 stream: PythonRandom, *args) -> None:
        super().__init__(masking, documents, vocabulary, stream, *args)
        self._ngram, self._tokens = masking.ngram, documents.tokens
        self._permutes = masking.do_permutation
        self._slots *= 1 + masking.do_permutation
        self._replacements: list[int] = []      # where tokens are permuted
        self._lengths = _draw_lengths(stream.seed % 2**32, masking)

    def draw(self, a_start, a_length, b_start, b_length):
        count = a_length + b_length
        begins = self._begins(a_start, a_length, b_start, b_length)
        order = list(range(len(begins) - 1))
        begins += [count] * (self._ngram - 1)       # the last n-grams are shorter
        quota = self._quotas[b_length > 0][count]
        covered = bytearray(count)
        self._stream.shuffle(order)
        chosen = self._choose(order, begins, quota, covered)
        self._chosen += chosen
        self._note(a_length, len(chosen))
        if not self._permutes:
            self._stream.pass_shuffle(len(order), self._room)
            return
        self._replacements += [_THROWN] * len(chosen)
        self._stream.shuffle(order)
        moved = sorted(self._choose(order, begins, quota, covered))
        places = moved.copy()
        self._stream.shuffle(places)
        self._chosen += moved
        self._counts[-1] += len(moved)
        self._replacements += [
            int(self._tokens[place + (a_start if place < a_length else b_start - a_length)])
            for place in places]

    def _shown(self):
        thrown = super()._shown()
        if not self._permutes:
            return thrown
        shown, self._replacements = np.array(self._replacements, np.int32), []
        shown[shown == _THROWN] = thrown
        return shown

    def _choose(self, order, begins, quota, covered):
        """The candidates of n-grams, in the order of their first units, at most `quota`. `begins`
        has the first candidate of each unit, then the number of candidates; `covered` marks the
        candidates that are taken, and is changed."""
        chosen, lengths = [], self._lengths
        for unit in order:
            if not quota:
                break
            # A length is drawn for units that are taken already, too.
            length, first = next(lengths), begins[unit]
            size = begins[unit + length] - first
            while size > quota and length > 1:
                length -= 1
                size = begins[unit + length] - first
            end = first + size
            if size <= quota and not any(covered[first:end]):
                covered[first:end] = b"\1" * size
                chosen += range(first, end)
                quota -= size
        return chosen


class NgramMasksInTraining(DynamicMasks):
    takes = 2, 2

    def choose(self, candidates, quota, keys, token_boundary=None):
        keys, lengths = tf.split(keys, 2, 1)
        unit, sizes = units_of(candidates, token_boundary)
        limits = tf.constant(length_limits(self.masking), tf.float32)
        lengths = 1 + tf.reduce_sum(tf.cast(lengths[:, :, None] >= limits[:-1], tf.int32), 2)
        covered = cover_ngrams_batch(sizes, lengths, quota, keys, self.masking.ngram)
        return candidates & tf.gather(covered, tf.minimum(unit, self.max_seq_length - 1),
                                      batch_dims=1)


def cover_ngrams_batch(sizes, lengths, quota, uniforms, ngram: int):
    """The units that are covered, bool [B, S]. Units are taken in the order of their uniforms as
    `NgramMasks` takes them, each with the following units of its n-gram.

    Args:
        sizes: int32 [B, S], tokens in each unit, 0 for units that do not exist, which come last.
        lengths: int32 [B, S], the units of the n-gram that begins with each, up to `ngram`.
        quota: int32 [B], most tokens.
    """
    width = tf.shape(sizes)[1]
    order = tf.argsort(tf.where(sizes > 0, uniforms, 2.0))
    last = tf.reduce_max(tf.reduce_sum(tf.cast(sizes > 0, tf.int32), 1))
    ends = tf.pad(tf.cumsum(sizes, 1), [[0, 0], [1, 0]])            # tokens before each unit
    units = tf.range(width)

    def turn(number, covered, left):
        first = order[:, number]
        length = tf.gather(lengths, first, batch_dims=1)

        def size_of(count):     # the last n-grams are shorter
            return (tf.gather(ends, tf.minimum(first + count, width), batch_dims=1)
                    - tf.gather(ends, first, batch_dims=1))
        for count in range(ngram, 1, -1):
            length -= tf.cast((length == count) & (size_of(count) > left), tf.int32)
        size = size_of(length)
        inside = (units >= first[:, None]) & (units < (first + length)[:, None])
        fits = (size <= left) & ~tf.reduce_any(inside & covered, 1)
        return (number + 1, covered | (inside & fits[:, None]), left - tf.where(fits, size, 0))

    return tf.while_loop(
        lambda number, covered, left: (number < last) & tf.reduce_any(left > 0), turn,
        (tf.constant(0), tf.zeros_like(sizes, tf.bool), quota))[1]


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    """N-grams that are masked together (ALBERT)."""

    called = "n-grams"
    static_class, dynamic_class = NgramMasks, NgramMasksInTraining

    ngram: int = option(
        3, "Maximum number of successive words or tokens that are masked together.", least=1,
        most=1 << 10)
    favor_shorter_ngram: bool = option(
        True, "Mask n-grams with probabilities proportional to 1/n. If false, the longest n-grams "
        "are the most frequent.")
    do_permutation: bool = option(
        False, "Also permute the same number of other tokens, and predict them. Records then have "
        "room for twice --max_predictions_per_seq.")

    def check(self, segments):
        super().check(segments)
        if self.dynamic and self.do_permutation:
            raise InputError("--masking=dynamic: tokens are permuted while records are made; leave "
                             "out --do_permutation or --masking=dynamic.")

    def features(self):
        # Google's records of ALBERT have the boundaries of words besides the masks.
        return super().features() + ["token_boundary"] * (not self.dynamic)

    def slots(self, max_predictions_per_seq, max_seq_length):
        return (super().slots(max_predictions_per_seq, max_seq_length)
                + max_predictions_per_seq * self.do_permutation)


def length_limits(masking: "Masking") -> np.ndarray:
    """float64 [ngram], the shares of n-grams up to each length."""
    shares = 1 / np.arange(1, masking.ngram + 1)
    shares /= shares.sum()
    if not masking.favor_shorter_ngram:
        shares = shares[::-1]
    limits = (shares / shares.sum()).cumsum()
    return limits / limits[-1]


def _draw_lengths(seed, masking):
    """Yields the draws of `numpy.random.choice` from 1 .. ngram, without end."""
    limits, stream = length_limits(masking), np.random.RandomState(seed)
    while True:
        uniforms = stream.random_sample(_LENGTHS_AT_ONCE)
        yield from (np.searchsorted(limits, uniforms, "right") + 1).tolist()
