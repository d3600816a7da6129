"""Masked language model predictions: which tokens are hidden, and what is shown in their place.

There are three steps. *Choose*: which units (sub-words or words) are predicted; `MASKINGS` holds
every way. *Throw*: whether a chosen token becomes [MASK], stays, or becomes a random one. *Hide*:
the ids that the model sees, and the labels. Static masks are drawn from the random stream of the
original while records are made (`StaticMasks`, numpy); dynamic ones are drawn anew for every record
that is read (`DynamicMasks`, TensorFlow), with the same probabilities.
"""

import dataclasses
from collections.abc import Callable, Sequence

import lazy_loader
import numpy as np

from bert_tf.data.python_random import PythonRandom
from bert_tf.recipes import MaskTokens
from bert_tf.tokenization.vocabulary import Vocabulary

tf = lazy_loader.load("tensorflow")

MASK, KEEP = -2, -1     # replacements that are not token ids, as `PythonRandom.throws` gives them


def quotas(max_seq_length: int, masked_lm_prob: float, max_predictions_per_seq: int) -> list[int]:
    """The most predictions in a sequence of 0 .. S tokens, special tokens counted: list [S + 1]."""
    return [min(max_predictions_per_seq, max(1, int(round(length * masked_lm_prob))))
            for length in range(max_seq_length + 1)]


def choose_units(units: list[list[int]], quota: int, stream: PythonRandom) -> list[int]:
    """Units in random order until the quota is reached; one that would exceed it is passed over.

    Args:
        units: the candidates (0 .. n - 1) of each unit; shuffled in place.
        quota: most candidates.
        stream: `PythonRandom`.

    Returns:
        The chosen candidates.
    """
    stream.shuffle(units)
    chosen: list[int] = []
    for unit in units:
        if len(chosen) >= quota:
            break
        if len(chosen) + len(unit) <= quota:
            chosen += unit
    return chosen


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
        quota: int32 [B], from 1 to `most`.
        uniforms: float32 [B, S].
        most: the highest quota.

    Returns:
        bool [B, S], the chosen candidates.
    """
    keys = tf.where(candidates, uniforms, 2.0)
    lowest = -tf.math.top_k(-keys, min(most, keys.shape[1])).values
    limit = tf.gather(lowest, tf.minimum(quota, lowest.shape[1]) - 1, batch_dims=1)
    return candidates & (keys <= limit[:, None])


def draw_uniforms(seed: int, numbers, size: int):
    """Numbers in [0, 1) of which each row depends on the seed and its own number alone.

    A row is a stream of SplitMix64 (doi:10.1145/2660193.2660195), which begins at a mix of the two.

    Args:
        seed: from 0.
        numbers: int64 [B].
        size: how many in a row.

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
    columns = tf.cast(tf.range(1, size + 1), tf.uint64)
    bits = tf.bitwise.right_shift(mix(start[:, None] + columns * gamma), constant(40))
    return tf.cast(tf.cast(bits, tf.int32), tf.float32) * 2.0**-24


@dataclasses.dataclass(frozen=True)
class Masking:
    """A way of choosing units, in the form for one sequence and in the form for a batch."""

    choose: Callable[[list[list[int]], int, PythonRandom], list[int]]
    choose_batch: Callable


MASKINGS = {"units": Masking(choose_units, choose_units_batch)}


