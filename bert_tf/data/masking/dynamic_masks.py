"""Dynamic masks: predictions that are drawn anew for every record that is read, in TensorFlow.

The steps and the probabilities are those of static masks (`data.masking.static_masks`).
"""

import dataclasses

import lazy_loader

from bert_tf.data.masking.masks import quotas
from bert_tf.recipes.corruption import MaskTokens

tf = lazy_loader.load("tensorflow")


def units_of(candidates, token_boundary=None):
    """The units that candidates make, as `choose_units_batch` takes them.

    Args:
        candidates: bool [B, S].
        token_boundary: int32 [B, S], 1 where a unit begins; None where every token is one.

    Returns:
        The unit of each candidate and the sizes of units, int32 [B, S].
    """
    size = candidates.shape[1]
    begins = candidates if token_boundary is None else candidates & (token_boundary > 0)
    # The first candidate begins a unit even where its word was cut.
    first = candidates & (tf.cumsum(tf.cast(candidates, tf.int32), 1) == 1)
    unit = tf.cumsum(tf.cast(begins | first, tf.int32), 1) - 1
    unit = tf.where(candidates, unit, size)
    sizes = tf.math.bincount(unit, minlength=size + 1, maxlength=size + 1, axis=-1)
    return unit, sizes[:, :-1]


def choose_units_batch(units, sizes, quota, uniforms):
    """`choose_units` for a batch: units in the order of their uniforms.

    Args:
        units: int32 [B, S], the unit (0 .. S - 1) of each candidate, S elsewhere.
        sizes: int32 [B, S], candidates in each unit, 0 for units that do not exist.
        quota: int32 [B].
        uniforms: float32 [B, S].

    Returns:
        bool [B, S], the chosen candidates.
    """
    order = tf.argsort(tf.where(sizes > 0, uniforms, 2.0))
    ordered = tf.gather(sizes, order, batch_dims=1)

    def take(left, waiting, taken):
        # All that fit, up to the first that does not: it is passed over, and then so is every
        # later one that is longer than what is left.
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
    """What `choose_units_batch` chooses where every token is a unit: the lowest uniforms.

    Args:
        candidates: bool [B, S].
        quota: int32 [B], from 0 to `most`.
        uniforms: float32 [B, S].
        most: the highest quota.

    Returns:
        bool [B, S], the chosen candidates.
    """
    keys = tf.where(candidates, uniforms, 2.0)
    lowest = -tf.math.top_k(-keys, min(most, keys.shape[1])).values
    last = tf.minimum(quota, lowest.shape[1]) - 1
    limit = tf.where(last < 0, -1.0, tf.gather(lowest, tf.maximum(last, 0), batch_dims=1))
    return candidates & (keys <= limit[:, None])


def positions_of(chosen, slots: int):
    """The positions of the chosen candidates, bool [B, S], in order.

    Returns:
        int32 [B, P], 0 where there are fewer than `slots`, and which are used, bool.
    """
    size = chosen.shape[1]
    # The largest of S - position.
    behind = tf.where(chosen, size - tf.range(size), 0)
    behind = tf.pad(tf.math.top_k(behind, min(slots, size)).values,
                    [[0, 0], [0, max(0, slots - size)]])
    return tf.where(behind > 0, size - behind, 0), behind > 0


def draw_uniforms(seed: int, numbers, size: int, first=0):
    """Numbers in [0, 1) of which each row depends on the seed and its own number alone.

    A row is a stream of SplitMix64 (doi:10.1145/2660193.2660195), which begins at a mix of the two.

    Args:
        seed: from 0.
        numbers: int64 [B].
        size: how many in a row.
        first: how many of the stream are passed over.

    Returns:
        float32 [B, size].
    """
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


