"""Static masks: predictions that are drawn while records are made.

There are three steps. *Choose*: which units (sub-words, words ...) are predicted; `MASKINGS` holds
every way. *Throw*: whether a chosen token becomes [MASK], stays, or becomes a random one. *Hide*:
the ids that the model sees, and the labels. All is drawn from the random stream of the original.
"""

from collections.abc import Sequence

import numpy as np

from bert_tf.data.masking.masks import KEEP, Masks
from bert_tf.data.masking.span_masks import SpanMasks
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.corruption import MaskTokens
from bert_tf.tokenization.vocabulary import Vocabulary


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


_LENGTHS_AT_ONCE = 1 << 14


class StaticMasks:
    """Draws masks as google-research/bert `create_masked_lm_predictions`.

    Drawing and placing are apart. `draw` moves the random stream on by what one sequence takes and
    notes the choices; `place` turns the notes of thousands of sequences into arrays at once.

    Args:
        masking: `MaskTokens`.
        documents: `Documents`, of which a sequence is slices.
        stream: `PythonRandom`, shared with the pairing.
        vocabulary: `Vocabulary`; random replacements are drawn from all of it.
        quotas: most predictions by length of the sequence, see `quotas`.
        max_predictions_per_seq: P.
        room: most tokens of a sequence without its special ones.
    """

    def __init__(self, masking: MaskTokens, documents: Documents, stream: PythonRandom,
                 vocabulary: Vocabulary, quotas: Sequence[int], max_predictions_per_seq: int,
                 room: int) -> None:
        self._layout, self._stream, self._room = vocabulary.layout, stream, room
        joins = documents.joins(masking.units)
        self._continues = None if joins is None else joins.tobytes()
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
        self._slots = max_predictions_per_seq * (1 + masking.do_permutation)
        self._forget()

    def _forget(self):
        self._a_lengths, self._counts = [], []
        self._chosen, self._replacements = [], []

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
        self._replacements += self._stream.throws(count, self._limits, self._drawable)

    def _candidates(self, used):
        """int [M, P]: the candidate (0 .. a_length + b_length - 1) of each used slot."""
        candidates = np.zeros(used.shape, np.int64)
        candidates[used] = self._chosen
        return candidates

    def place(self) -> Masks:
        """The predictions of the sequences drawn since the last call."""
        counts = np.array(self._counts, np.uint16)
        used = np.arange(self._slots) < counts[:, None]
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
        return self._stream.take_shuffles(self._slots).astype(np.int64)


class NgramMasks(StaticMasks):
    """Draws masks as google-research/albert `create_masked_lm_predictions`: up to `ngram` units in
    a row at once.

    The original draws the lengths from NumPy's global generator, which it never seeds; here it has
    the seed of the other stream (modulo 2**32, the seeds that it takes).
    """

    def __init__(self, masking: MaskTokens, documents: Documents, stream: PythonRandom,
                 *args) -> None:
        super().__init__(masking, documents, stream, *args)
        self._ngram, self._tokens = masking.ngram, documents.tokens
        self._permutes = masking.do_permutation
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
    """Yields what `numpy.random.choice` of 1 .. ngram draws, for ever."""
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


MASKINGS = {"units": StaticMasks, "ngrams": NgramMasks, "spans": SpanMasks}


def static_masks(masking: MaskTokens, *args) -> StaticMasks | SpanMasks:
    """What draws the masks of a recipe; `args` are its documents, stream, vocabulary, quotas, P and
    room."""
    if masking.choose == "units" and masking.units == "subwords":
        return SubwordMasks(masking, *args)
    return MASKINGS[masking.choose](masking, *args)
