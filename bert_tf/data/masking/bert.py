"""BERT's masks: a share of each sequence, in units that are drawn at random (google-research/bert,
create_pretraining_data.py, create_masked_lm_predictions).

*Choose* which units (sub-words, words ...) are predicted; *throw* whether a chosen token becomes
[MASK], stays, or becomes a random one; *hide* them: the ids that the model sees, and the labels.
"""

import dataclasses

import numpy as np

from bert_tf.data.masking import base
from bert_tf.data.masking.base import KEEP, MASK, DrawnMasks, Masks, quotas
from bert_tf.data.masking.dynamic import DynamicMasks
from bert_tf.data.text.python_random import PythonRandom


def choose_units(units: list[list[int]], quota: int, stream: PythonRandom) -> list[int]:
    """Returns the candidates of units in random order until the quota is reached; a unit that would
    exceed it is passed over. `units` has the candidates (0 .. n - 1) of each; it is shuffled in
    place."""
    stream.shuffle(units)
    chosen: list[int] = []
    for unit in units:
        if len(chosen) >= quota:
            break
        if len(chosen) + len(unit) <= quota:
            chosen += unit
    return chosen


class StaticMasks(DrawnMasks):
    """Draws masks while records are made.

    `draw` takes the random numbers of one sequence from the stream and notes the choices; `place`
    turns the notes of thousands of sequences into arrays at once. Random replacements are of the
    whole vocabulary.
    """

    def __init__(self, masking, documents, vocabulary, stream, options, room):
        super().__init__(masking, documents, vocabulary, stream, options, room)
        self._layout = vocabulary.layout
        self._continues = None if self._joins is None else self._joins.tobytes()
        # The original draws a token and looks up its id, which is not the same as drawing an id
        # where a vocabulary holds a token twice, as the released Chinese one holds the empty token.
        drawable = list(vocabulary.ids.values())
        masked, drawn = masking.shares
        rest = 1 - masked
        # The original's second coin, for the tokens that do not become [MASK]: 0.5 for 80/10/10.
        stream.set_die((masked, round((rest - drawn) / rest, 12) if rest else 0.0), drawable)
        # By the number of texts, then of tokens without special ones.
        self._id_type = np.int16 if max(drawable) < 1 << 15 else np.int32
        most = quotas(options.max_seq_length, options.masked_lm_prob, self._slots)
        self._quotas = [[most[min(n + vocabulary.layout.special(pair), len(most) - 1)]
                         for n in range(room + 1)] for pair in (False, True)]
        self._forget()

    def _forget(self):
        self._a_lengths, self._counts = [], []
        self._chosen = []

    def draw(self, a_start: int, a_length: int, b_start: int, b_length: int) -> None:
        """Draws the predictions of one sequence (slices of the token array)."""
        begins = self._begins(a_start, a_length, b_start, b_length)
        quota = self._quotas[b_length > 0][a_length + b_length]
        chosen = choose_units([list(range(first, end)) for first, end in zip(begins, begins[1:])],
                              quota, self._stream)
        self._chosen += chosen
        self._note(a_length, len(chosen))

    def _begins(self, a_start, a_length, b_start, b_length):
        """The first candidate of each unit, then the number of candidates."""
        count = a_length + b_length
        if self._continues is None:
            return list(range(count + 1))
        marks = (self._continues[a_start:a_start + a_length]
                 + self._continues[b_start:b_start + b_length])
        begins = [candidate for candidate, goes_on in enumerate(marks) if not goes_on]
        if marks[0]:        # the first candidate begins a unit even where its word was cut
            begins.insert(0, 0)
        begins.append(count)
        return begins

    def _note(self, a_length, count):
        self._a_lengths.append(a_length)
        self._counts.append(count)
        self._stream.skip_throws(count)

    def _candidates(self, used):
        """int [M, P]: the candidate (0 .. a_length + b_length - 1) of each used slot."""
        candidates = np.zeros(used.shape, np.int64)
        candidates[used] = self._chosen
        return candidates

    def _shown(self):
        """The replacements of all used slots, int32 [N]."""
        return self._stream.take_throws()

    def place(self) -> Masks:
        """The predictions of the sequences drawn since the last call."""
        counts = np.array(self._counts, np.uint16)
        used = np.arange(self._slots) < counts[:, None]
        candidates = self._candidates(used)
        in_b = candidates >= np.array(self._a_lengths, np.int64)[:, None]
        positions = candidates + self._layout.before + in_b * self._layout.between
        shown = np.full(used.shape, KEEP, np.int64)
        shown[used] = self._shown()
        # One sort of both, by position: the unused come last.
        pairs = np.where(used, positions, 1 << 16) << 32 | (shown - MASK)
        pairs.sort(axis=1)
        self._forget()
        return Masks(np.where(used, pairs >> 32, 0).astype(np.uint16),
                     ((pairs & 0xFFFFFFFF) + MASK).astype(self._id_type), counts)


class SubwordMasks(StaticMasks):
    """The fast form of `StaticMasks` where every sub-word is a unit, as is the default."""

    def draw(self, a_start, a_length, b_start, b_length):
        n = a_length + b_length
        self._stream.skip_shuffle(n, self._room, self._slots)
        self._note(a_length, min(self._quotas[b_length > 0][n], n))

    def _candidates(self, used):
        return self._stream.take_shuffles().astype(np.int64).reshape(used.shape)


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    dynamic_class = DynamicMasks

    def static_masks(self, documents, vocabulary, stream, options, room):
        kind = SubwordMasks if self.units == "subwords" else StaticMasks
        return kind(self, documents, vocabulary, stream, options, room)
