"""Rows of --task_config_path: the files of each task of a model, and how the task is learned."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError, naming
from bert_tf.finetuning.python_values import typed
from bert_tf.flags import check, only, option
from bert_tf.tasks.task_flags import TaskFlags

_NO_FOLDERS = ("", ".", "..")


@dataclasses.dataclass
class TaskRow(TaskFlags):
    """The keys of a row, except `task`."""

    teachers: list[str] = option([], "Folders of models whose mean probabilities are learned.")
    distillation: str | None = only("teachers")(
        None, "How they are learned, a --recipe of bert-distill.")
    dropout_p: float | None = option(None, "Dropout before the head's last layer.", least=0,
                                     below=1)
    loss_weight: float | None = option(None, "Factor of the loss.", above=0, below=float("inf"))
    answer_opt: int | None = option(None, "1: a stochastic answer network.", choices=(0, 1))

    __post_init__ = check


KEYS = tuple(field.name for field in dataclasses.fields(TaskRow) if field.name != "task")


def check_row(name: str, row: Any, path: str) -> dict[str, Any]:
    """Returns the given values of a task's row, with the types of `TaskRow`.

    Args:
        path: the file with the row.

    Raises:
        InputError: the task's name can't name a folder, or the row has other keys or values.
    """
    if name in _NO_FOLDERS or not name.isprintable() or set(name) & set("/\\"):
        raise InputError(f"{path}: a task is called {name!r}, but each task has a folder of its "
                         "name; give it another name.")
    wrong = set(row) - set(KEYS) if isinstance(row, Mapping) else {repr(row)}
    if wrong:
        raise InputError(f"{path}: the row of {name} has {', '.join(sorted(wrong))}; its keys may "
                         f"be {', '.join(KEYS)}.")
    values = {key: value for key, value in row.items() if value is not None}
    if isinstance(values.get("teachers"), str):
        values["teachers"] = [values["teachers"]]
    with naming(f"{path}: the row of {name}"):
        values = typed(TaskRow, values)
        TaskRow(**values)
    return values
