"""A task as `task.json` in the folder of a fine-tuned model holds it."""

import dataclasses
import json
import os
from collections.abc import Callable
from typing import Any

from bert_tf.errors import InputError, counted
from bert_tf.files import is_file, read_json, write_json
from bert_tf.options import check_shape
from bert_tf.tasks.kinds.table import kind_on_disk
from bert_tf.tasks.passages import PASSAGES
from bert_tf.tasks.task import Task
from bert_tf.tokenization.packing import LONG_TEXTS

TASK_FILE = "task.json"
_LONGEST = 1 << 20      # tokens
_SHAPE = {"task": {"name": str, "labels": [str], "metrics": [str], "label_names?": [str]},
          "options": {}, "num_texts?": (int, type(None))}
# The values that an option can have, in words for errors, and a check of a value.
_OPTIONS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("doc_stride", "max_query_length", "n_best_size", "max_answer_length"), (
        "a whole number from 0", lambda value: type(value) is int and 0 <= value < 1 << 40)),
    **dict.fromkeys(("max_qa_length", "start_n_top", "end_n_top"), (
        "a whole number from 0, or null",
        lambda value: value is None or type(value) is int and 0 <= value < 1 << 40)),
    "null_score_diff_threshold": (
        "a number", lambda value: type(value) in (int, float) and value == value),
    "squad_style": (" or ".join(PASSAGES), [*PASSAGES].__contains__),
    "long_text": (" or ".join(LONG_TEXTS), [None, *LONG_TEXTS].__contains__)}


@dataclasses.dataclass(frozen=True)
class SavedTask:
    """A task without its files, as in `task.json` in the folder of a fine-tuned model.

    Attributes:
        task: `Task` without splits.
        max_seq_length: S.
        options: other settings of the input and the head.
        num_texts: how many texts a training example had; None where the number is not known, as in
            files of earlier versions, or does not matter.
        columns: of a task of the user's tables, `Task.columns` of the training file; {} of other
            tasks, and in files of earlier versions.
    """

    task: Task
    max_seq_length: int
    do_lower_case: bool
    options: dict = dataclasses.field(default_factory=dict)
    num_texts: int | None = None
    columns: dict = dataclasses.field(default_factory=dict)

    def is_of(self, task: Task) -> bool:
        """Whether this is the task; length, case and options may differ."""
        return _described(task) == _described(self.task)

    def check_texts(self, num_texts: int | None, where: str) -> None:
        """Raises InputError, naming `where`, if examples have more or fewer texts than those
        trained on. None: any number will do."""
        if num_texts is None or self.num_texts is None:
            return
        if num_texts != self.num_texts:
            raise InputError(f"{where} has {counted(num_texts, 'text')}, but the model was trained "
                             f"on examples of {counted(self.num_texts, 'text')}; give as many "
                             "texts.")

    def write(self, folder: str) -> None:
        """Writes the file into the folder of a model."""
        known = {} if self.num_texts is None else {"num_texts": self.num_texts}
        columns = {"columns": self.columns} if self.columns else {}
        named = {"label_names": self.task.label_names} if self.task.label_names else {}
        write_json(os.path.join(folder, TASK_FILE), {
            "task": {**_described(self.task), **named}, "max_seq_length": self.max_seq_length,
            "do_lower_case": self.do_lower_case, "options": self.options, **known,
            **columns})

    @classmethod
    def require(cls, folder: str, flag: str) -> "SavedTask":
        """Returns the task saved with the model in a folder, or raises InputError that names the
        flag."""
        saved = cls.read(folder)
        if saved is None:
            raise InputError(f"--{flag}: there is no {TASK_FILE} in {folder!r}; name the "
                             "--output_dir of a fine-tuning run with one task.")
        return saved

    @classmethod
    def read(cls, folder: str) -> "SavedTask | None":
        """Returns the task saved with the model in a folder, or None if there is no file."""
        path = os.path.join(folder, TASK_FILE)
        if not is_file(path):
            return None
        saved = read_json(path)
        try:
            check_shape(saved, _SHAPE)
            length = int(saved["max_seq_length"])
            if not 0 < length <= _LONGEST:
                raise ValueError(f"max_seq_length is {length}")
            _check_options(saved["options"])
            task = saved["task"]
            kind = kind_on_disk(task)
            if kind.has_labels and kind.labels_are_classes and not task["labels"]:
                raise ValueError("task.labels is empty; write the labels in the order of their ids")
            task = Task(task["name"], kind, {}, tuple(task["labels"]),
                        tuple(task["metrics"]), task["bounds"] and tuple(task["bounds"]),
                        label_names=tuple(task.get("label_names", ())))
            return cls(task, length, bool(saved["do_lower_case"]),
                       dict(saved["options"]), saved.get("num_texts"),
                       dict(saved.get("columns", {})))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} does not describe a task ({error}); correct it, or fine-tune "
                             "the model again.") from error


def _check_options(options):
    """Raises ValueError for an option that no command wrote."""
    for name, (wanted, fits) in _OPTIONS.items():
        if name in options and not fits(options[name]):
            raise ValueError(f"options.{name} is {json.dumps(options[name])[:40]}; write {wanted}")


def _described(task):
    """Returns a task's content of `task.json`."""
    return {"name": task.name, "kind": task.kind.on_disk["kind"], "labels": task.labels,
            "metrics": task.metrics, "multi_label": task.kind.on_disk["multi_label"],
            "bounds": task.bounds}
