"""Batches of inputs and targets from several tasks, mixed by rates (arXiv:1910.10683, section
3.5.2). The seed and the place alone decide which example comes at a place."""

import dataclasses
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.data.batches import bucketing
from bert_tf.data.records.features import generated
from bert_tf.data.text import stateless_random
from bert_tf.models.t5.records import TextPairs, feature_names
from bert_tf.models.t5.segments import Runs

_BLOCK = 1 << 12        # places whose tasks are drawn at a time


def mixing_rates(sizes: Sequence[int], maximum: int | None = None, temperature: float = 1.0
                 ) -> np.ndarray:
    """The share of each task in a mixture, float64 [tasks]: its examples, where at most `maximum`
    count, to the power of 1 / temperature. Infinite temperature makes all tasks equal."""
    counts = np.array(sizes, np.float64)
    if maximum is not None:
        counts = np.minimum(counts, maximum)
    with np.errstate(over="ignore"):
        rates = counts ** (1 / temperature)
    if not np.isfinite(rates.sum()):    # a very low temperature
        rates = (counts / counts.max()) ** (1 / temperature)
    return rates / rates.sum()


class Draws:
    """Draws the task and the example at each place of an endless stream. `sizes` are the numbers of
    examples of tasks, `rates` see `mixing_rates`; `seed` is below 2**31.

    A throw decides the task of each place. The examples of a task come in a random order, and in
    another order after all have come.
    """

    def __init__(self, sizes: Sequence[int], rates: np.ndarray, seed: int) -> None:
        self._sizes, self._seed = np.array(sizes), seed
        self._bounds = np.cumsum(rates)
        self._orders: dict[int, tuple[int, np.ndarray]] = {}

    def _tasks(self, block):
        """The tasks of the places of a block, int [_BLOCK]."""
        drawn = stateless_random.uniform(np.array([[self._seed, block]]), _BLOCK)[0]
        return np.minimum(np.searchsorted(self._bounds, drawn, "right"), len(self._sizes) - 1)

    def __call__(self, first: int) -> Iterator[tuple[int, int]]:
        """Yields (task, example) of the places from `first` on."""
        seen = np.zeros(len(self._sizes), int)      # how many of each task came before
        for block in range(first // _BLOCK):
            seen += np.bincount(self._tasks(block), minlength=len(seen))
        for block in itertools.count(first // _BLOCK):
            for place, task in enumerate(self._tasks(block).tolist(), block * _BLOCK):
                number = seen[task]
                seen[task] += 1
                if place >= first:
                    yield task, self._example(task, int(number))

    def _example(self, task, number):
        epoch, place = divmod(number, int(self._sizes[task]))
        if self._orders.get(task, (None,))[0] != epoch:
            # Blocks of places have seeds of their own, from 0 on.
            seed = np.array([[self._seed, -1 - (epoch * len(self._sizes) + task)]])
            self._orders[task] = epoch, stateless_random.permutations(
                seed, int(self._sizes[task]))[0]
        return int(self._orders[task][1][place])


@dataclasses.dataclass(frozen=True)
class TextMixture:
    """The examples of several tasks to train on.

    Attributes:
        tasks: {name: inputs and targets, with their final tokens}.
        rates: of `mixing_rates`.
        max_seq_length, max_target_length: S and T.
        padding: see `bucketing`; `MAX_LENGTH` in the original. The loss is divided by the number of
            all positions, so less padding makes it larger.
        by_length: whether the examples of a batch have similar lengths. Examples are sorted within
            pools of up to `bucketing.POOL_BATCHES` batches; so small that few examples are there
            twice, since copies would share a batch. Otherwise examples come as drawn.
    """

    tasks: Mapping[str, tuple[Runs, Runs]]
    rates: np.ndarray
    max_seq_length: int
    max_target_length: int
    padding: str = bucketing.BUCKETS
    by_length: bool = True

    @property
    def size(self) -> int:
        return sum(len(targets) for _, targets in self.tasks.values())

    def identity(self) -> dict[str, Any]:
        """Values that must be equal for a place in the stream to mean the same examples."""
        digest = hashlib.sha256()
        for runs in itertools.chain.from_iterable(self.tasks.values()):
            digest.update(runs.tokens.tobytes())
            digest.update(runs.ends.tobytes())
        return {"tasks": list(self.tasks), "rates": self.rates.tolist(),
                "examples": digest.hexdigest(), "max_seq_length": self.max_seq_length,
                "max_target_length": self.max_target_length, "padding": self.padding,
                "by_length": self.by_length}

    def locate_damage(self) -> None:
        """Does nothing: the examples are in memory."""

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1,
                         length: tuple[int, int] | None = None) -> tf.data.Dataset:
        """Returns an endless dataset of the batches of each replica of one worker; see
        `ExampleSet.training_batches`. A batch has a length of its inputs and one of its targets."""
        local = replicas // workers

        def generate():
            for rows, sizes in self._rows(seed, taken, global_batch):
                if length in (None, sizes):
                    sides = list(self.tasks.values())
                    pairs = TextPairs(*(Runs.join(sides[task][side][row] for task, row in rows)
                                        for side in (0, 1)), *sizes)
                    features = pairs.features(pairs.order)
                    for part in range(worker * local, (worker + 1) * local):
                        yield {name: np.split(values, replicas)[part]
                               for name, values in features.items()}

        spec = {name: tf.TensorSpec([global_batch // replicas, length and length[
            name.startswith("decoder")]], tf.int32)
            for name in feature_names("encoder_decoder", pack=False)}
        return generated(generate, spec, local)

    def batch_lengths(self, seed: int, taken: int, global_batch: int) -> Iterator[tuple[int, int]]:
        """Yields the lengths of inputs and targets of each batch of `training_batches`."""
        return (sizes for _, sizes in self._rows(seed, taken, global_batch))

    def _rows(self, seed, taken, global_batch):
        """Yields (task and example of each row of a batch, the lengths of inputs and targets)."""
        lengths = [[runs.lengths for runs in pair] for pair in self.tasks.values()]
        most = self.max_seq_length, self.max_target_length
        for rows in self._batches(seed, taken, global_batch):
            yield rows, tuple(bucketing.padded_length(
                [min(max(lengths[task][side][row] for task, row in rows), longest)], longest,
                self.padding) for side, longest in enumerate(most))

    def _batches(self, seed, taken, global_batch):
        """Yields task and example of each row of a batch."""
        sizes = [len(targets) for _, targets in self.tasks.values()]
        draws = Draws(sizes, self.rates, seed)
        if not self.by_length:
            drawn = draws(taken)
            while True:
                yield list(itertools.islice(drawn, global_batch))
        lengths = [inputs.lengths + targets.lengths for inputs, targets in self.tasks.values()]
        batches = int(np.clip(min(sizes / self.rates) // global_batch, 1, bucketing.POOL_BATCHES))
        first, rest = divmod(taken, batches * global_batch)
        drawn = draws(first * batches * global_batch)
        for pool in itertools.count(first):
            rows = sorted(itertools.islice(drawn, batches * global_batch),
                          key=lambda row: lengths[row[0]][row[1]])
            order = np.random.Generator(np.random.PCG64([seed, pool])).permutation(batches)
            for place in order[rest // global_batch:]:
                yield rows[place * global_batch:(place + 1) * global_batch]
            rest = 0
