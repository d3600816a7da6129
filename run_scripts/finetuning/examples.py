"""The examples of a task as features in memory, for commands that take a fine-tuned model."""

import dataclasses

import numpy as np

from bert_tf import metrics
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.task import SavedTask


@dataclasses.dataclass(kw_only=True)
class ExamplesFlags:
    """The task whose examples a model is given."""

    task: str = option(REQUIRED, "The task's name, as --task of the fine-tuning commands has it.")
    data_dir: str = option(REQUIRED, "Folder of the task's files.")


class Examples:
    """The examples of a split of the task that a model was trained for.

    Args:
        job: `ExamplesFlags`.
        split: such as "dev".
        saved: the `SavedTask` beside the model.
        tokenizer: the model's.
        most: how many examples, the first of the split; 0: all.

    Attributes:
        task: `Task`.
        features: dict of arrays [N, ...].

    Raises:
        InputError: the task is another than the model's, or its file can't be read.
    """

    def __init__(self, job: ExamplesFlags, split: str, saved: SavedTask, tokenizer,
                 most: int = 0) -> None:
        known = find_task(job.task)
        if known.kind != saved.task.kind:
            raise InputError(f"--task={job.task} is of the kind {known.kind}, but the model was "
                             f"trained for {saved.task.kind}; give the task it was trained for.")
        self.task = known.kind.with_labels(known, saved.task.labels)
        path = self.task.path(job.data_dir, split)
        self._examples = list(read_examples(self.task, split, path))[:most or None]
        self.features, _ = self.task.kind.encode(
            self.task, self._examples, tokenizer, saved.max_seq_length, saved.options)

    def __len__(self) -> int:
        return len(self._examples)

    def batch(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The features of some examples [B, ...], sequences no longer than the longest needs."""
        length = self.features["input_mask"].shape[-1]
        longest = int(self.features["input_mask"][rows].sum(-1).max())
        return {name: values[rows, ..., :longest] if values.shape[-1] == length else values[rows]
                for name, values in self.features.items()}

    def rows(self, row: int) -> dict[str, np.ndarray]:
        """The features of one example [1, ...], with all of its padding."""
        return {name: values[row:row + 1] for name, values in self.features.items()}

    def score(self, answers: dict[str, np.ndarray]) -> float:
        """The task's first metric.

        Args:
            answers: what a model answers to all examples, [N, ...] by name.
        """
        kind, metric = self.task.kind, self.task.headline
        predicted = kind.decode(self.task, answers, self._examples, self.features)
        return metrics.compute([metric], kind.targets(self.task, self._examples),
                               predicted)[metric]
