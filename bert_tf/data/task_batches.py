"""Batches of several tasks, each of one task alone, in the order of a `TaskOrder`.

Shapes: B examples of a batch, C candidates (1 where a task has none), L the length of a batch.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.data.example_set import ExampleSet
from bert_tf.data.features import without_autotune
from bert_tf.data.task_order import TaskOrder

# Features of records that teachers have answered, and whether those of a batch are.
_TAUGHT = ("teacher_logits", "is_labelled")
IS_TAUGHT = "is_taught"


def of_task(batch: Mapping[str, np.ndarray], number: int, soft_labels: int = 0
            ) -> dict[str, np.ndarray]:
    """A batch of an `ExampleSet` as batches of all tasks are: features int32 [B, C, L], and
    `label_ids` float32, `is_real_example` and `task_number` int32, [B, 1].

    Args:
        batch: of one task.
        number: that of the task.
        soft_labels: the most labels of a task with teachers. If there are any, there are also
            `teacher_logits` float32 [B, soft_labels], and `is_labelled` and `is_taught` [B, 1].
    """
    rows = len(batch["is_real_example"])
    features = {name: values if values.ndim == 3 else values[:, None]
                for name, values in batch.items()
                if name not in ("label_ids", "is_real_example", *_TAUGHT)}
    if soft_labels:
        logits = batch.get(_TAUGHT[0], np.zeros([rows, 0], np.float32))
        features |= {
            _TAUGHT[0]: np.pad(logits, ((0, 0), (0, soft_labels - logits.shape[1]))),
            _TAUGHT[1]: batch.get(_TAUGHT[1], np.ones([rows, 1], np.int32)),
            IS_TAUGHT: np.full([rows, 1], _TAUGHT[0] in batch, np.int32)}
    return {**features, "label_ids": batch["label_ids"].astype(np.float32),
            "is_real_example": batch["is_real_example"],
            "task_number": np.full([rows, 1], number, np.int32)}


def _dataset(generate, like, ahead):
    spec = {name: tf.TensorSpec([None, None, None] if values.ndim == 3 else
                                [None, values.shape[1]], values.dtype)
            for name, values in like.items()}
    return without_autotune(tf.data.Dataset.from_generator(
        generate, output_signature=spec).prefetch(2 * ahead))


@dataclasses.dataclass(frozen=True)
class TaskExamples:
    """What `batches.predict` needs of an `ExampleSet`, as batches of a task.

    Attributes:
        examples: the `ExampleSet`.
        task: the name of its task.
        number: that of the task among all.
    """

    examples: ExampleSet
    task: str
    number: int

    @property
    def size(self) -> int:
        return self.examples.size

    @property
    def lengths(self) -> np.ndarray:
        return self.examples.lengths

    @property
    def max_seq_length(self) -> int:
        return self.examples.max_seq_length

    def prediction_batches(self, batches: Sequence[np.ndarray], replicas: int,
                           length: int | None = None) -> tf.data.Dataset:
        """As `ExampleSet.prediction_batches`."""
        def generate():
            for rows in batches:
                size = length or self.examples.batch_length(rows)
                for part in np.split(rows, replicas):
                    yield of_task(self.examples.batch(part, size), self.number)

        like = of_task(self.examples.batch(np.zeros(1, int), self.max_seq_length), self.number)
        return _dataset(generate, like, replicas)


class TaskBatches:
    """The records of several tasks to train on; what `ExampleSet` is for one.

    Args:
        sets: the `ExampleSet` of each task by its name, in the order of the tasks.
        order: `TaskOrder` of their sizes; its seed is that of the run.
        accumulation: parts in which a replica takes its share of a batch. Batches are filled up, by
            examples without weight, so that all parts are alike.
        step: that at which `training_batches` begins.
        soft_labels: see `of_task`.
    """

    def __init__(self, sets: Mapping[str, ExampleSet], order: TaskOrder,
                 accumulation: int = 1, step: int = 0, soft_labels: int = 0) -> None:
        self._sets, self._order = sets, order
        self._accumulation, self._step = accumulation, step
        self._soft_labels = soft_labels

    @property
    def size(self) -> int:
        """The number of examples of all tasks."""
        return sum(examples.size for examples in self._sets.values())

    def identity(self) -> dict[str, Any]:
        """What must be equal for a step to mean the same examples."""
        return {"tasks": {name: examples.identity() for name, examples in self._sets.items()},
                "order": dataclasses.asdict(self._order)}

    def locate_damage(self) -> None:
        """Does nothing: the records are in memory."""

    def from_step(self, step: int) -> "TaskBatches":
        """The same records, whose training batches begin at a step."""
        return TaskBatches(self._sets, self._order, self._accumulation, step, self._soft_labels)

    def _batches(self, seed, parts) -> Iterator[list[dict[str, np.ndarray]]]:
        """Yields the parts of each batch."""
        sets = list(self._sets.values())
        for task, members in dataclasses.replace(self._order, seed=seed).steps()[self._step:]:
            rows = np.array(members)
            missing = -len(rows) % (parts * self._accumulation)
            rows = np.append(rows, np.full(missing, ~rows[0]))
            length = sets[task].batch_length(rows)
            yield [of_task(sets[task].batch(part, length), task, self._soft_labels)
                   for part in np.split(rows, parts)]

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """The batches of each replica of one worker, to the end of the order.

        Args:
            seed: of the order.
            taken, global_batch: not used; the step and the order decide.
            replicas, worker, workers: see `RecordSet.training_batches`.
        """
        del taken, global_batch
        local = replicas // workers

        def generate():
            for batch in self._batches(seed, replicas):
                yield from batch[worker * local:(worker + 1) * local]

        first = next(iter(self._sets.values()))
        like = of_task(first.batch(np.zeros(1, int), first.max_seq_length), 0, self._soft_labels)
        return _dataset(generate, like, local)
