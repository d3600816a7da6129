"""A model of several tasks: next to its `model.keras`, a folder `tasks` has a folder for each task,
with `task.json` and the vocabulary. As the path of a checkpoint, it is the model with this head."""

import os

from bert_tf.checkpoints.names import MODEL_FILE
from bert_tf.errors import InputError
from bert_tf.files import absolute, exists, is_file, is_folder, list_folder

_TASKS = "tasks"


def task_folder(folder: str, task: str) -> str:
    return os.path.join(folder, _TASKS, task)


def tasks_beside(folder: str) -> list[str]:
    """Returns the tasks of the model in `folder`; [] for a model of one task."""
    path = os.path.join(folder, _TASKS)
    return sorted(list_folder(path)) if is_folder(path) else []


def with_head_of(path: str, task: str) -> str:
    """Returns a model's path (or ""), for a model of several tasks with the head of `task`."""
    known = path and tasks_beside(path)
    if not known:
        return path
    if task not in known:
        raise InputError(f"{path} has no head for the task {task}; it has heads for "
                         f"{', '.join(known)}: name the folder of one task, such as "
                         f"{task_folder(path, known[0])}.")
    return task_folder(path, task)


def resolve(file: str) -> tuple[str | None, str]:
    """(task, path of the weights). A real file has no task and holds its own weights."""
    folder = os.path.dirname(absolute(file))
    tasks, task = os.path.split(folder)
    shared = os.path.join(os.path.dirname(tasks), MODEL_FILE)
    if os.path.basename(tasks) == _TASKS and not exists(file) and is_file(shared):
        return task, shared
    return None, file


def only(task: str, tensors: dict, rows: dict, objectives: list, file: str) -> tuple[dict, dict]:
    """A file's tensors and heads without the heads of other tasks; the task's head has the name of
    its row. `rows` are {head's name: `heads.Head`} in the order of the `objectives`."""
    names = [options.get("name") for _, options in objectives]
    if task not in names:
        raise InputError(f"{resolve(file)[1]} has no head for the task {task}; it has heads for "
                         f"{', '.join(map(str, names))}.")
    head = list(rows)[names.index(task)]
    selected = {}
    for name, tensor in tensors.items():
        first, _, rest = name.partition("/")
        if first == head:
            selected[f"{rows[head].name}/{rest}"] = tensor
        elif first not in rows:
            selected[name] = tensor
    return selected, {rows[head].name: rows[head]}
