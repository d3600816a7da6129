"""ERNIE's masks: a coin for each unit, drawn as PaddlePaddle/ERNIE batching.py draws them.

There is no quota, so a sequence may have no prediction. Within a chosen unit each token is thrown
by itself: part of a unit may be hidden and part of it shown.
"""

import dataclasses

import lazy_loader
import numpy as np

from bert_tf.data.masking import base
from bert_tf.data.masking.base import KEEP, MASK, DrawnMasks, Masks
from bert_tf.data.masking.dynamic import DynamicMasks, units_of
from bert_tf.data.records.features import SpecialIds, pack_pairs

tf = lazy_loader.load("tensorflow")

# The place of a token in the units.
OUTSIDE, BEGINS, GOES_ON = -1, 0, 1
_LOWEST = 1         # random ids are any but the id of padding


def throw_coins(labels: np.ndarray, first: np.ndarray, by_unit: np.ndarray,
                uniforms: np.ndarray, replacements: np.ndarray, masked_lm_prob: float = 0.15,
                shares: tuple[float, float] = (0.8, 0.1)) -> tuple[np.ndarray, np.ndarray]:
    """Throws the coins of N tokens: bool [N], whether a token is predicted, and int [N], its
    replacement: an id, MASK or KEEP. A unit that nothing follows in its sequence, not even a
    special token, is never chosen, nor is a unit that begins a sequence.

    Args:
        labels: int [N], `OUTSIDE` for special tokens, else `BEGINS` or `GOES_ON`.
        first: bool [N], where sequences begin.
        by_unit: bool [N], whether the token's sequence chooses units, not single tokens.
        uniforms: float [N] in [0, 1). A unit's coin is its first token's.
        replacements: int [N], ids of random tokens.
    """
    if not len(labels):
        return np.zeros(0, bool), np.zeros(0, int)
    place = np.arange(len(labels))
    # The last token up to here that does not go on with a unit; its unit's first, if it begins one.
    head = np.maximum.accumulate(np.where(labels == GOES_ON, 0, place))
    sequence = np.maximum.accumulate(np.where(first, place, 0))
    closed = np.minimum.accumulate(np.where(labels == GOES_ON, len(labels), place)[::-1])[::-1]
    following = np.append(closed[1:], len(labels))      # the next that does not go on
    ends = np.append(place[first][1:], len(labels))
    end = np.repeat(ends, np.diff(np.append(place[first], len(labels))))
    is_unit = (labels[head] == BEGINS) & (head > sequence) & (following < end)
    coin = np.where(by_unit, uniforms[head], uniforms)
    chosen = (coin <= masked_lm_prob) & np.where(by_unit, is_unit, labels != OUTSIDE)
    # The coin of a unit is the throw of its first token too.
    scale = np.where(by_unit & (labels == GOES_ON), 1.0, masked_lm_prob)
    masked, random = shares
    shown = np.where(uniforms > scale * round(1 - masked, 12), MASK, np.where(
        uniforms > scale * round(1 - masked - random, 12), replacements, KEEP))
    return chosen, np.where(chosen, shown, KEEP)


def draw_coins(rng: np.random.RandomState, labels: np.ndarray, first: np.ndarray,
               by_unit: np.ndarray, vocab_size: int, **options) -> tuple[np.ndarray, np.ndarray]:
    """`throw_coins` with the numbers that the original draws for a batch of N tokens."""
    uniforms = rng.random_sample(len(labels))
    replacements = rng.randint(_LOWEST, vocab_size, len(labels))
    return throw_coins(labels, first, by_unit, uniforms, replacements, **options)


class CoinMasks(DrawnMasks):
    """As `bert.StaticMasks`; sequences between calls of `place` are a batch of the original."""

    def __init__(self, masking, documents, vocabulary, stream, options, room):
        super().__init__(masking, documents, vocabulary, stream, options, room)
        self._rng = np.random.RandomState(stream.seed % 2**32)
        self._runs: list[tuple[int, int, int, int]] = []

    def draw(self, *runs: int) -> None:
        """Notes one sequence: the starts and lengths of A and B."""
        if runs[1] + runs[3] <= self._room:
            self._runs.append(runs)

    def place(self) -> Masks:
        """The predictions of the sequences noted since the last call."""
        layout, size = self._vocabulary.layout, self._vocabulary.size
        runs = np.array(self._runs, np.int64).reshape(-1, 4).T
        self._runs.clear()
        lengths = layout.length(runs[1], runs[3])
        width = int(lengths.max(initial=1))
        joins = np.zeros_like(self._documents.tokens)
        if self._joins is not None:
            joins = self._joins.astype(np.int32)
        packed = pack_pairs(joins, *runs, width, SpecialIds(layout, *[OUTSIDE] * 4))
        labels = packed["input_ids"][packed["input_mask"]]
        # The rest of a unit that was cut is a unit.
        labels[1:][(labels[1:] == GOES_ON) & (labels[:-1] == OUTSIDE)] = BEGINS
        starts = np.cumsum(lengths) - lengths
        first = np.zeros(len(labels), bool)
        first[starts] = True
        chosen, shown = draw_coins(
            self._rng, labels, first, np.full(len(labels), self._joins is not None), size,
            masked_lm_prob=self._prob, shares=self._masking.shares)
        masks, cut = gather_masks(chosen, shown, lengths, self._slots)
        self.cut += cut
        return masks


def gather_masks(chosen: np.ndarray, shown: np.ndarray, lengths: np.ndarray,
                 slots: int) -> tuple[Masks, int]:
    """The first predictions of each sequence as `Masks`, and how many had no room. `chosen` and
    `shown`, [N], are `throw_coins`' of sequences of `lengths`, int [M], one after the other."""
    places = np.flatnonzero(chosen)
    starts = np.cumsum(lengths) - lengths
    row = np.searchsorted(starts, places, "right") - 1
    return Masks.gather(row, places - starts[row], shown[places], len(lengths), slots)


class CoinMasksInTraining(DynamicMasks):
    takes = 2, 1

    def hide(self, input_ids, input_mask, uniforms, token_boundary=None):
        size, candidates = self.max_seq_length, self.candidates(input_ids, input_mask)
        coins, die, drawn = tf.split(uniforms, [size, size, self.max_predictions_per_seq], 1)
        if token_boundary is not None:
            unit, _ = units_of(candidates, token_boundary)
            coins = tf.gather(coins, tf.minimum(unit, size - 1), batch_dims=1)
        return self.throw(input_ids, candidates & (coins < self.masked_lm_prob), die, drawn,
                          by_position=True)


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    """ERNIE's masking."""

    always_predicts = False
    counts_cut = by_coins = True
    static_class, dynamic_class = CoinMasks, CoinMasksInTraining