def hide_with_repeats(input_ids, input_mask, positions, die, masked_lm_prob: float,
                      masked: float, mask_id: int) -> dict:
    """Hides tokens whose positions were drawn with replacement (google-research/electra,
    pretrain_helpers.py, mask).

    A position may come several times, and is then predicted as often; it becomes [MASK] if one of
    the throws makes it so. The number of predictions counts special tokens too.

    Args:
        input_ids, input_mask: int32 [B, S].
        positions: int32 [B, P]; those beyond the number of predictions are not used, nor is a row
            whose first is 0, as a row without candidates has it.
        die: float32 [B, P] in [0, 1): the token becomes [MASK] below `masked`, and stays otherwise.
        masked_lm_prob: share of the sequence to predict.
        masked, mask_id: see above.

    Returns:
        dict of input_ids and the three masked_lm features.
    """
    slots = positions.shape[1]
    # In float32 and rounded half to even, as the original does.
    length = tf.cast(tf.reduce_sum(input_mask, 1), tf.float32)
    quota = tf.clip_by_value(tf.cast(tf.round(masked_lm_prob * length), tf.int32), 1, slots)
    used = (tf.range(slots) < quota[:, None]) & (positions[:, :1] > 0)
    positions = tf.where(used, positions, 0)
    labels = tf.where(used, tf.gather(input_ids, positions, batch_dims=1), 0)
    rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, None], tf.shape(positions))
    hidden = tf.scatter_nd(tf.stack([rows, positions], -1),
                           tf.cast(used & (die < masked), tf.int32), tf.shape(input_ids)) > 0
    return {"input_ids": tf.where(hidden, mask_id, input_ids), "masked_lm_positions": positions,
            "masked_lm_ids": labels, "masked_lm_weights": tf.cast(used, tf.float32)}


def can_draw(masking: MaskTokens) -> bool:
    """Whether these masks can be drawn while training."""
    return masking.choose != "ngrams" and not masking.shuffle_prob


