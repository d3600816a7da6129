"""A task as `task.json` holds it beside a fine-tuned model."""

import dataclasses
import os

from bert_tf.errors import InputError, counted
from bert_tf.files import is_file, write_json
from bert_tf.options import check_shape, read_json
from bert_tf.tasks.kinds.table import kind_on_disk
from bert_tf.tasks.task import Task

TASK_FILE = "task.json"
_LONGEST = 1 << 20      # tokens
_SHAPE = {"task": {"name": str, "labels": [str], "metrics": [str], "label_names?": [str]},
          "options": {f"{name}?": (int, type(None)) for name in (
              "doc_stride", "max_query_length", "n_best_size", "max_answer_length")},
          "num_texts?": (int, type(None))}


@dataclasses.dataclass(frozen=True)
class SavedTask:
    """A task without its files, as in `task.json` beside a fine-tuned model.

    Attributes:
        task: `Task` without splits.
        max_seq_length: S.
        options: other settings of the input and the head.
        num_texts: how many texts a training example had; None where it is not known, as in files of
            earlier versions, or decides nothing.
        columns: of a task of the user's tables, "texts" and "choices": the columns of the training
            file; {} of other tasks, and in files of earlier versions.
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
        """Writes it beside a model."""
        known = {} if self.num_texts is None else {"num_texts": self.num_texts}
        columns = {"columns": self.columns} if self.columns else {}
        named = {"label_names": self.task.label_names} if self.task.label_names else {}
        write_json(os.path.join(folder, TASK_FILE), {
            "task": {**_described(self.task), **named}, "max_seq_length": self.max_seq_length,
            "do_lower_case": self.do_lower_case, "options": self.options, **known,
            **columns})

    @classmethod
    def require(cls, folder: str, flag: str) -> "SavedTask":
        """Returns the task saved beside the model in a folder, or raises InputError that names the
        flag."""
        saved = cls.read(folder)
        if saved is None:
            raise InputError(f"--{flag}: there is no {TASK_FILE} in {folder!r}; name the "
                             "--output_dir of a fine-tuning run with one task.")
        return saved

    @classmethod
    def read(cls, folder: str) -> "SavedTask | None":
        """Returns the task saved beside the model in a folder, or None if there is no file."""
        path = os.path.join(folder, TASK_FILE)
        if not is_file(path):
            return None
        saved = read_json(path)
        try:
            check_shape(saved, _SHAPE)
            length = int(saved["max_seq_length"])
            if not 0 < length <= _LONGEST:
                raise ValueError(f"max_seq_length is {length}")
            task = saved["task"]
            task = Task(task["name"], kind_on_disk(task), {}, tuple(task["labels"]),
                        tuple(task["metrics"]), task["bounds"] and tuple(task["bounds"]),
                        label_names=tuple(task.get("label_names", ())))
            return cls(task, length, bool(saved["do_lower_case"]),
                       dict(saved["options"]), saved.get("num_texts"),
                       dict(saved.get("columns", {})))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} does not describe a task ({error}); fine-tune the model "
                             "again.") from error


def _described(task):
    """Returns a task's content of `task.json`."""
    return {"name": task.name, "kind": task.kind.on_disk["kind"], "labels": task.labels,
            "metrics": task.metrics, "multi_label": task.kind.on_disk["multi_label"],
            "bounds": task.bounds}
