"""`task.json`: what a fine-tuned model must be told with, beside it."""

import dataclasses
import os

from bert_tf.config import read_json
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.tasks.task import Task

TASK_FILE = "task.json"
_FIELDS = ("name", "kind", "labels", "metrics", "multi_label", "bounds")


@dataclasses.dataclass(frozen=True)
class SavedTask:
    """A task without its files.

    Attributes:
        task: `Task` without splits.
        max_seq_length: S.
        do_lower_case: of the tokenizer.
        options: other settings of the input, a dict.
    """

    task: Task
    max_seq_length: int
    do_lower_case: bool
    options: dict = dataclasses.field(default_factory=dict)

    def is_of(self, task, max_seq_length, do_lower_case):
        """Whether it says these; the options may be others."""
        return ((max_seq_length, do_lower_case) == (self.max_seq_length, self.do_lower_case)
                and all(getattr(task, name) == getattr(self.task, name) for name in _FIELDS))

    def write(self, folder):
        """Writes it beside a model."""
        write_json(os.path.join(folder, TASK_FILE), {
            "task": {name: getattr(self.task, name) for name in _FIELDS},
            "max_seq_length": self.max_seq_length, "do_lower_case": self.do_lower_case,
            "options": self.options})

    @classmethod
    def read(cls, folder):
        """What stands beside the model in a folder, or None.

        Raises:
            InputError: the file is not of this kind.
        """
        path = os.path.join(folder, TASK_FILE)
        if not os.path.isfile(path):
            return None
        saved = read_json(path)
        try:
            task = saved["task"]
            task = Task(task["name"], task["kind"], {}, tuple(task["labels"]),
                        tuple(task["metrics"]), task["multi_label"],
                        task["bounds"] and tuple(task["bounds"]))
            return cls(task, int(saved["max_seq_length"]), bool(saved["do_lower_case"]),
                       dict(saved["options"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} does not describe a task ({error}); fine-tune the model "
                             "again.") from error
