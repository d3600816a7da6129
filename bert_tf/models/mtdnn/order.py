"""The order of multi-task fine-tuning: the task and the batch of each step.

An order is a pure function of the sizes of the tasks, the seed and the settings: a resumed run
takes the same steps. Shapes: T tasks.
"""

import dataclasses
import math
import random
from collections.abc import Sequence

import numpy as np

SAMPLINGS = ("batches", "consecutive", "proportional", "temperature", "round_robin")
WHOLE_EPOCHS = ("batches", "consecutive")      # an epoch takes every batch once


@dataclasses.dataclass(frozen=True)
class TaskOrder:
    """Shares the steps of a run among its tasks.

    Attributes:
        sizes: the number of examples of each task.
        batch_size: of all tasks; the last batch of a task may be smaller.
        epochs: each takes as many steps as there are batches.
        sampling: "batches", as namisan/mt-dnn v0.1: every batch of every task once an epoch, in a
            random order. "consecutive", as its later code (mt_dnn/batcher.py,
            MultiTaskBatchSampler): a batch has rows that follow each other, and the order of a
            task's batches is drawn once for all epochs. The other values choose a task for each
            step, and draw a new order of its batches when all batches were taken.
            "proportional": with the probability of a task's share of the examples, where at most
            `cap` of each task count (arXiv:1910.10683, section 3.5.2); "temperature": with this
            share to the power 1 / `temperature`; "round_robin": one after the other.
        mix_opt: 1 to have the first task's batches come after all others in each epoch.
        ratio: in each epoch draw only `ratio` times as many batches of the other tasks as the first
            task has; 0 for all.
        temperature, cap: see `sampling`; a cap of 0 means no cap.
        count: the number of steps; 0 for as many as the epochs take.
    """

    sizes: tuple[int, ...]
    batch_size: int
    epochs: float
    seed: int
    sampling: str = "batches"
    mix_opt: int = 0
    ratio: float = 0.0
    temperature: float = 2.0
    cap: int = 0
    count: int = 0

    @property
    def counts(self) -> list[int]:
        return [-(-size // self.batch_size) for size in self.sizes]

    @property
    def steps_of_epoch(self) -> int:
        first, *others = self.counts
        if not self.ratio:
            return first + sum(others)
        return first + int(min(self.ratio * first, sum(others)))

    @property
    def total_steps(self) -> int:
        """Steps of the rate's schedule. With `ratio`, epochs are not rounded, as in MT-DNN v0.1;
        its later code, "consecutive", counts the batches that are not drawn, too."""
        if self.ratio and self.sampling == "batches" and len(self.sizes) > 1:
            return int(self.epochs * self.counts[0] * (1 + self.ratio))
        return int(self.epochs * sum(self.counts))

    @property
    def rates(self) -> np.ndarray:
        """The probability of each task in "proportional" and "temperature", float64 [T]."""
        # Not above: flags are read before TensorFlow is loaded.
        from bert_tf.models.t5.mixture import mixing_rates
        return mixing_rates(self.sizes, self.cap or None,
                            self.temperature if self.sampling == "temperature" else 1.0)

    def steps(self) -> list[tuple[int, list[int]]]:
        """The task of each step and the examples of its batch, for all epochs."""
        find = self._epochs if self.sampling in WHOLE_EPOCHS else self._draws
        return find(math.ceil(self.epochs))[:self.count or max(self.total_steps, 1)]

    def _epochs(self, epochs):
        """Epochs as train.py and batcher.py draw them, with `random` and NumPy."""
        generator, drawn = random.Random(self.seed), np.random.RandomState(self.seed)
        once = self.sampling == "consecutive"
        batches = [_shuffled(_cut(range(size), self.batch_size), generator) if once else
                   _batches(size, self.batch_size, generator) for size in self.sizes]
        steps = []
        for _ in range(epochs):
            if not once:
                batches = [_shuffled(group, generator) for group in batches]
            first, others = len(batches[0]), [
                task for task, group in enumerate(batches) if task for _ in group]
            if self.ratio:
                count = int(min(self.ratio * first, len(others)))
                others = [int(task) for task in drawn.choice(others, count, replace=False)]
            mains = [0] * first
            if self.mix_opt:
                order = [*_shuffled(others, generator), *mains]
            else:
                order = _shuffled([*mains, *others] if self.ratio else [*others, *mains], generator)
            iterators = list(map(iter, batches))
            steps += [(task, next(iterators[task])) for task in order]
        return steps

    def _draws(self, epochs):
        """A task for each step; the order of a task's batches depends on the task alone."""
        count = epochs * self.steps_of_epoch
        if self.sampling == "round_robin":
            order = np.arange(count) % len(self.sizes)
        else:
            order = np.random.default_rng([self.seed, 0]).choice(
                len(self.sizes), count, p=self.rates)
        streams = [self._stream(task) for task in range(len(self.sizes))]
        return [(int(task), next(streams[task])) for task in order]

    def _stream(self, task):
        generator = random.Random(f"{self.seed} {task}")
        batches = _batches(self.sizes[task], self.batch_size, generator)
        while True:
            batches = _shuffled(batches, generator)
            yield from batches


def _shuffled(values: Sequence, generator: random.Random) -> list:
    values = list(values)
    generator.shuffle(values)
    return values


def _batches(size, batch_size, generator):
    """The batches of a task, whose members stay together for the whole run."""
    return _cut(_shuffled(range(size), generator), batch_size)


def _cut(rows, size):
    return [list(rows[first:first + size]) for first in range(0, len(rows), size)]
