"""Flags of tables whose cells fine-tune a given model."""

import dataclasses
import os
from collections.abc import Iterable
from typing import Any, ClassVar

from bert_tf.errors import InputError
from bert_tf.files import absolute
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.named import find_task
from bert_tf.tasks.task import Task
from papers.tables.cells import Cell, Made
from papers.tables.making import RunFlags
from papers.tables.table import Column


@dataclasses.dataclass(kw_only=True)
class TuningFlags(RunFlags):
    """The model, and how it is fine-tuned."""

    little: ClassVar = {**RunFlags.little, "train_fraction": 0.02, "num_train_epochs": 1.0,
                        "max_seq_length": 32, "train_batch_size": 8}

    init_checkpoint: str = option(REQUIRED, "The model that all runs begin with, of any format.")
    max_seq_length: int = option(128, "Length of the longest sequence.")
    train_batch_size: int = option(32, "Examples per step.", least=1)
    learning_rate: float = option(5e-5, "Peak of the learning rate.")
    num_train_epochs: float = option(5.0, "Number of epochs.", above=0)
    train_fraction: float = option(
        1.0, "Train on this share of each training file, drawn with the seed, the same for all "
        "rows.", above=0, most=1)

    def find(self, name: str) -> tuple[Task, str]:
        """A task, and the folder of its files.

        Raises:
            InputError: there is no such task, or no folder has its files.
        """
        task = find_task(name)
        if not (folder := self.folder(task.name, "train", dev_split(task))):
            raise InputError(f"--data_dir has no folder with the files of {task.name}; put its "
                             "official files into a subfolder of its name.")
        return task, folder

    def task_columns(self, names: Iterable[str]) -> dict[Column, tuple[Task, str]]:
        """A column for the headline of each task, with the task and its folder."""
        tasks = map(self.find, names)
        return {Column(f"{task.name} {task.headline}", f"{dev_split(task)}/{task.headline}"):
                (task, folder) for task, folder in tasks}

    def flags(self, seed: int) -> dict[str, Any]:
        """The flags of each bert-finetune."""
        path = self.init_checkpoint
        start = absolute(path) if os.path.exists(path) else path
        return {"do_train": True, "do_eval": True, "init_checkpoint": start,
                "output_dir": Made("."), "max_seq_length": self.max_seq_length,
                "train_batch_size": self.train_batch_size, "eval_batch_size": 64,
                "learning_rate": self.learning_rate, "num_train_epochs": self.num_train_epochs,
                "random_seed": seed, "num_workers": 1}

    def tuned(self, name: str, task: Task, folder: str, seed: int, **flags: Any) -> Cell:
        """The score of the model after fine-tuning on a task alone."""
        return Cell(f"{name}-{task.name}-seed{seed}", "bert-finetune", {
            "task": task.name, "data_dir": folder, "train_fraction": self.train_fraction,
            "train_fraction_seed": seed, **self.flags(seed), "keep_head": False, **flags})


def dev_split(task: Task) -> str:
    """The first split that is scored."""
    return next(name for name in task.splits if name.startswith("dev"))
