"""DeBERTa's masks: one n-gram in each window of a sequence (microsoft/DeBERTa, `mlm_task.py`,
NGramMaskGenerator), 6 times as long as the n-gram. Units are hidden from the left, until the share
of tokens is reached, so the end of a full sequence is rarely hidden."""

import dataclasses
import math
from bisect import bisect_left

import lazy_loader
import numpy as np

from bert_tf.data.masking import base
from bert_tf.data.masking.base import KEEP, MASK
from bert_tf.data.masking.bert import StaticMasks
from bert_tf.data.masking.dynamic import units_of
from bert_tf.flags import option
from bert_tf.models.electra.masks import MasksWithDraws

tf = lazy_loader.load("tensorflow")


def length_limits(ngram: int) -> list[float]:
    """The shares of n-grams up to each length; n units are drawn in proportion to 1/n."""
    shares = 1.0 / np.arange(1, ngram + 1)
    return (shares / shares.sum()).cumsum().tolist()


class NgramMasks(StaticMasks):
    """Draws masks while records are made; see `StaticMasks`. `cut` counts the tokens of a last word
    that had no room; they stay in the text."""

    def __init__(self, masking, documents, vocabulary, stream, options, room):
        super().__init__(masking, documents, vocabulary, stream, options, room)
        self._is_special = np.zeros(vocabulary.size, bool)
        self._is_special[[*vocabulary.special_ids, vocabulary.mask_id]] = True
        self._window, self._shares = int(1 / options.masked_lm_prob), masking.shares
        self._length_limits = length_limits(masking.longest)
        self._drawable = list(vocabulary.ids.values())
        self._replacements: list[int] = []

    def _shown(self):
        shown, self._replacements = self._replacements, []
        return shown

    def draw(self, a_start, a_length, b_start, b_length):
        def of_sequence(array):
            return np.concatenate([array[a_start:a_start + a_length],
                                   array[b_start:b_start + b_length]])

        places = np.flatnonzero(~self._is_special[of_sequence(self._documents.tokens)])
        begins = np.arange(len(places))
        if self._joins is not None:     # the first token begins a unit even where its word was cut
            begins = np.flatnonzero((of_sequence(self._joins)[places] == 0) | (begins == 0))
        quota = self._quotas[b_length > 0][a_length + b_length]
        edges, chosen = [*begins.tolist(), len(places)], []
        for unit in self._choose(len(begins)):
            chosen += places[edges[unit]:edges[unit + 1]].tolist()
            if len(chosen) >= quota:
                break
        replacements = [self._throw() for _ in chosen]
        self.cut += max(0, len(chosen) - self._slots)
        self._a_lengths.append(a_length)
        self._counts.append(min(len(chosen), self._slots))
        self._chosen += chosen[:self._slots]
        self._replacements += replacements[:self._slots]

    def _choose(self, count):
        """The units of the n-grams of a sequence of `count` units."""
        stream, limits = self._stream, self._length_limits
        chosen, offset = [], 0
        while offset < count:
            length = 1 + bisect_left(limits, stream.random() * limits[-1])
            width = min(length * self._window, count - offset)
            first = offset + stream.below(width)
            chosen += range(first, min(first + length, count))
            offset = max(offset + width, first + length)
        return chosen

    def _throw(self):
        masked, random = self._shares
        thrown = self._stream.random()
        if thrown < masked:
            return MASK
        if thrown < round(1 - random, 12):
            return KEEP
        return self._drawable[self._stream.below(len(self._drawable))]


class NgramMasksInTraining(MasksWithDraws):
    takes = 2, 3

    def candidates(self, input_ids, input_mask):
        return super().candidates(input_ids, input_mask) & (input_ids != self.mask_id)

    def choose(self, candidates, quota, keys, token_boundary=None):
        size = self.max_seq_length
        unit, sizes = units_of(candidates, token_boundary)
        draws = tf.reshape(keys, [-1, size, 2])     # of each window: its length, its place
        window, limits = int(1 / self.masked_lm_prob), length_limits(self.masking.longest)
        count = tf.reduce_sum(tf.cast(sizes > 0, tf.int32), 1)                      # [B]
        places = tf.range(size)

        def turn(number, offset, chosen):
            drawn = draws[:, number]                                                # [B, 2]
            length = 1 + tf.reduce_sum(tf.cast(
                drawn[:, :1] >= tf.constant(limits[:-1], tf.float32), tf.int32), 1)
            width = tf.minimum(length * window, count - offset)
            first = offset + tf.minimum(tf.cast(drawn[:, 1] * tf.cast(width, tf.float32), tf.int32),
                                        width - 1)
            inside = (places >= first[:, None]) & (places < (first + length)[:, None])
            inside &= (offset < count)[:, None]
            return number + 1, tf.maximum(offset + width, first + length), chosen | inside

        chosen = tf.while_loop(lambda _, offset, chosen: tf.reduce_any(offset < count), turn, (
            tf.constant(0), tf.zeros_like(count), tf.zeros_like(sizes, tf.bool)))[2]
        sizes = tf.where(chosen, sizes, 0)
        chosen &= tf.cumsum(sizes, 1, exclusive=True) < quota[:, None]
        return candidates & tf.gather(chosen, tf.minimum(unit, size - 1), batch_dims=1)


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    """N-grams that are masked together (DeBERTa)."""

    called = "n-grams"
    always_predicts = False     # of special tokens alone
    spares_special = True
    static_class, dynamic_class = NgramMasks, NgramMasksInTraining

    ngram: int = option(
        0, "Maximum number of successive words or tokens that are masked together. Default: 3 "
        "words, or 1 token.", least=0, most=1 << 10)

    @property
    def longest(self) -> int:
        """The most units of an n-gram."""
        return self.ngram or {"subwords": 1}.get(self.units, 3)

    def most_predictions(self, max_seq_length, masked_lm_prob):
        return math.ceil(max_seq_length * masked_lm_prob / 10) * 10
