"""RoBERTa's masks: a share of the units, rounded up or down at random so that its mean is exact
(fairseq, data/mask_tokens_dataset.py). Special tokens are masked and predicted like any other.

A static mask is a function of the seed, the epoch and the number of the block.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import lazy_loader
import numpy as np

from bert_tf.data.masking import base
from bert_tf.data.masking.base import KEEP, MASK, DrawnMasks, Masks
from bert_tf.data.masking.dynamic import DynamicMasks, choose_tokens_batch, units_of
from bert_tf.data.records.features import SpecialIds, pack_pairs

tf = lazy_loader.load("tensorflow")

# fairseq at its last commit, and fairseq 0.9 to 0.12.
GENERATORS = {"default_rng": np.random.default_rng, "random_state": np.random.RandomState}
_SEEDS = 1e6        # a float, so that the remainder is one of floats


def block_seed(seed: int, epoch: int, index: int) -> int:
    """The seed of one block's generator, the same in all versions of Python since 3.8."""
    return int(hash((seed, epoch, index)) % _SEEDS)


def drawable(vocab_size: int, excluded: Sequence[int]) -> np.ndarray:
    """float [V], the shares of the ids up to each one where all but some are equally likely."""
    shares = np.ones(vocab_size)
    shares[list(excluded)] = 0
    shares = (shares / shares.sum()).cumsum()
    return shares / shares[-1]      # as numpy.random.choice does


def mask_block(block: np.ndarray, seed: int, epoch: int, index: int, *, limits: np.ndarray,
               mask_id: int, pad_id: int = 1, masked_lm_prob: float = 0.15,
               shares: tuple[float, float] = (0.8, 0.1), begins: np.ndarray | None = None,
               generator: str = "default_rng") -> tuple[np.ndarray, np.ndarray]:
    """Masks one block of ids, int [n], the first of a special token; returns the masked block, and
    the tokens to predict, `pad_id` elsewhere; int [n] both.

    Args:
        epoch: from 1.
        index: the number of the block in the data set, from 0.
        limits: see `drawable`; fairseq excludes the first four ids.
        masked_lm_prob: share of the tokens, or of the words, to predict.
        begins: bool [n], where a word begins, if words are masked as a whole; None for single
            tokens. Special tokens begin words. The first word of a line continues the word before
            it, because no blank begins it.
    """
    rng = GENERATORS[generator](block_seed(seed, epoch, index))
    uniforms: Any = rng.random
    starts = np.arange(len(block)) if begins is None else np.flatnonzero(begins)
    lengths = np.diff(starts, append=len(block))
    count = len(starts)
    chosen = np.zeros(count, bool)
    chosen[rng.choice(count, int(masked_lm_prob * count + uniforms()), replace=False)] = True
    # `touched`: the chosen units that do not become [MASK]; `kept`: the touched units that stay.
    random = shares[1]
    keep = round(1 - shares[0] - random, 12)
    touched = stays = np.zeros(count, bool)
    if random + keep > 0:
        touched = stays = chosen & (uniforms(count) < random + keep)
        if not keep:
            stays = np.zeros(count, bool)
        elif random:
            stays = touched & (uniforms(count) < keep / (random + keep))
    chosen, hidden, drawn = (np.repeat(units, lengths) for units in (
        chosen, chosen & ~stays, touched & ~stays))
    source = block.copy()
    source[hidden] = mask_id
    if drawn.any():
        # The same draws as rng.choice(V, size, p=shares).
        source[drawn] = np.searchsorted(limits, uniforms(drawn.sum()), "right")
    return source, np.where(chosen, block, pad_id)


class BlockMasks(DrawnMasks):
    """Draws the masks of sequences, as `bert.StaticMasks` does, with `mask_block`. Sequences are
    numbered from 0 in the order of the text. Where the text begins again, so does another epoch;
    the first is 1."""

    def __init__(self, masking, documents, vocabulary, stream, options, room):
        super().__init__(masking, documents, vocabulary, stream, options, room)
        self._limits = drawable(vocabulary.size, vocabulary.special_ids)
        self._epoch, self._index, self._last_start = 1, -1, -1
        self._drawn: list[tuple[np.ndarray, np.ndarray]] = []

    def draw(self, a_start: int, a_length: int, b_start: int, b_length: int) -> None:
        """Draws one sequence's predictions; one longer than `room` takes its number only."""
        self._index += 1
        if a_start <= self._last_start:
            self._epoch, self._index = self._epoch + 1, 0
        self._last_start = a_start
        if a_length + b_length > self._room:
            return
        layout, begins = self._vocabulary.layout, None
        runs = [[a_start], [a_length], [b_start], [b_length], layout.length(a_length, b_length)]
        block = pack_pairs(self._documents.tokens, *runs, self._vocabulary)["input_ids"][0]
        if self._joins is not None:
            marks = pack_pairs(self._joins, *runs, SpecialIds(layout))["input_ids"][0]
            begins = marks == 0
        source, target = mask_block(
            block, self._stream.seed, self._epoch, self._index, limits=self._limits,
            mask_id=self._vocabulary.mask_id, pad_id=-1, masked_lm_prob=self._prob,
            shares=self._masking.shares, begins=begins)
        positions = np.flatnonzero(target >= 0)[:self._slots]
        shown = source[positions]
        shown = np.where(shown == self._vocabulary.mask_id, MASK, shown)
        self._drawn.append((positions, np.where(shown == block[positions], KEEP, shown)))

    def place(self) -> Masks:
        shape = len(self._drawn), self._slots
        masks = Masks(np.zeros(shape, np.uint16), np.full(shape, KEEP, np.int32),
                      np.array([len(positions) for positions, _ in self._drawn], np.uint16))
        if self._drawn:
            masks.positions[masks.used], masks.replacements[masks.used] = map(
                np.concatenate, zip(*self._drawn))
        self._drawn.clear()
        return masks


class BlockMasksInTraining(DynamicMasks):
    """Draws masks while training, with one throw for a whole unit."""

    takes = 2, 1

    @property
    def columns(self):
        return super().columns + 1      # for rounding

    def hide(self, input_ids, input_mask, uniforms, token_boundary=None):
        size = self.max_seq_length
        keys, die, drawn, rounding = tf.split(
            uniforms, [size, size, self.max_predictions_per_seq, 1], 1)
        candidates = exists = tf.cast(input_mask, tf.bool)
        if token_boundary is not None:
            unit, sizes = units_of(candidates, token_boundary)
            unit, exists = tf.minimum(unit, size - 1), sizes > 0
        count = tf.reduce_sum(tf.cast(exists, tf.float32), 1)
        quota = tf.cast(self.masked_lm_prob * count + rounding[:, 0], tf.int32)
        chosen = choose_tokens_batch(exists, quota, keys, int(self.masked_lm_prob * size) + 1)
        if token_boundary is not None:
            chosen = candidates & tf.gather(chosen, unit, batch_dims=1)
            die = tf.gather(die, unit, batch_dims=1)
        return self.throw(input_ids, chosen, die, drawn, by_position=True)


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    hides_special = True
    always_predicts = False
    static_class, dynamic_class = BlockMasks, BlockMasksInTraining

    def most_predictions(self, max_seq_length, masked_lm_prob):
        # Words may have any length: half of them more.
        share = masked_lm_prob * (1 if self.units == "subwords" else 1.5)
        return min(int(share * max_seq_length) + 1, max_seq_length)

    def least_slots(self, max_seq_length, masked_lm_prob):
        if self.units != "subwords":
            return 0
        return self.most_predictions(max_seq_length, masked_lm_prob)
