"""The program of a table: its flags; trains the cells that are missing, and writes the report."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any, ClassVar

from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import absolute, make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.task import named_folder
from papers.tables import report
from papers.tables.cells import Cells
from papers.tables.table import Table, differences, fill


@dataclasses.dataclass(kw_only=True)
class RunFlags:
    """Folders of a table, and how much of the table to make.

    Attributes:
        little: values under --smoke of flags that are not given.
    """

    little: ClassVar[dict[str, Any]] = {"seeds": 1}

    output_dir: str = option(
        REQUIRED, "Folder for the report, NAME.md, NAME.json and NAME.png, and for all cells. The "
        "same command again resumes; several processes share the work; tables that share the "
        "folder train their common models once.")
    data_dir: list[str] = option(
        [], "Folders with a subfolder for each task's official files. A column with missing files "
        "is left out.")
    smoke: bool = option(
        False, "Run two rows and two columns with one seed and a few steps, to test that "
        "everything works; this takes two minutes.")
    rows: list[str] = option([], "Some of the rows; default: all.")
    columns: list[str] = option([], "Some of the columns; default: all.")
    seeds: int = option(3, "Number of seeds, from 1 on.", least=1)

    def __post_init__(self) -> None:
        flags.check(self)
        if self.smoke:
            given = flags.changed(self)
            vars(self).update({name: value for name, value in self.little.items()
                               if name not in given})

    def folder(self, task: str, *splits: str) -> str:
        """The folder of --data_dir that has the files of a task's splits; "" without one."""
        names = task, TASKS[task].folder_of or task
        paths = (path for folder in self.data_dir if (path := named_folder(folder, *names)))
        return next((absolute(path) for path in paths
                     if all(TASKS[task].has_file(path, split) for split in splits)), "")


def make(table: Table, job: Any) -> None:
    """Trains the cells of a table that are missing, and writes its report.

    Args:
        job: `RunFlags`.
    """
    table = table.only(job.rows, job.columns)
    if job.smoke:
        table = dataclasses.replace(
            table, rows=table.rows if job.rows else table.rows[:2],
            columns=table.columns if job.columns else table.columns[:2], tasks=table.tasks[:2])
    if not (table.rows and table.columns):
        raise InputError("the table has no row or no column.")
    make_folder(job.output_dir, "output_dir")
    flags.keep(job, job.output_dir)
    cells = Cells(os.path.join(job.output_dir, "cells"))
    figures = fill(table, cells, range(1, job.seeds + 1))
    if table.remark:
        table = dataclasses.replace(table, notes=[*table.notes, *table.remark(figures, cells)])
    report.write(table, figures, differences(table, figures), job)


def program(declare: Callable[[Any], Table]) -> Callable[[Any], None]:
    """Turns a function that declares a table into the `main` of a program that makes it."""
    @functools.wraps(declare)
    def main(job):
        make(declare(job), job)

    return main
