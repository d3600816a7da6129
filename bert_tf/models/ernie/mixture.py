"""Records of several tasks: each step takes a batch of one task, as a table of stages and the order
in them have it.

The task of a step is a function of the step alone, so a run that is started again takes the same.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from bert_tf import recipes
from bert_tf.data.batches.pipeline import RecordSet
from bert_tf.data.segments import pairing
from bert_tf.errors import InputError


def continual(count: int, steps: int) -> list[list[int]]:
    """The steps by stage of each task in continual learning (arXiv:1907.12412, section 5.4): each
    stage adds a task to the earlier tasks, and all tasks have equally many steps.

    Of N steps, a task has N / (count + 1) in each stage but its first, which has the rest: for four
    tasks of 50 steps 20 10 10 10, 0 30 10 10, 0 0 40 10 and 0 0 0 50.
    """
    table = []
    for task, total in enumerate(_share(steps, count)):
        later = total // (count + 1)
        table.append([0] * task + [total - later * (count - 1 - task)]
                     + [later] * (count - 1 - task))
    return table


def _share(steps, count):
    """`steps` in `count` numbers that differ by 1 at most."""
    return [steps // count + (index < steps % count) for index in range(count)]


def successive(count: int, steps: int) -> list[list[int]]:
    return [[0] * task + [share] + [0] * (count - 1 - task)
            for task, share in enumerate(_share(steps, count))]


TABLES = {"continual": continual, "successive": successive,
          "together": lambda count, steps: [[share] for share in _share(steps, count)]}


@dataclasses.dataclass(frozen=True)
class TaskSchedule:
    """The steps of each task; `table` has a row of steps by stage for each."""

    names: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]

    @classmethod
    def parse(cls, values: Sequence[str], names: Sequence[str], steps: int) -> "TaskSchedule":
        """The schedule that a flag's values describe: a name in `TABLES`, or NAME=STEPS/STEPS/...
        for each task. InputError if they are neither, or have another number of steps."""
        if len(values) == 1 and values[0] in TABLES:
            table = TABLES[values[0]](len(names), steps)
            return cls(tuple(names), tuple(map(tuple, table)))
        rows = {}
        for value in values:
            name, _, stages = value.partition("=")
            if name not in names or not stages.replace("/", "").isdecimal() or name in rows:
                raise InputError(f"--task_schedule: {value!r} must be one of {', '.join(TABLES)}, "
                                 f"or a task of the records ({', '.join(names)}), = and its steps "
                                 f"in each stage, such as {names[0]}=20/10.")
            rows[name] = tuple(int(number or 0) for number in stages.split("/"))
        stages = max(map(len, rows.values()), default=0)
        table = [rows.get(name, ()) + (0,) * (stages - len(rows.get(name, ()))) for name in names]
        if sum(map(sum, table)) != steps:
            raise InputError(f"--task_schedule has {sum(map(sum, table)):,} steps, but "
                             f"--num_train_steps is {steps:,}; make them the same.")
        return cls(tuple(names), tuple(table))

    @functools.cached_property
    def tasks(self) -> np.ndarray:
        """int16 [steps], the number of each step's task. In a stage each step takes the task that
        is furthest behind its share, the first of several."""
        numbers = []
        for counts in np.array(self.table, np.int64).T:
            total, done = counts.sum(), np.zeros_like(counts)
            for step in range(total):
                behind = counts * (step + 1) - done * total
                task = int(np.argmax(np.where(done < counts, behind, np.iinfo(np.int64).min)))
                done[task] += 1
                numbers.append(task)
        return np.array(numbers, np.int16)

    def counts(self, step: int) -> list[int]:
        """How many of the steps before `step` each task has."""
        return np.bincount(self.tasks[:step], minlength=len(self.names)).tolist()


@dataclasses.dataclass(frozen=True)
class TaskMixture:
    """Records of several tasks, as `RecordSet` has them for one kind: `sets` by their names, in the
    order of the schedule, which is None where nothing is trained."""

    sets: Mapping[str, RecordSet]
    schedule: TaskSchedule | None = None
    step: int = 0

    @property
    def paths(self) -> list[str]:
        return [path for records in self.sets.values() for path in records.paths]

    @property
    def size(self) -> int:
        return sum(records.size for records in self.sets.values())

    _first = property(lambda self: next(iter(self.sets.values())))
    format = property(lambda self: self._first.format)
    manifest = property(lambda self: self._first.manifest)
    vocab_hash = property(lambda self: self._first.vocab_hash)
    tasks = property(lambda self: tuple(self.sets))

    def check(self, flag: str, max_seq_length: int, max_predictions_per_seq: int, vocab_size: int,
              num_labels: int = 0) -> "TaskMixture":
        """See `RecordSet.check`; each task has its own number of labels. Raises InputError if the
        records of two tasks have other features, sizes or vocabularies."""
        for name, records in self.sets.items():
            for own, other, what in (
                    (self.format.names, records.format.names, "features"),
                    (self.format.sizes, records.format.sizes, "lengths"),
                    (self.vocab_hash, records.vocab_hash, "vocabularies")):
                if own != other:
                    raise InputError(f"--{flag}: the records of {name} and of "
                                     f"{next(iter(self.sets))} have different {what}; make both "
                                     "with the same flags.")
        return dataclasses.replace(self, sets={
            name: records.check(flag, max_seq_length, max_predictions_per_seq, vocab_size,
                                pairing.num_labels(recipes.of_manifest(records.manifest).segments))
            for name, records in self.sets.items()})

    def identity(self) -> dict:
        return {"counts": [records.counts for records in self.sets.values()],
                **self.format.sizes, "tasks": list(self.sets),
                "checksum": [records.checksum for records in self.sets.values()]}

    def locate_damage(self, most: int | None = None) -> None:
        for records in self.sets.values():
            records.locate_damage(most)

    def scheduled(self, values: Sequence[str], steps: int) -> "TaskMixture":
        return dataclasses.replace(self, schedule=TaskSchedule.parse(values, self.tasks, steps))

    def from_step(self, step: int) -> "TaskMixture":
        """The same records, whose training batches begin at a step of the schedule."""
        return dataclasses.replace(self, step=step)

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """Batches as `RecordSet.training_batches`, to the end of the schedule. The records of each
        task have a stream of their own, which continues after the task's earlier steps. Raises
        InputError if these steps had batches of another size."""
        if taken and taken != self.step * global_batch:
            raise InputError(f"--train_batch_size={global_batch}: the run took {taken:,} records "
                             f"in {self.step:,} steps, and records of several tasks can't be "
                             "resumed with another batch size; give the one that the run began "
                             "with.")
        assert self.schedule is not None
        streams = [records.training_batches(seed, count * global_batch, global_batch, replicas,
                                            worker, workers)
                   for records, count in zip(self.sets.values(), self.schedule.counts(self.step))]
        tasks = np.repeat(self.schedule.tasks[self.step:].astype(np.int64), replicas // workers)
        return tf.data.Dataset.choose_from_datasets(
            streams, tf.data.Dataset.from_tensor_slices(tasks), stop_on_empty_dataset=False)

    def evaluation_batches(self, global_batch: int, max_steps: int, replicas: int,
                           worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """Batches as `RecordSet`'s, one task after the other; each has its share of the steps."""
        share = -(-max_steps // len(self.sets))
        batches = [records.evaluation_batches(global_batch, share, replicas, worker, workers)
                   for records in self.sets.values()]
        for other in batches[1:]:
            batches[0] = batches[0].concatenate(other)
        return batches[0]