@dataclasses.dataclass
class Masks:
    """The predictions of M sequences, by position.

    Attributes:
        positions: uint16 [M, P], in the sequence with its special tokens; 0 where unused.
        replacements: int32 [M, P]: a token id, MASK or KEEP.
        counts: uint16 [M], how many of the P are used.
    """

    positions: np.ndarray
    replacements: np.ndarray
    counts: np.ndarray

    @property
    def used(self) -> np.ndarray:
        """bool [M, P]."""
        return np.arange(self.positions.shape[1]) < self.counts[:, None]

    def rows(self, rows) -> "Masks":
        """Those of some sequences."""
        return Masks(self.positions[rows], self.replacements[rows], self.counts[rows])

    @classmethod
    def join(cls, parts: Sequence["Masks"]) -> "Masks":
        """Those of all parts, one after the other."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts])
                     for field in dataclasses.fields(cls)))

    def hide(self, input_ids: np.ndarray, mask_id: int) -> dict[str, np.ndarray]:
        """Puts the replacements into `input_ids` [M, S], in place.

        Returns:
            masked_lm_positions and masked_lm_ids, int [M, P], and masked_lm_weights, float32
            [M, P], the three 0 where unused.
        """
        positions, used = self.positions.astype(np.int64), self.used
        labels = np.take_along_axis(input_ids, positions, 1)
        shown = np.where(self.replacements == KEEP, labels, self.replacements)
        shown = np.where(shown == MASK, mask_id, shown)
        row = np.broadcast_to(np.arange(len(input_ids))[:, None], used.shape)
        input_ids[row[used], positions[used]] = shown[used]
        return {"masked_lm_positions": positions, "masked_lm_ids": np.where(used, labels, 0),
                "masked_lm_weights": used.astype(np.float32)}


class StaticMasks:
    """Draws masks as google-research/bert `create_masked_lm_predictions`.

    Drawing and placing are apart. `draw` moves the random stream on by what one sequence takes and
    notes the choices; `place` turns the notes of thousands of sequences into arrays at once.

    Args:
        masking: `MaskTokens`.
        stream: `PythonRandom`, shared with the pairing.
        vocabulary: `Vocabulary`; random replacements are drawn from all of it.
        quotas: most predictions by length of the sequence, see `quotas`.
        max_predictions_per_seq: P.
        room: most tokens of a sequence without its special ones.
        continues: uint8 [T] beside the token array: 1 where a token goes on with the unit before
            it; None where every token is a unit.
    """

    def __init__(self, masking: MaskTokens, stream: PythonRandom, vocabulary: Vocabulary,
                 quotas: Sequence[int], max_predictions_per_seq: int, room: int,
                 continues: np.ndarray | None = None) -> None:
        self._choose, self._layout = MASKINGS[masking.choose].choose, vocabulary.layout
        self._stream, self._room = stream, room
        self._continues = None if continues is None else continues.tobytes()
        # The original draws a token and looks up its id, which is not the same as drawing an id
        # where a vocabulary holds a token twice, as the released Chinese one holds the empty token.
        self._drawable = list(vocabulary.ids.values())
        masked, drawn = masking.shares
        rest = 1 - masked
        # The original's second coin, for the tokens that do not become [MASK]: 0.5 for 80/10/10.
        self._limits = masked, round((rest - drawn) / rest, 12) if rest else 0.0
        # By the number of texts, then of tokens without special ones.
        self._quotas = [[quotas[min(n + vocabulary.layout.special(pair), len(quotas) - 1)]
                         for n in range(room + 1)] for pair in (False, True)]
        self._predictions = max_predictions_per_seq
        self._forget()

    def _forget(self):
        self._a_lengths, self._counts = [], []
        self._chosen, self._replacements = [], []

    def draw(self, a_start: int, a_length: int, b_start: int, b_length: int) -> None:
        """Draws the predictions of one sequence (slices of the token array)."""
        if self._continues is None:
            units = [[candidate] for candidate in range(a_length + b_length)]
        else:
            units = []
            for candidate, goes_on in enumerate(
                    self._continues[a_start:a_start + a_length]
                    + self._continues[b_start:b_start + b_length]):
                if goes_on and units:
                    units[-1].append(candidate)
                else:
                    units.append([candidate])
        quota = self._quotas[b_length > 0][a_length + b_length]
        chosen = self._choose(units, quota, self._stream)
        self._chosen += chosen
        self._note(a_length, len(chosen))

    def _note(self, a_length, count):
        self._a_lengths.append(a_length)
        self._counts.append(count)
        self._replacements += self._stream.throws(count, self._limits, self._drawable)

    def _candidates(self, used):
        """int [M, P]: the candidate (0 .. a_length + b_length - 1) of each used slot."""
        candidates = np.zeros(used.shape, np.int64)
        candidates[used] = self._chosen
        return candidates

    def place(self) -> Masks:
        """The predictions of the sequences drawn since the last call."""
        counts = np.array(self._counts, np.uint16)
        used = np.arange(self._predictions) < counts[:, None]
        candidates = self._candidates(used)
        in_b = candidates >= np.array(self._a_lengths, np.int64)[:, None]
        positions = candidates + self._layout.before + in_b * self._layout.between
        replacements = np.full(used.shape, KEEP, np.int32)
        replacements[used] = self._replacements
        positions = np.where(used, positions, np.iinfo(np.int64).max)     # the unused come last
        by_position = np.argsort(positions, axis=1)
        positions = np.take_along_axis(np.where(used, positions, 0), by_position, 1)
        replacements = np.take_along_axis(replacements, by_position, 1)
        self._forget()
        return Masks(positions.astype(np.uint16), replacements, counts)


class SubwordMasks(StaticMasks):
    """The fast form of `StaticMasks` where every sub-word is a unit, as is the default."""

    def draw(self, a_start, a_length, b_start, b_length):
        n = a_length + b_length
        self._stream.skip_shuffle(n, self._room)
        self._note(a_length, min(self._quotas[b_length > 0][n], n))

    def _candidates(self, used):
        return self._stream.take_shuffles(self._predictions).astype(np.int64)


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
        vocab_size: V; random replacements are drawn from all of it.
        mask_id: id of [MASK].
        special_ids: ids of the tokens that are never predicted: [CLS] and [SEP].
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
            The batch with other `input_ids`, without `token_boundary`, and with
            masked_lm_positions and masked_lm_ids, int32 [B, P], masked_lm_weights, float32 [B, P].
        """
        size = self.max_seq_length + 2 * self.max_predictions_per_seq
        uniforms = draw_uniforms(seed, numbers, size)
        others = {name: value for name, value in batch.items() if name != "token_boundary"}
        return {**others, **self.hide(batch["input_ids"], batch["input_mask"], uniforms,
                                      batch.get("token_boundary"))}

    def hide(self, input_ids, input_mask, uniforms, token_boundary=None) -> dict:
        """Chooses, throws and hides.

        Args:
            input_ids, input_mask: int32 [B, S].
            uniforms: float32 [B, S + 2P] in [0, 1).
            token_boundary: int32 [B, S], 1 where a unit begins; None where every token is one.

        Returns:
            dict of input_ids and the three masked_lm features.
        """
        candidates = tf.cast(input_mask, tf.bool)
        for special in self.special_ids:
            candidates &= input_ids != special
        limits = quotas(self.max_seq_length, self.masked_lm_prob, self.max_predictions_per_seq)
        quota = tf.gather(limits, tf.reduce_sum(input_mask, 1))
        keys, rest = tf.split(uniforms, [self.max_seq_length, -1], 1)
        if token_boundary is None and self.masking.choose == "units":
            chosen = choose_tokens_batch(candidates, quota, keys, self.max_predictions_per_seq)
        else:
            unit, sizes = self._units(candidates, token_boundary)
            chosen = MASKINGS[self.masking.choose].choose_batch(unit, sizes, quota, keys)
        return self._throw(input_ids, chosen, rest)

    def _units(self, candidates, token_boundary):
        """The unit of each candidate and the sizes of units, see `choose_units_batch`."""
        begins = candidates if token_boundary is None else candidates & (token_boundary > 0)
        # The first candidate begins a unit even where its word was cut.
        first = candidates & (tf.cumsum(tf.cast(candidates, tf.int32), 1) == 1)
        unit = tf.cumsum(tf.cast(begins | first, tf.int32), 1) - 1
        unit = tf.where(candidates, unit, self.max_seq_length)
        sizes = tf.math.bincount(unit, minlength=self.max_seq_length + 1,
                                 maxlength=self.max_seq_length + 1, axis=-1)
        return unit, sizes[:, :-1]

    def _throw(self, input_ids, chosen, uniforms):
        """The features, given chosen, bool [B, S], and uniforms, float32 [B, 2P]."""
        size, slots = self.max_seq_length, self.max_predictions_per_seq
        # The chosen positions in order: the largest of S - position.
        behind = tf.where(chosen, size - tf.range(size), 0)
        behind = tf.pad(tf.math.top_k(behind, min(slots, size)).values,
                        [[0, 0], [0, max(0, slots - size)]])
        used = behind > 0
        positions = tf.where(used, size - behind, 0)
        labels = tf.where(used, tf.gather(input_ids, positions, batch_dims=1), 0)
        die, drawn = uniforms[:, :slots], uniforms[:, slots:]
        drawn = tf.minimum(tf.cast(drawn * self.vocab_size, tf.int32), self.vocab_size - 1)
        masked, random = self.masking.shares
        shown = tf.where(die < masked, self.mask_id, tf.where(die < masked + random, drawn, labels))
        # Positions are different, so that adding the difference is replacing.
        rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, None], tf.shape(positions))
        hidden = tf.tensor_scatter_nd_add(input_ids, tf.stack([rows, positions], -1),
                                          tf.where(used, shown - labels, 0))
        return {"input_ids": hidden, "masked_lm_positions": positions, "masked_lm_ids": labels,
                "masked_lm_weights": tf.cast(used, tf.float32)}


def static_masks(masking: MaskTokens, continues: np.ndarray, *args) -> StaticMasks:
    """The `StaticMasks` of a recipe; `args` are its stream, vocabulary, quotas, P and room."""
    if masking.choose == "units" and masking.units == "subwords":
        return SubwordMasks(masking, *args)
    return StaticMasks(masking, *args, continues if masking.units == "words" else None)
