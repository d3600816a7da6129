"""From documents to inputs and targets: the steps of T5's pipelines (google-research's
text-to-text-transfer-transformer, t5/data/preprocessors.py), with the random numbers that they draw
in `seqio.map_seed_manager(seed)`."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bert_tf.data.text import stateless_random
from bert_tf.models.t5.corruption import Denoising, spans_lengths
from bert_tf.models.t5.noise import NOISE_FUNCTIONS, NOISE_MASKS, roll

_SEEDS = 6          # of a sequence: two each for its mask, its input, its target
_SHORTEST = 8       # sequence of a random length
Tokens = Sequence[np.ndarray]


@dataclasses.dataclass
class Runs:
    """M runs of tokens.

    Attributes:
        tokens: int32, of all runs, one after the other.
        ends: int64 [M + 1], where each run ends; the first is 0.
    """

    tokens: np.ndarray
    ends: np.ndarray

    @classmethod
    def join(cls, runs: Iterable[np.ndarray]) -> "Runs":
        """Joins one array for each run."""
        runs = list(runs)
        tokens = np.concatenate([np.zeros(0, np.int32), *runs]).astype(np.int32)
        return cls(tokens, np.concatenate([[0], np.cumsum([len(run) for run in runs], dtype=int)]))

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, run: int) -> np.ndarray:
        return self.tokens[self.ends[run]:self.ends[run + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.tokens[start:end] for start, end in itertools.pairwise(self.ends))

    @property
    def lengths(self) -> np.ndarray:
        """int64 [M]."""
        return np.diff(self.ends)

    def padded(self, rows: np.ndarray, size: int) -> np.ndarray:
        """Some runs, cut or padded with 0: int32 [B, size]."""
        column = np.arange(size)
        inside = column < self.lengths[rows][:, None]
        places = np.where(inside, self.ends[rows][:, None] + column, 0)
        return np.where(inside, self.tokens[places] if len(self.tokens) else 0, 0).astype(np.int32)


class MapSeeds:
    """The seeds that each step takes for its elements, a pair of data sets per step, as
    `seqio.map_seed_manager(seed)` has them."""

    def __init__(self, seed: int) -> None:
        self._next = seed

    def take(self, count: int) -> np.ndarray:
        """Returns the seeds of the next step, int64 [count, 2]."""
        first, self._next = self._next, self._next + 2
        return stateless_random.dataset_seeds((first, first + 1), count)


def _random_pieces(documents, most, seeds):
    """One of the pieces of `most` tokens of each document."""
    pieces = np.array([-(-len(document) // most) for document in documents], int)
    drawn = stateless_random.split(seeds, 2)[:, 1]
    places = most * stateless_random.uniform_int(drawn, 1, 0, pieces)[:, 0]
    return [document[place:place + most] for document, place in zip(documents, places)]


def _cut(documents, length):
    """Sequences of `length`, an int or one for each document, the last of each shorter."""
    lengths = np.broadcast_to(length, len(documents)).tolist()
    return [document[start:start + size] for document, size in zip(documents, lengths)
            for start in range(0, len(document), size)]


def _random_lengths(seeds, most):
    """Log-uniform, int [M]."""
    low, high = np.float32(math.log(_SHORTEST)), np.float32(math.log(most))
    drawn = stateless_random.uniform(seeds, 1)[:, 0]
    return np.exp(drawn * np.float32(high - low) + low).astype(int)


def cut(documents: Tokens, objective: Denoising, seeds: MapSeeds, inputs_length: int,
        targets_length: int, eos_id: int) -> list[np.ndarray]:
    """Returns the sequences of tokens that inputs and targets are made from."""
    documents = [document for document in documents if len(document)]
    if objective.most_tokens:
        documents = _random_pieces(documents, objective.most_tokens, seeds.take(len(documents)))
    if objective.document_ends:
        documents = [np.append(document, eos_id) for document in documents]
    if objective.length == "stream":
        return _cut([np.concatenate(documents)] if documents else [], targets_length - 1)
    if count := objective.concatenated:
        joined = [np.concatenate(documents[start:start + count])
                  for start in range(0, len(documents), count)]
        documents = [document[document != 0] for document in joined]    # as in the original
    documents = [document for document in documents if len(document)]
    drawn = seeds.take(len(documents))
    return _cut(documents, {
        "spans": lambda: spans_lengths(inputs_length, objective.noise_density,
                                       objective.mean_noise_span_length)[0],
        "inputs": lambda: inputs_length - 1,
        "targets": lambda: targets_length - (not objective.document_ends),
        "random": lambda: _random_lengths(drawn, inputs_length - 1)}[objective.length]())


def corrupt(tokens: np.ndarray, objective: Denoising, seeds: np.ndarray, vocab_size: int
            ) -> list[tuple[np.ndarray, np.ndarray]]:
    """The inputs and targets, without final tokens, of sequences of one length
    (`single_example_denoise`).

    Args:
        tokens: int [M, n].
        objective: `Denoising`, with noise.
        seeds: int32 or int64 [M, 2].
        vocab_size: V, of the tokenizer; sentinels count down from it.

    Returns:
        M pairs of int arrays.
    """
    children = stateless_random.split(seeds, _SEEDS)
    noise = NOISE_MASKS[objective.noise](
        children[:, :2], tokens.shape[1], objective.noise_density,
        objective.mean_noise_span_length)
    if objective.random_roll:
        noise = roll(noise, children[:, :2])
    sides = []
    for name, own in ((objective.inputs, children[:, 2:4]), (objective.targets, children[:, 4:])):
        values, remains = NOISE_FUNCTIONS[name](tokens, noise, own, vocab_size)
        sides.append([row[stays] for row, stays in zip(values, remains)])
    return list(zip(*sides))


def make_pairs(documents: Tokens, objective: Denoising, seeds: MapSeeds, inputs_length: int,
               targets_length: int, vocab_size: int, eos_id: int) -> tuple[Runs, Runs, int]:
    """Returns the inputs and targets of all documents, and the tokens of the text that they were
    made from. They are in the order of the text, each cut to its length, with its final token; an
    input is empty where there is no noise.

    Args:
        documents: the tokens of each, int arrays.
        inputs_length, targets_length: the longest, final tokens included.
        vocab_size: V, of the tokenizer.
    """
    sequences = cut(documents, objective, seeds, inputs_length, targets_length, eos_id)
    lengths = np.array([len(run) for run in sequences], int)
    if not objective.has_inputs:
        empty = Runs(np.zeros(0, np.int32), np.zeros(len(sequences) + 1, int))
        if not objective.document_ends:
            sequences = _ended(sequences, targets_length, eos_id)
        return empty, Runs.join(sequences), int(lengths.sum())
    drawn = seeds.take(len(sequences))
    inputs, targets = ([np.zeros(0, int)] * len(sequences) for _ in range(2))
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        tokens = np.stack([sequences[row] for row in rows])
        for row, pair in zip(rows, corrupt(tokens, objective, drawn[rows], vocab_size)):
            inputs[row], targets[row] = pair
    return (Runs.join(_ended(inputs, inputs_length, eos_id)),
            Runs.join(_ended(targets, targets_length, eos_id)), int(lengths.sum()))


def _ended(runs, length, eos_id):
    return [np.append(run[:length - 1], eos_id) for run in runs]
