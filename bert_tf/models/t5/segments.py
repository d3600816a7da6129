"""T5's noise, and the steps of its pipelines from documents to inputs and targets, with the random
numbers of `seqio.map_seed_manager(seed)`. (google-research/text-to-text-transfer-transformer,
t5/data/preprocessors.py.)

A noise mask returns bool [M, n] for `seeds`, int [M, 2, 2], two of each sequence; `length`, n;
`density`, the share of noise; and `span`, the mean length of a span. A noise function takes
`tokens`, int [M, n]; `noise`, bool [M, n]; `seeds`; and `vocab_size`, V. It returns tokens, int [M,
n], and which of them remain, bool [M, n].
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from bert_tf.data.text import stateless_random
from bert_tf.models.t5.corruption import Denoising, spans_lengths

NoiseMask = Callable[[np.ndarray, int, float, float], np.ndarray]


def _round(value):
    """To the nearest int, half to even, of a float32 as in the original."""
    return int(np.round(np.float32(value)))


def _lengths(seeds, items, parts):
    """Cuts `items` at random into `parts` of one item or more: their lengths, int [M, parts]."""
    is_first = stateless_random.permutations(seeds, items - 1) < parts - 1
    starts = np.nonzero(is_first)[1].reshape(len(seeds), parts - 1) + 1
    ends = np.zeros((len(seeds), 1), int)
    return np.diff(np.concatenate([ends, starts, ends + items], 1), axis=1)


def random_spans(seeds: np.ndarray, length: int, density: float, span: float) -> np.ndarray:
    """Spans of noise between others. The first token is never noise, the last always is."""
    size = max(length, 2)
    noise = min(max(_round(np.float32(size) * np.float32(density)), 1), size - 1)
    # As many as other spans: where these are too few, the original stops with an error.
    spans = min(max(_round(np.float32(noise) / np.float32(span)), 1), size - noise)
    pairs = np.stack([_lengths(seeds[:, 1], size - noise, spans),
                      _lengths(seeds[:, 0], noise, spans)], 2)
    starts = np.cumsum(pairs.reshape(len(seeds), -1), 1)[:, :-1]
    changes = np.zeros((len(seeds), size), int)
    np.put_along_axis(changes, starts, 1, 1)
    return (np.cumsum(changes, 1) % 2 == 1)[:, :length]


def iid(seeds: np.ndarray, length: int, density: float, span: float) -> np.ndarray:
    """Each token by a coin of its own."""
    return stateless_random.uniform(seeds[:, 0], length) < np.float32(density)


def random_prefix(seeds: np.ndarray, length: int, density: float, span: float) -> np.ndarray:
    """The first part, of a random length."""
    most = length - 1
    least = min(max(_round(np.float32(1 - 2 * density) * np.float32(most)), 1), most)
    size = stateless_random.uniform_int(seeds[:, 0], 1, least, most + 1)
    return np.arange(length) < size


NOISE_MASKS: dict[str, NoiseMask] = {
    "random_spans": random_spans, "iid": iid, "random_prefix": random_prefix}
Noised = tuple[np.ndarray, np.ndarray]
NoiseFunction = Callable[[np.ndarray, np.ndarray, np.ndarray, int], Noised]
_FIRST_TOKEN = 3        # that a random token may be
_RANDOM_SHARE = 0.1


def _all(tokens):
    return tokens, np.ones(tokens.shape, bool)


def noise_token_to_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each noise token becomes the last of the vocabulary."""
    return _all(np.where(noise, vocab_size - 1, tokens))


def noise_span_to_unique_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each run of noise becomes a sentinel, from the last token down, also beyond the hundredth."""
    follows = noise & np.pad(noise[:, :-1], ((0, 0), (1, 0)))      # another noise token
    first = noise & ~follows
    return np.where(first, vocab_size - np.cumsum(first, 1), tokens), ~follows


def nonnoise_span_to_unique_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each run of other tokens becomes one sentinel: the noise remains, between sentinels."""
    return noise_span_to_unique_sentinel(tokens, ~noise, seeds, vocab_size)


def drop_noise_tokens(tokens, noise, seeds, vocab_size) -> Noised:
    """The other tokens alone."""
    return tokens, ~noise


def drop_nonnoise_tokens(tokens, noise, seeds, vocab_size) -> Noised:
    """The noise alone."""
    return tokens, noise


def permute_noise_tokens(tokens, noise, seeds, vocab_size) -> Noised:
    """Noise tokens change places with each other."""
    length = tokens.shape[1]
    # The places of the noise first, in their order; then the same in a random order.
    places = np.argsort(~noise, axis=1, kind="stable")
    count = noise.sum(1, keepdims=True)
    draws = np.where(np.arange(length) < count, stateless_random.uniform(seeds[:, 0], length), 2)
    drawn = np.take_along_axis(places, np.argsort(draws, axis=1, kind="stable"), 1)
    permuted = tokens.copy()
    np.put_along_axis(permuted, places, np.take_along_axis(tokens, drawn, 1), 1)
    return _all(np.where(noise, permuted, tokens))


