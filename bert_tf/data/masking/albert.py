"""ALBERT's masks: up to `ngram` units in a row at once (google-research/albert,
create_pretraining_data.py, create_masked_lm_predictions)."""

import dataclasses

import numpy as np

from bert_tf.data.masking import base
from bert_tf.data.masking.bert import StaticMasks
from bert_tf.data.masking.masks import quotas
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom

_LENGTHS_AT_ONCE = 1 << 14


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    """ALBERT's masking.

    Attributes:
        ngram: the most units in a row that are predicted together.
        favor_shorter_ngram: whether n units have the probability of 1 / n; if not, the longest are
            the most frequent.
        do_permutation: whether as many other tokens again change places with each other and are
            predicted too.
    """

    called = "n-grams"

    ngram: int = 3
    favor_shorter_ngram: bool = True
    do_permutation: bool = False

    def static_masks(self, documents, vocabulary, stream, options, room):
        return NgramMasks(self, documents, stream, vocabulary, quotas(
            options.max_seq_length, options.masked_lm_prob, options.max_predictions_per_seq),
            options.max_predictions_per_seq, room)

    def features(self):
        # Google's records of ALBERT have the boundaries of words beside the masks.
        return [*super().features(), "token_boundary"]

    def slots(self, max_predictions_per_seq, max_seq_length):
        return (super().slots(max_predictions_per_seq, max_seq_length)
                + max_predictions_per_seq * self.do_permutation)


class NgramMasks(StaticMasks):
    """Draws masks while records are made; see `StaticMasks`.

    The original draws the lengths from NumPy's global generator, which it never seeds; here it has
    the seed of the other stream (modulo 2**32, the seeds that it takes).
    """

    def __init__(self, masking: "Masking", documents: Documents, stream: PythonRandom,
                 *args) -> None:
        super().__init__(masking, documents, stream, *args)
        self._ngram, self._tokens = masking.ngram, documents.tokens
        self._permutes = masking.do_permutation
        self._slots *= 1 + masking.do_permutation
        self._lengths = _draw_lengths(stream.seed % 2**32, masking.ngram,
                                      masking.favor_shorter_ngram)

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
        self._stream.shuffle(order)
        moved = sorted(self._choose(order, begins, quota, covered))
        places = moved.copy()
        self._stream.shuffle(places)
        self._chosen += moved
        self._counts[-1] += len(moved)
        self._replacements += [
            int(self._tokens[place + (a_start if place < a_length else b_start - a_length)])
            for place in places]

    def _choose(self, order, begins, quota, covered):
        """The candidates of n-grams, in the order of their first units, until the quota is reached.

        Args:
            order: the units.
            begins: the first candidate of each unit, then the number of candidates.
            quota: most candidates.
            covered: bytearray, not 0 for candidates that are taken; changed in place.
        """
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


def _draw_lengths(seed, ngram, favor_shorter):
    """Yields the draws of `numpy.random.choice` from 1 .. ngram, without end."""
    shares = 1 / np.arange(1, ngram + 1)
    shares /= shares.sum()
    if not favor_shorter:
        shares = shares[::-1]
    limits = (shares / shares.sum()).cumsum()
    limits /= limits[-1]
    stream = np.random.RandomState(seed)
    while True:
        uniforms = stream.random_sample(_LENGTHS_AT_ONCE)
        yield from (np.searchsorted(limits, uniforms, "right") + 1).tolist()