@dataclasses.dataclass(frozen=True)
class DynamicMasks:
    """Draws masks while training, for whole batches of records that hold the text as it is.

    A record's mask depends on the seed and on the record's number in the stream alone, not on the
    batch or the device that it comes to.

    Attributes:
        masking: `MaskTokens`.
        max_seq_length: S.
        max_predictions_per_seq: P.
        masked_lm_prob: share of the sequence, special tokens counted, to predict.
        vocab_size: V; random replacements are drawn from all of it, or as `masking` says.
        mask_id: id of [MASK].
        special_ids: ids of [CLS] and [SEP], which are never predicted; where random tokens are
            drawn from words, ids of all special tokens but [MASK], which are not drawn.
    """

    masking: MaskTokens
    max_seq_length: int
    max_predictions_per_seq: int
    masked_lm_prob: float
    vocab_size: int
    mask_id: int
    special_ids: tuple[int, ...]

    def __call__(self, batch: dict, seed: int, numbers) -> dict:
        """The features of a batch, masked.

        Args:
            batch: input_ids and input_mask, int32 [B, S]; token_boundary, int32 [B, S], if the
                units are words; any others.
            seed: of all masks.
            numbers: int64 [B], the number of each record in the stream.

        Returns:
            The batch with other `input_ids`, and with masked_lm_positions and masked_lm_ids, int32
            [B, P], masked_lm_weights, float32 [B, P]. With the quota "with_repeats" also draws,
            float32 [B, P] in [0, 1), by which ELECTRA takes tokens from its generator.
        """
        size, slots = self.max_seq_length, self.max_predictions_per_seq
        columns = {"drawn": 2 * size + slots + 1, "with_repeats": size + 3 * slots,
                   "each": 2 * size + slots}
        uniforms = draw_uniforms(seed, numbers,
                                 columns.get(self.masking.quota, size + 2 * slots))
        draws = ({"draws": uniforms[:, -slots:]} if self.masking.quota == "with_repeats" else {})
        return {**batch, **draws, **self.hide(batch["input_ids"], batch["input_mask"], uniforms,
                                              batch.get("token_boundary"))}

    def hide(self, input_ids, input_mask, uniforms, token_boundary=None) -> dict:
        """Chooses, throws and hides.

        Args:
            input_ids, input_mask: int32 [B, S].
            uniforms: float32 in [0, 1), [B, S + 2P], or [B, 2S + P + 1] with the quota "drawn", or
                [B, 2S + P] with "each".
            token_boundary: int32 [B, S], 1 where a unit begins; None where every token is one.

        Returns:
            dict of input_ids and the three masked_lm features.
        """
        if self.masking.quota == "drawn":
            return self._with_special(input_ids, input_mask, uniforms, token_boundary)
        candidates = tf.cast(input_mask, tf.bool)
        for special in self.special_ids:
            candidates &= input_ids != special
        if self.masking.quota == "with_repeats":
            return self._with_repeats(input_ids, input_mask, candidates, uniforms)
        if self.masking.quota == "each":
            return self._with_coins(input_ids, candidates, uniforms, token_boundary)
        limits = quotas(self.max_seq_length, self.masked_lm_prob, self.max_predictions_per_seq)
        quota = tf.gather(limits, tf.reduce_sum(input_mask, 1))
        keys, rest = tf.split(uniforms, [self.max_seq_length, -1], 1)
        if token_boundary is None and self.masking.choose == "units":
            chosen = choose_tokens_batch(candidates, quota, keys, self.max_predictions_per_seq)
        else:
            unit, sizes = units_of(candidates, token_boundary)
            chosen = choose_units_batch(unit, sizes, quota, keys)
        return self._throw(input_ids, chosen, *tf.split(rest, 2, 1))

    def _with_special(self, input_ids, input_mask, uniforms, token_boundary):
        """The features as fairseq draws them: a share of all units, special tokens among them, and
        one throw for a whole unit."""
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
        return self._throw(input_ids, chosen, die, drawn)

    def _with_coins(self, input_ids, candidates, uniforms, token_boundary):
        """The features where each unit is chosen or not by a coin of its own."""
        size = self.max_seq_length
        coins, die, drawn = tf.split(uniforms, [size, size, self.max_predictions_per_seq], 1)
        if token_boundary is not None:
            unit, _ = units_of(candidates, token_boundary)
            coins = tf.gather(coins, tf.minimum(unit, size - 1), batch_dims=1)
        return self._throw(input_ids, candidates & (coins < self.masked_lm_prob), die, drawn)

    def _with_repeats(self, input_ids, input_mask, candidates, uniforms):
        """The features where each prediction draws its position of all candidates."""
        candidates &= input_ids != self.mask_id
        count = tf.reduce_sum(tf.cast(candidates, tf.int32), 1)[:, None]        # [B, 1]
        drawn, die = tf.split(uniforms[:, :2 * self.max_predictions_per_seq], 2, 1)
        rank = tf.minimum(tf.cast(drawn * tf.cast(count, tf.float32), tf.int32), count - 1)
        # The position of the candidate that has `rank` others before it.
        positions = tf.reduce_sum(tf.cast(
            tf.cumsum(tf.cast(candidates, tf.int32), 1)[:, None] <= rank[:, :, None], tf.int32), 2)
        return hide_with_repeats(input_ids, input_mask, tf.where(count > 0, positions, 0), die,
                                 self.masked_lm_prob, self.masking.shares[0], self.mask_id)

    def _throw(self, input_ids, chosen, die, drawn):
        """The features, given chosen, bool [B, S], and uniforms: die, float32 [B, P], or [B, S] by
        position, and drawn, float32 [B, P]."""
        positions, used = positions_of(chosen, self.max_predictions_per_seq)
        labels = tf.where(used, tf.gather(input_ids, positions, batch_dims=1), 0)
        if self.masking.quota in ("drawn", "each", "of_batch"):
            die = tf.gather(die, positions, batch_dims=1)
        drawn = self._draw_ids(drawn)
        masked, random = self.masking.shares
        shown = tf.where(die < masked, self.mask_id, tf.where(die < masked + random, drawn, labels))
        # Positions are different, so that adding the difference is replacing.
        rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, None], tf.shape(positions))
        hidden = tf.tensor_scatter_nd_add(input_ids, tf.stack([rows, positions], -1),
                                          tf.where(used, shown - labels, 0))
        return {"input_ids": hidden, "masked_lm_positions": positions, "masked_lm_ids": labels,
                "masked_lm_weights": tf.cast(used, tf.float32)}

    def _draw_ids(self, uniforms):
        """The random tokens of some uniforms."""
        special = {"words": self.special_ids, "tokens": (0,)}.get(self.masking.replace_from, ())
        count = self.vocab_size - len(special)
        drawn = tf.minimum(tf.cast(uniforms * count, tf.int32), count - 1)
        for index in sorted(special):       # the rest of the ids moves up by one
            drawn += tf.cast(drawn >= index, tf.int32)
        return drawn
