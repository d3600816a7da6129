"""StructBERT's shuffled trigrams and swapped segments (arXiv:1908.04577, section 2.2).

The paper's code was not published. A generator apart draws all choices after BERT's, so that
without them the records are BERT's.
"""

import itertools
from typing import Any

import numpy as np

from bert_tf.data.instances import pretraining
from bert_tf.data.masking import find
from bert_tf.data.masking.base import KEEP, Masks
from bert_tf.data.records.features import SpecialIds, pack_pairs
from bert_tf.data.segments.pairing import IN_ORDER, SWAPPED
from bert_tf.models.structbert.masks import WEIGHTS
from bert_tf.recipes import Recipe
from bert_tf.tokenization.vocabulary import Layout

_ORDERS = np.array(list(itertools.permutations(range(3))))      # [6, 3]


class ReorderedInstances(pretraining.Instances):
    @classmethod
    def change_of(cls, recipe: Recipe, layout: Layout, seed: int, options: Any) -> Any:
        return WordOrder(recipe, layout, seed, options.max_seq_length,
                         options.max_predictions_per_seq).change

    def mask_counts(self, masks: Masks) -> dict[str, int]:
        if WEIGHTS not in masks.extra:
            return super().mask_counts(masks)
        is_shuffled = masks.extra[WEIGHTS] > 0
        counts = pretraining.count_replacements(masks.replacements[masks.used & ~is_shuffled])
        visible = int(self.slices[:, [1, 3]].sum()) - counts["predictions"]
        return {**counts, "shuffled": int(is_shuffled.sum()), "visible": visible}


class WordOrder:
    """Changes instances of BERT to instances of StructBERT, thousands at once. Shapes: M instances,
    P predictions without shuffled ones, T trigrams."""

    def __init__(self, recipe: Recipe, layout: Layout, seed: int, max_seq_length: int,
                 max_predictions_per_seq: int) -> None:
        self._recipe, self._layout, self._size = recipe, layout, max_seq_length
        masking = find(recipe.corruption)
        self._shuffle_prob = masking.shuffle_prob
        self._most = masking.most_trigrams(max_predictions_per_seq, max_seq_length)
        self._rng = np.random.RandomState(seed % 2**32)

    def change(self, tokens: np.ndarray, slices: np.ndarray, masks: Masks | None) -> Masks | None:
        """Swaps segments, int32 [M, 5], in place, and returns the masks with shuffled trigrams of
        the text's tokens, whose slots have 1 in `word_order_weights`. Masks are None where training
        draws them."""
        if self._recipe.segments.negatives == "three_way":
            self._swap(slices, masks)
        if masks is None or not self._shuffle_prob:
            return masks
        return self._shuffle(tokens, slices, masks)

    def _swap(self, slices, masks):
        """Swaps A and B, with the masks in them, in a share of the pairs that are in order."""
        drawn = self._rng.random_sample(len(slices)) < self._recipe.segments.swapped_share
        swapped = drawn & (slices[:, 4] == IN_ORDER)
        a_length, b_length = slices[swapped][:, [1, 3]].T[:, :, None]
        slices[swapped] = slices[swapped][:, [2, 3, 0, 1, 4]]
        slices[swapped, 4] = SWAPPED
        if masks is None:
            return
        positions = masks.positions[swapped].astype(np.int64)
        layout = self._layout
        in_b = positions >= layout.b_offset(a_length)
        moved = positions + np.where(in_b, layout.before - layout.b_offset(a_length),
                                     layout.b_offset(b_length) - layout.before)
        used = masks.used[swapped]
        moved, order = _in_order(moved, used)
        masks.positions[swapped] = moved
        masks.replacements[swapped] = np.take_along_axis(masks.replacements[swapped], order, 1)

    def _shuffle(self, tokens, slices, masks):
        packed = pack_pairs(np.zeros(len(tokens), np.int32), *slices[:, :4].T, self._size,
                            SpecialIds(self._layout, *[1] * 4))
        visible = packed["input_ids"] == 0      # tokens that are neither special nor predicted
        rows = np.broadcast_to(np.arange(len(slices))[:, None], masks.used.shape)
        visible[rows[masks.used], masks.positions[masks.used]] = False
        starts, used = self._choose(visible)                                # [M, T]
        places = starts[:, :, None] + np.arange(3)                          # [M, T, 3]
        shuffled = starts[:, :, None] + _ORDERS[
            (self._rng.random_sample(starts.shape) * len(_ORDERS)).astype(int)]
        places, shuffled = (x.reshape(len(starts), 3 * starts.shape[1]) for x in (places, shuffled))
        is_order = np.repeat(used, 3, axis=1)                               # [M, 3T]
        a_start, a_length, b_start, _, _ = slices.T[:, :, None]
        offset = self._layout.b_offset(a_length)
        sources = np.where(shuffled < offset, a_start + shuffled - self._layout.before,
                           b_start + shuffled - offset)
        ids = tokens[np.where(is_order, sources, 0)]
        positions = np.concatenate([masks.positions.astype(np.int64), places], 1)
        shown = np.concatenate([masks.replacements, np.where(is_order, ids, KEEP)], 1)
        known = np.concatenate([masks.used, is_order], 1)
        weights = np.concatenate([np.zeros(masks.positions.shape), is_order], 1)
        positions, order = _in_order(positions, known)
        return Masks(positions.astype(np.uint16),
                     np.take_along_axis(shown, order, 1).astype(np.int32),
                     known.sum(1).astype(np.uint16),
                     {WEIGHTS: np.take_along_axis(weights, order, 1).astype(np.float32)})

    def _choose(self, visible):
        """Chooses disjoint trigrams: their first positions, int [M, T], and which are used."""
        windows = visible[:, :-2] & visible[:, 1:-1] & visible[:, 2:]
        counts = self._shuffle_prob * visible.sum(1) / 3
        counts = (counts + self._rng.random_sample(len(visible))).astype(int)
        starts = np.zeros((len(visible), self._most), np.int64)
        used = np.zeros(starts.shape, bool)
        column = np.arange(windows.shape[1])
        for turn in range(self._most):
            before = windows.cumsum(1, dtype=np.int32)
            rank = self._rng.random_sample(len(visible)) * before[:, -1]
            used[:, turn] = (turn < counts) & (before[:, -1] > 0)
            starts[:, turn] = start = (before > rank[:, None]).argmax(1)
            windows &= ~used[:, turn, None] | (np.abs(column - start[:, None]) > 2)
        return starts, used


def _in_order(positions, used):
    """Positions [M, P] in order, the unused behind and 0, and the order."""
    order = np.argsort(np.where(used, positions, np.iinfo(np.int64).max), axis=1, kind="stable")
    return np.take_along_axis(np.where(used, positions, 0), order, 1), order