def noise_token_to_random_token(tokens, noise, seeds, vocab_size) -> Noised:
    """Each noise token becomes a random one of the vocabulary."""
    drawn = stateless_random.uniform_int(seeds[:, 0], tokens.shape[1], _FIRST_TOKEN, vocab_size)
    return _all(np.where(noise, drawn, tokens))


def noise_token_to_random_token_or_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each noise token becomes a random one, or nine times out of ten the sentinel."""
    is_random = stateless_random.uniform(seeds[:, 0], tokens.shape[1]) < np.float32(_RANDOM_SHARE)
    return _all(np.where(is_random,
                         noise_token_to_random_token(tokens, noise, seeds[:, 1:], vocab_size)[0],
                         noise_token_to_sentinel(tokens, noise, seeds, vocab_size)[0]))


def keep_tokens(tokens, noise, seeds, vocab_size) -> Noised:
    """The text as it was."""
    return _all(tokens)


NOISE_FUNCTIONS: dict[str, NoiseFunction] = {function.__name__: function for function in (
    noise_token_to_sentinel, noise_span_to_unique_sentinel, nonnoise_span_to_unique_sentinel,
    drop_noise_tokens, drop_nonnoise_tokens, permute_noise_tokens, noise_token_to_random_token,
    noise_token_to_random_token_or_sentinel, keep_tokens)}


_SEEDS = 6          # of a sequence: two each for its mask, its input, its target
_SHORTEST = 8       # sequence of a random length
Tokens = Sequence[np.ndarray]


@dataclasses.dataclass
class Runs:
    """M runs of tokens: `tokens`, int32, of all runs, one after the other; and `ends`, int64 [M +
    1], where each run ends; the first is 0."""

    tokens: np.ndarray
    ends: np.ndarray

    @classmethod
    def join(cls, runs: Iterable[np.ndarray]) -> "Runs":
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
    """The seeds of each step's elements, a pair of data sets per step, as in
    `seqio.map_seed_manager`."""

    def __init__(self, seed: int) -> None:
        self._next = seed

    def take(self, count: int) -> np.ndarray:
        """Returns the seeds of the next step, int64 [count, 2]."""
        first, self._next = self._next, self._next + 2
        return stateless_random.dataset_seeds((first, first + 1), count)


def _cut(documents, length):
    """Sequences of `length`, an int or one for each document, the last of each shorter."""
    lengths = np.broadcast_to(length, len(documents)).tolist()
    return [document[start:start + size] for document, size in zip(documents, lengths)
            for start in range(0, len(document), size)]


def cut(documents: Tokens, objective: Denoising, seeds: MapSeeds, inputs_length: int,
        targets_length: int, eos_id: int) -> list[np.ndarray]:
    """Returns the sequences of tokens that inputs and targets are made from."""
    documents = [document for document in documents if len(document)]
    if objective.most_tokens:
        most = objective.most_tokens
        pieces = np.array([-(-len(document) // most) for document in documents], int)
        drawn = stateless_random.split(seeds.take(len(documents)), 2)[:, 1]
        places = most * stateless_random.uniform_int(drawn, 1, 0, pieces)[:, 0]
        documents = [document[place:place + most] for document, place in zip(documents, places)]
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
    if objective.length == "random":    # log-uniform
        low, high = np.float32(math.log(_SHORTEST)), np.float32(math.log(inputs_length - 1))
        shares = stateless_random.uniform(drawn, 1)[:, 0]
        return _cut(documents, np.exp(shares * np.float32(high - low) + low).astype(int))
    if objective.length == "spans":
        return _cut(documents, spans_lengths(inputs_length, objective.noise_density,
                                             objective.mean_noise_span_length)[0])
    if objective.length == "inputs":
        return _cut(documents, inputs_length - 1)
    return _cut(documents, targets_length - (not objective.document_ends))


def corrupt(tokens: np.ndarray, objective: Denoising, seeds: np.ndarray, vocab_size: int
            ) -> list[tuple[np.ndarray, np.ndarray]]:
    """The inputs and targets, without final tokens, of sequences of one length
    (`single_example_denoise`): M pairs of int arrays.

    Args:
        tokens: int [M, n].
        objective: `Denoising`, with noise.
        seeds: int32 or int64 [M, 2].
        vocab_size: V, of the tokenizer; sentinels count down from it.
    """
    children = stateless_random.split(seeds, _SEEDS)
    noise = NOISE_MASKS[objective.noise](
        children[:, :2], tokens.shape[1], objective.noise_density,
        objective.mean_noise_span_length)
    sides = []
    for name, own in ((objective.inputs, children[:, 2:4]), (objective.targets, children[:, 4:])):
        values, remains = NOISE_FUNCTIONS[name](tokens, noise, own, vocab_size)
        sides.append([row[stays] for row, stays in zip(values, remains)])
    return list(zip(*sides))


def make_pairs(documents: Tokens, objective: Denoising, seeds: MapSeeds, inputs_length: int,
               targets_length: int, vocab_size: int, eos_id: int) -> tuple[Runs, Runs, int]:
    """The inputs and targets of all documents, and the tokens of the text that they were made from.
    They are in the order of the text, each cut to its length, with its final token; an input is
    empty where there is no noise.

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
