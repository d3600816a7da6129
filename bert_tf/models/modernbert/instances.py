"""Rows, B of S tokens, that sequences share, packed as AnswerDotAI/ModernBERT packs them
(src/sequence_packer.py, GreedyBestFitSequencePacker). A row here has as many tokens as the longest
sequence; the original's has those of a micro-batch."""

import dataclasses
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from bert_tf.data import masking
from bert_tf.data.instances import pretraining
from bert_tf.data.masking.base import Masks
from bert_tf.data.records.features import pack_pairs
from bert_tf.data.segments.pairing import Slices
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes import Recipe
from bert_tf.recipes.recipe import Segments
from bert_tf.tokenization.vocabulary import Vocabulary

# Rows that are filled at the same time, and the sequences that may wait for the next ones.
_ROWS = 64
_BUFFER = 5 * _ROWS


def document_runs(documents: Documents, stream: PythonRandom, room: int, options: Any,
                  segments: Segments) -> Iterator[Slices]:
    """Runs of `room` tokens of one document, wherever its sentences end. The original leaves out
    what is behind the first run."""
    starts = documents.sentence_starts
    for _ in range(options.dupe_factor):
        for first, end in documents.ranges:
            for begin in range(starts[first], starts[end], room):
                yield begin, min(room, starts[end] - begin), 0, 0, 0


def best_fit(lengths: Sequence[int], size: int, rows_of: Callable[[int], int], buffer: int,
             group: int) -> Iterator[list[list[int]]]:
    """Packs sequences in their order: each goes into the row with the least room that still holds
    it. A sequence that no row holds waits for the next batch, where the last one comes first.

    Args:
        lengths: of the sequences, at most `size`.
        size: tokens of a row.
        rows_of: function of the tokens packed before, which returns the rows of the next batch.
        buffer: sequences are read in groups of `group` while fewer than this are held. A batch ends
            when there is no room for another group, or no sequence left.

    Yields:
        The sequences' numbers in each row of a batch. The original drops a batch with an empty row,
        and all after it.
    """
    source, tokens = iter(range(len(lengths))), 0
    ready: deque[int] = deque()
    while True:
        rows: list[list[int]] = [[] for _ in range(rows_of(tokens))]
        free, waiting = np.full(len(rows), size), []
        while True:
            if not ready:
                room = min(buffer - 1, buffer - len(waiting))
                for _ in range(room // group):
                    ready.extend(itertools.islice(source, group))
            if not ready:
                break
            sequence = ready.popleft()
            left = free - lengths[sequence]
            row = np.where(left < 0, size, left).argmin()
            if left[row] < 0:
                waiting.append(sequence)
                continue
            rows[row].append(sequence)
            free[row] = left[row]
        if not any(rows):
            return
        yield rows
        ready.extendleft(waiting)
        tokens += len(rows) * size - int(free.sum())


@dataclasses.dataclass
class PackedRows(pretraining.Instances):
    """Instances that are rows of several sequences; `slices` are the sequences'.

    `sequence_ids` has the number of each token's sequence in its row, from 1; 0 for padding.

    Attributes:
        rows: the numbers of the sequences in each row.
    """

    rows: list[list[int]] = dataclasses.field(default_factory=list)

    @classmethod
    def feature_names(cls, recipe: Recipe) -> list[str]:
        return ["input_ids", "input_mask", "sequence_ids",
                *masking.find(recipe.corruption).features()]

    @classmethod
    def create(cls, documents: Documents, vocabulary: Vocabulary, seed: int, recipe: Recipe,
               options: Any, rows: int) -> Self:
        made = super().create(documents, vocabulary, seed, recipe.vary(
            corruption={"dynamic": True}), options, rows)       # no masks of single sequences
        made.names = cls.feature_names(recipe)
        size, epochs = options.max_seq_length, options.dupe_factor
        lengths = made.layout.length(*made.slices[:, [1, 3]].T)
        count = len(lengths) // epochs      # all readings have the same sequences
        batches = [list(filter(None, batch)) for batch in best_fit(
            lengths[:count].tolist(), size, lambda tokens: _ROWS, _BUFFER, _ROWS)]
        made.rows = [[epoch * count + sequence for sequence in row]
                     for epoch in range(epochs) for batch in batches for row in batch]
        made.order = np.arange(len(made.rows))
        if recipe.corruption.dynamic:
            return made
        masks = masking.find(recipe.corruption).static_masks(
            documents, vocabulary, PythonRandom(seed), options, size)
        parts, place = [], 0
        for epoch in range(epochs):
            masks.begin(epoch)
            for batch in batches:
                ids, numbers = made.pack(range(place, place + len(batch)), size, vocabulary)
                parts.append(masks.place(ids, numbers > 0))
                place += len(batch)
        made.cut = masks.cut
        if parts:
            made.masks = Masks.join(parts)
        return made

    def pack(self, rows: Sequence[int], max_seq_length: int, vocabulary: Vocabulary
             ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids and `sequence_ids` of some rows, int32 [B, S]."""
        chosen = [self.rows[row] for row in rows]
        runs = self.slices[list(itertools.chain(*chosen))].T[:4]
        lengths = self.layout.length(runs[1], runs[3])
        packed = pack_pairs(self.documents.tokens, *runs, int(lengths.max(initial=1)), vocabulary)
        row = np.repeat(np.arange(len(chosen)), list(map(len, chosen)))
        number = np.concatenate([np.arange(1, 1 + len(each)) for each in chosen])
        # Tokens of a row follow each other.
        row, number = np.repeat(row, lengths), np.repeat(number, lengths)
        place = row, np.arange(len(row)) - np.searchsorted(row, row)
        ids = np.full((len(chosen), max_seq_length), vocabulary.pad_id, np.int32)
        numbers = np.zeros_like(ids)
        ids[place], numbers[place] = packed["input_ids"][packed["input_mask"]], number
        return ids, numbers

    def features(self, rows: np.ndarray, max_seq_length: int,
                 vocabulary: Vocabulary) -> dict[str, np.ndarray]:
        ids, numbers = self.pack(rows, max_seq_length, vocabulary)
        arrays = {"input_ids": ids, "input_mask": numbers > 0, "sequence_ids": numbers}
        if self.masks is not None:
            arrays |= self.masks.rows(rows).hide(ids, vocabulary.mask_id)
        return {name: arrays[name] for name in self.names}

    def label_counts(self) -> dict[str, int]:
        return {**super().label_counts(), "instances": len(self.rows),
                "sequences": len(self.slices)}
