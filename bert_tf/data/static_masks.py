"""Static masks: predictions that are drawn while records are made.

There are three steps. *Choose*: which units (sub-words or words) are predicted; `MASKINGS` holds
every way. *Throw*: whether a chosen token becomes [MASK], stays, or becomes a random one. *Hide*:
the ids that the model sees, and the labels. All is drawn from the random stream of the original.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.data.python_random import PythonRandom
from bert_tf.recipes import MaskTokens
from bert_tf.tokenization.vocabulary import Vocabulary

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


MASKINGS = {"units": choose_units}


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
        self._choose, self._layout = MASKINGS[masking.choose], vocabulary.layout
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


def static_masks(masking: MaskTokens, continues: np.ndarray, *args) -> StaticMasks:
    """The `StaticMasks` of a recipe; `args` are its stream, vocabulary, quotas, P and room."""
    if masking.choose == "units" and masking.units == "subwords":
        return SubwordMasks(masking, *args)
    return StaticMasks(masking, *args, continues if masking.units == "words" else None)
