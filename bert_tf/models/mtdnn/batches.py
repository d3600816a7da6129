"""Batches of several tasks, each of one task alone, in the order of a `TaskOrder`.

Shapes: B examples of a batch, C candidates (1 where a task has none), L the length of a batch.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.data.batches.example_set import ExampleSet
from bert_tf.data.records.features import generated
from bert_tf.models.mtdnn.order import TaskOrder

# Features of records that teachers have answered, and whether the records of a batch have them.
_TAUGHT = ("teacher_logits", "is_labelled")
IS_TAUGHT = "is_taught"
# The labels of words, and teachers' answers about words.
WORD_LABELS, WORD_WEIGHTS = "word_label_ids", "label_weights"
WORD_LOGITS, IS_WORD_LABELLED = "word_teacher_logits", "is_word_labelled"


@dataclasses.dataclass(frozen=True)
class SharedFeatures:
    """Features that the batches of all tasks have because some task needs them: whether a task is
    about words; and the most labels with teachers of other tasks, and of tasks about words."""

    words: bool = False
    soft_labels: int = 0
    soft_tags: int = 0


def of_task(batch: Mapping[str, np.ndarray], number: int,
            shared: SharedFeatures = SharedFeatures()) -> dict[str, np.ndarray]:
    """A task's batch with the features of all tasks' batches: features int32 [B, C, L], and
    `label_ids` float32, `is_real_example` and `task_number` int32, [B, 1]. Shared words add
    `word_label_ids` and `label_weights` int32 [B, 1, L]; `soft_labels` add `teacher_logits` float32
    [B, soft_labels] and `is_labelled` [B, 1]; `soft_tags` add `word_teacher_logits` [B, soft_tags,
    L] and `is_word_labelled` [B, 1, L]; any of both adds `is_taught` [B, 1]."""
    rows, length = batch["input_ids"].shape[0], batch["input_ids"].shape[-1]
    of_words, is_taught = WORD_WEIGHTS in batch, _TAUGHT[0] in batch
    features = {name: values if values.ndim == 3 else values[:, None]
                for name, values in batch.items()
                if name not in ("label_ids", "is_real_example", *_TAUGHT)}
    labels, ones = batch["label_ids"], np.ones([rows, 1], np.int32)
    none = np.zeros([rows, 1, length], np.int32)
    word_labels, taught, taught_words = none, batch, {}
    if of_words:
        word_labels, labels, taught, taught_words = labels[:, None], 0 * ones, {}, batch
    if shared.words or of_words:
        features |= {WORD_LABELS: word_labels, WORD_WEIGHTS: features.get(WORD_WEIGHTS, none)}
    if shared.soft_labels:
        logits = np.zeros([rows, 0], np.float32)
        features |= {_TAUGHT[0]: _padded(taught.get(_TAUGHT[0], logits), shared.soft_labels),
                     _TAUGHT[1]: taught.get(_TAUGHT[1], ones)}
    if shared.soft_tags:
        logits = np.zeros([rows, 0, length], np.float32)
        features |= {WORD_LOGITS: _padded(taught_words.get(_TAUGHT[0], logits), shared.soft_tags),
                     IS_WORD_LABELLED: taught_words.get(_TAUGHT[1], none[:, 0] + 1)[:, None]}
    if shared.soft_labels or shared.soft_tags:
        features[IS_TAUGHT] = ones * is_taught
    return {**features, "label_ids": labels.astype(np.float32),
            "is_real_example": batch["is_real_example"],
            "task_number": np.full([rows, 1], number, np.int32)}


def _padded(logits, size):
    """[B, C, ...] as [B, size, ...]."""
    return np.pad(logits, [(0, 0), (0, size - logits.shape[1]), *[(0, 0)] * (logits.ndim - 2)])


def _dataset(generate, like, ahead):
    spec = {name: tf.TensorSpec([None, None, None] if values.ndim == 3 else
                                [None, values.shape[1]], values.dtype)
            for name, values in like.items()}
    return generated(generate, spec, ahead)


@dataclasses.dataclass(frozen=True)
class TaskExamples:
    """An `ExampleSet` as batches of one of several tasks, for `batches.predict`."""

    examples: ExampleSet
    task: str
    number: int

    size = property(lambda self: self.examples.size)
    lengths = property(lambda self: self.examples.lengths)
    max_seq_length = property(lambda self: self.examples.max_seq_length)

    def prediction_batches(self, batches: Sequence[np.ndarray], replicas: int,
                           length: int | None = None) -> tf.data.Dataset:
        """Returns batches as `ExampleSet.prediction_batches`."""
        def generate():
            for rows in batches:
                size = length or self.examples.batch_length(rows)
                for part in np.split(rows, replicas):
                    yield of_task(self.examples.batch(part, size), self.number)

        like = of_task(self.examples.batch(np.zeros(1, int), self.max_seq_length), self.number)
        return _dataset(generate, like, replicas)


@dataclasses.dataclass(frozen=True)
class TaskBatches:
    """Records of several tasks to train on, as `ExampleSet` has them for one.

    Attributes:
        sets: the `ExampleSet` of each task by its name, in the order of the tasks.
        accumulation: the number of parts of a replica's share of a batch. Examples without weight
            fill batches up, so that all parts are alike.
        step: the step where `training_batches` begins.
        shared: see `of_task`.
    """

    sets: Mapping[str, ExampleSet]
    order: TaskOrder
    accumulation: int = 1
    step: int = 0
    shared: SharedFeatures = SharedFeatures()

    @property
    def size(self) -> int:
        return sum(examples.size for examples in self.sets.values())

    def identity(self) -> dict[str, Any]:
        """Values that must be equal for a step to mean the same examples."""
        return {"tasks": {name: examples.identity() for name, examples in self.sets.items()},
                "order": dataclasses.asdict(self.order)}

    def locate_damage(self) -> None:
        """Does nothing: the records are in memory."""

    def from_step(self, step: int) -> "TaskBatches":
        """The same records, whose training batches begin at a step."""
        return dataclasses.replace(self, step=step)

    def _batches(self, seed, parts) -> Iterator[list[dict[str, np.ndarray]]]:
        sets = list(self.sets.values())
        for task, members in dataclasses.replace(self.order, seed=seed).steps()[self.step:]:
            rows = np.array(members)
            missing = -len(rows) % (parts * self.accumulation)
            rows = np.append(rows, np.full(missing, ~rows[0]))
            length = sets[task].batch_length(rows)
            yield [of_task(sets[task].batch(part, length), task, self.shared)
                   for part in np.split(rows, parts)]

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """The batches of each replica of one worker, to the end of the order; see
        `RecordSet.training_batches`. The step and the order replace `taken` and `global_batch`."""
        local = replicas // workers

        def generate():
            for batch in self._batches(seed, replicas):
                yield from batch[worker * local:(worker + 1) * local]

        first = next(iter(self.sets.values()))
        like = of_task(first.batch(np.zeros(1, int), first.max_seq_length), 0, self.shared)
        return _dataset(generate, like, local)
