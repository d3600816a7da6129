"""Dynamic masks: TensorFlow draws new predictions each time that a record is read.

The steps and the probabilities equal the static masks' (`data.masking.bert`).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import lazy_loader

from bert_tf.data.masking.base import quotas

tf = lazy_loader.load("tensorflow")


def units_of(candidates, token_boundary=None):
    """Returns the units of `choose_units_batch`: the unit of each candidate and the sizes of units,
    int32 [B, S].

    Args:
        candidates: bool [B, S].
        token_boundary: int32 [B, S], 1 where a unit begins; None where every token is one.
    """
    size = candidates.shape[1]
    begins = candidates if token_boundary is None else candidates & (token_boundary > 0)
    # The first candidate begins a unit even where its word was cut.
    first = candidates & (tf.cumsum(tf.cast(candidates, tf.int32), 1) == 1)
    unit = tf.cumsum(tf.cast(begins | first, tf.int32), 1) - 1
    unit = tf.where(candidates, unit, size)
    sizes = tf.math.bincount(unit, minlength=size + 1, maxlength=size + 1, axis=-1)
    # The number of rows is lost there, and one row would then seem to become several.
    return unit, tf.ensure_shape(sizes[:, :-1], unit.shape)


def choose_units_batch(units, sizes, quota, uniforms):
    """`choose_units` for a batch: returns the chosen candidates, bool [B, S], of units in the order
    of their uniforms.

    Args:
        units: int32 [B, S], the unit (0 .. S - 1) of each candidate, S elsewhere.
        sizes: int32 [B, S], candidates in each unit, 0 for units that do not exist.
        quota: int32 [B].
        uniforms: float32 [B, S].
    """
    order = tf.argsort(tf.where(sizes > 0, uniforms, 2.0))
    ordered = tf.gather(sizes, order, batch_dims=1)

    def take(left, waiting, taken):
        # Units are taken up to the first that does not fit. This unit is passed over, as is every
        # later unit that is longer than the rest.
        waiting &= ordered <= left[:, None]
        fits = waiting & (tf.cumsum(tf.where(waiting, ordered, 0), 1) <= left[:, None])
        left -= tf.reduce_sum(tf.where(fits, ordered, 0), 1)
        return left, waiting & ~fits, taken | fits

    _, _, taken = tf.while_loop(
        lambda left, waiting, _: tf.reduce_any(waiting & (ordered <= left[:, None])), take,
        (quota, ordered > 0, tf.zeros_like(ordered, tf.bool)))
    by_unit = tf.gather(taken, tf.argsort(order), batch_dims=1)
    return (units < units.shape[1]) & tf.gather(
        by_unit, tf.minimum(units, units.shape[1] - 1), batch_dims=1)


def choose_tokens_batch(candidates, quota, uniforms, most: int):
    """Chooses as `choose_units_batch` where every token is a unit: the lowest uniforms.

    Args:
        candidates: bool [B, S].
        quota: int32 [B], from 0 to `most`.
        uniforms: float32 [B, S].
    """
    keys = tf.where(candidates, uniforms, 2.0)
    lowest = -tf.math.top_k(-keys, min(most, keys.shape[1])).values
    last = tf.minimum(quota, lowest.shape[1]) - 1
    limit = tf.where(last < 0, -1.0, tf.gather(lowest, tf.maximum(last, 0), batch_dims=1))
    return candidates & (keys <= limit[:, None])


def positions_of(chosen, slots: int):
    """Returns the positions of the chosen candidates, bool [B, S], in order: int32 [B, P], 0 where
    there are fewer than `slots`, and which are used, bool."""
    size = chosen.shape[1]
    # The largest of S - position.
    behind = tf.where(chosen, size - tf.range(size), 0)
    behind = tf.pad(tf.math.top_k(behind, min(slots, size)).values,
                    [[0, 0], [0, max(0, slots - size)]])
    return tf.where(behind > 0, size - behind, 0), behind > 0


def draw_uniforms(seed: int, numbers, size: int, first=0):
    """Returns float32 [B, size] in [0, 1): each row depends on the seed and its own number, int64
    [B], alone. A row is a stream of SplitMix64 (doi:10.1145/2660193.2660195), which begins at a mix
    of the two; the `first` numbers of the stream are passed over."""
    def constant(value):
        return tf.constant(value, tf.uint64)

    def mix(x):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, constant(shift)))
            x *= constant(factor)
        return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, constant(31)))

    gamma = constant(0x9E3779B97F4A7C15)
    start = mix(mix(constant(seed) + gamma) + tf.cast(numbers, tf.uint64) * gamma)
    columns = tf.cast(first + tf.range(1, size + 1), tf.uint64)
    bits = tf.bitwise.right_shift(mix(start[:, None] + columns * gamma), constant(40))
    return tf.cast(tf.cast(bits, tf.int32), tf.float32) * 2.0**-24


@dataclasses.dataclass(frozen=True)
class DynamicMasks:
    """Draws masks while training, for whole batches of records that hold the text as it is.

    A record's mask depends on the seed and on the record's number in the stream alone, not on the
    batch or the device that it comes to. This class draws BERT's; other maskings override
    `choose`, or `takes` and `hide`, or the call."""

    takes: ClassVar[tuple[int, int]] = 1, 2     # uniforms for each token and for each prediction

    masking: Any
    max_seq_length: int
    max_predictions_per_seq: int
    masked_lm_prob: float   # share of the sequence, special tokens counted, to predict
    vocab_size: int     # V; random replacements are drawn from all of it, or as `masking` says
    mask_id: int
    # Of [CLS] and [SEP], which are never predicted; where random tokens are drawn from words, of
    # all special tokens but [MASK], which are not drawn.
    special_ids: tuple[int, ...]

    @classmethod
    def of(cls, masking: Any, record: Mapping[str, Any], max_seq_length: int,
           max_predictions_per_seq: int, **further: Any) -> Self:
        """Returns the `DynamicMasks` of records, given their manifest, S and P."""
        vocabulary = record["vocabulary"]
        return cls(masking, max_seq_length, max_predictions_per_seq,
                   record["options"]["masked_lm_prob"], vocabulary["size"], vocabulary["mask_id"],
                   special_ids(record), **further)

    @property
    def columns(self) -> int:
        """Number of uniforms that each record takes."""
        of_token, of_prediction = self.takes
        return of_token * self.max_seq_length + of_prediction * self.max_predictions_per_seq

    def __call__(self, batch: dict, seed: int, numbers) -> dict:
        """Returns the features of a batch, masked: with other `input_ids`, and with
        masked_lm_positions and masked_lm_ids, int32 [B, P], masked_lm_weights, float32 [B, P].

        Args:
            batch: input_ids and input_mask, int32 [B, S]; token_boundary, int32 [B, S], if the
            units are words; any others.
            numbers: int64 [B], the number of each record in the stream.
        """
        uniforms = draw_uniforms(seed, numbers, self.columns)
        return {**batch, **self.hide(batch["input_ids"], batch["input_mask"], uniforms,
                                     batch.get("token_boundary"))}

    def candidates(self, input_ids, input_mask):
        """Returns the tokens that may be predicted, bool [B, S]."""
        is_candidate = tf.cast(input_mask, tf.bool)
        for special in self.special_ids:
            is_candidate &= input_ids != special
        return is_candidate

    def hide(self, input_ids, input_mask, uniforms, token_boundary=None) -> dict:
        """Chooses, throws and hides: returns input_ids and the three masked_lm features.

        Args:
            input_ids, input_mask: int32 [B, S].
            uniforms: float32 in [0, 1), [B, columns].
            token_boundary: see `units_of`.
        """
        candidates = self.candidates(input_ids, input_mask)
        limits = quotas(self.max_seq_length, self.masked_lm_prob, self.max_predictions_per_seq)
        quota = tf.gather(limits, tf.reduce_sum(input_mask, 1))
        slots = self.max_predictions_per_seq
        keys, die, drawn = tf.split(uniforms, [-1, slots, slots], 1)
        return self.throw(input_ids, self.choose(candidates, quota, keys, token_boundary), die,
                          drawn)

    def choose(self, candidates, quota, keys, token_boundary=None):
        """Returns the chosen tokens, bool [B, S], at most `quota`, int32 [B], of `candidates`;
        `keys` are all uniforms but the last 2P."""
        if token_boundary is None:
            return choose_tokens_batch(candidates, quota, keys, self.max_predictions_per_seq)
        return choose_units_batch(*units_of(candidates, token_boundary), quota, keys)

    def throw(self, input_ids, chosen, die, drawn, by_position: bool = False) -> dict:
        """Returns the features of chosen tokens, bool [B, S], of input_ids, int32 [B, S].

        Args:
            die: float32 in [0, 1), [B, P], or [B, S] with `by_position`.
            drawn: float32 [B, P] in [0, 1), which choose the random tokens.
        """
        positions, used = positions_of(chosen, self.max_predictions_per_seq)
        labels = tf.where(used, tf.gather(input_ids, positions, batch_dims=1), 0)
        if by_position:
            die = tf.gather(die, positions, batch_dims=1)
        special = {"words": self.special_ids, "tokens": (0,)}.get(self.masking.replace_from, ())
        count = self.vocab_size - len(special)
        drawn = tf.minimum(tf.cast(drawn * count, tf.int32), count - 1)
        for index in sorted(special):       # the rest of the ids moves up by one
            drawn += tf.cast(drawn >= index, tf.int32)
        masked, random = self.masking.shares
        shown = tf.where(die < masked, self.mask_id, tf.where(die < masked + random, drawn, labels))
        return hide_batch(input_ids, positions, labels, shown, used)


def hide_batch(input_ids, positions, labels, shown, used) -> dict:
    """Returns input_ids [B, S] with `shown` at the places of `labels`, and the three features of
    masks, given int32 [B, P] and which of these are used, bool."""
    hidden = add_at(input_ids, positions, tf.where(used, shown - labels, 0))
    return {"input_ids": hidden, "masked_lm_positions": positions, "masked_lm_ids": labels,
            "masked_lm_weights": tf.cast(used, tf.float32)}


def add_at(input_ids, positions, change):
    """Adds `change`, int32 [B, P], to input_ids [B, S]: the difference of two ids replaces one by
    the other, since the positions of a row that change are different."""
    rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, None], tf.shape(positions))
    return tf.tensor_scatter_nd_add(input_ids, tf.stack([rows, positions], -1), change)


def special_ids(record: Mapping[str, Any]) -> tuple[int, ...]:
    """Returns the ids that a manifest excludes from masks."""
    vocabulary = record["vocabulary"]
    return tuple(vocabulary.get("special_ids", (vocabulary["cls_id"], vocabulary["sep_id"])))
