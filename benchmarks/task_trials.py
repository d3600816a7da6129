"""Shared by the comparisons of MT-DNN: smaller copies of a task's files, trials in this process
whose output goes to a file, and tables."""

import contextlib
import os
import shutil
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import make_folder, read_json, write_aside
from bert_tf.tasks.named import find_task
from bert_tf.tasks.rows import read_lines
from bert_tf.tasks.task import Task

_SEED = 0       # of the examples that are kept


def train_limits(values: Iterable[str], tasks: Sequence[str]) -> dict[str, int]:
    """Returns the most training examples of each task, 0 for all, from --max_train_examples.

    Args:
        values: numbers for all tasks, or items TASK=NUMBER.
        tasks: names of tasks.

    Raises:
        InputError: an item has another form, or names another task.
    """
    found = {}
    for value in values:
        name, _, number = value.rpartition("=")
        if not number.isdecimal():
            raise InputError(f"--max_train_examples: {value!r} is neither a number, nor a "
                             "task, = and a number.")
        found[find_task(name).name if name else ""] = int(number)
    for name in found:
        if name and name not in tasks:
            raise InputError(f"--max_train_examples names {name}, which is none of the tasks.")
    return {task: found.get(task, found.get("", 0)) for task in tasks}


def cut_files(task: Task, data_dir: str, folder: str, most: Mapping[str, int]) -> None:
    """Copies the labelled files of a task, with examples left out at random.

    Args:
        most: by "train" and "dev": the most examples of such a file; 0 for all.
    """
    make_folder(folder, "output_dir")
    source = find_folder(data_dir, task)
    for name, split in task.splits.items():
        limit = most["train" if name == "train" else "dev"]
        is_there = any(os.path.exists(os.path.join(source, file)) for file in split.files)
        if name.startswith("test") or not (is_there or name == "train"):
            continue
        path = task.path(source, name)
        copy = os.path.join(folder, os.path.basename(path))
        if not limit:
            shutil.copyfile(path, copy)
            continue
        if split.format != "tsv":
            raise InputError(f"{path} has not one line an example, so that it is not cut; leave "
                             "out --max_train_examples and --max_eval_examples.")
        lines = [line for _, line in read_lines(path)]
        with write_aside(copy) as file:
            file.writelines(f"{line}\n" for line in _some(
                lines, split.header, task.kind.lines, limit))


def find_folder(data_dir: str, task: Task) -> str:
    """Finds the folder of a task's files, whose name may have capitals and lack hyphens."""
    def plain(name):
        return name.lower().replace("-", "")
    entries = sorted(os.listdir(data_dir)) if os.path.isdir(data_dir) else []
    for wanted in (task.name, task.folder_of or task.name):
        for name in entries:
            if plain(name) == plain(wanted):
                return os.path.join(data_dir, name)
    raise InputError(f"--data_dir: there is no folder {task.name} in {data_dir!r}.")


def _some(lines, header, count, limit):
    """The header, and at most `limit` examples, of `count` lines each, in their order."""
    starts = range(header, len(lines), count)
    chosen = np.random.default_rng(_SEED).permutation(len(starts))[:limit]
    return [*lines[:header], *(
        line for number in sorted(chosen) for line in lines[starts[number]:starts[number] + count])]


def run_trial(main: Callable[..., None], log: str, output_dir: str, *arguments: Any,
              keep: bool = False) -> dict[str, float]:
    """Runs a fine-tuning script's `main` with its output in the file `log`; returns the metrics
    that it writes. `output_dir` is removed afterwards unless `keep`."""
    make_folder(os.path.dirname(log), "output_dir")
    with open(log, "a", encoding="utf-8") as file, contextlib.redirect_stdout(file):
        main(*arguments)
    metrics = read_json(os.path.join(output_dir, "metrics.json"))["metrics"]
    if not keep:
        shutil.rmtree(output_dir)
    return metrics


def percent(values: Iterable[float]) -> str:
    """Mean of shares in percent and, of several, the deviation of a sample."""
    found = [100 * value for value in values]
    spread = f" ± {statistics.stdev(found):.1f}" if len(found) > 1 else ""
    return f"{statistics.fmean(found):.1f}{spread}"


def write_table(path: str, rows: Sequence[Sequence[str]]) -> None:
    """Prints a table, whose first row is the heading, and writes it as Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    print("\n".join(lines), flush=True)
    with write_aside(path) as file:
        file.writelines(f"{line}\n" for line in lines)
