"""Cells: command lines whose results are kept, carried out by any number of processes.

A cell has its own folder, named after its command line and the command lines of the cells whose
files it reads. So equal cells of several tables are one, and a cell with another flag is another.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import (
    exists,
    file_size,
    is_file,
    is_folder,
    list_folder,
    open_file,
    read_json,
    remove_file,
    remove_folder,
    write_json,
)
from bert_tf.flags.options import items_of, shown
from bert_tf.kept import CELL, LOG, do_missing, logged, turn
from bert_tf.tokenization import open_tokenizer
from run_scripts import commands


@dataclasses.dataclass(frozen=True, eq=False)
class Made:
    """A file that a cell makes; without a cell, one in the folder of the cell whose flag it is."""

    path: str
    cell: "Cell | None" = None


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """A command line.

    Attributes:
        name: the beginning of its folder's name.
        flags: values by name; a list is joined by commas, None and [] are left out.
        files: JSON objects by the name of the file that is written into the folder beforehand.
        is_kept: whether its files are kept, not its results and its log alone.
        scored_by: the column whose metric and factor count, where they are not the table's column.
    """

    name: str
    command: str
    flags: Mapping[str, Any]
    files: Mapping[str, dict] = dataclasses.field(default_factory=dict)
    is_kept: bool = False
    scored_by: Any = None

    def __truediv__(self, path: str) -> Made:
        return Made(path, self)

    @property
    def needs(self) -> list["Cell"]:
        """The cells whose files it reads."""
        return [part.cell for value in self.flags.values() for part in items_of(value)
                if isinstance(part, Made) and part.cell]

    @functools.cached_property
    def folder(self) -> str:
        """The name of its folder: the cell's name, and a digest of all that decides its results."""
        inputs = [[name, part, file_size(part)] for name, value in self.flags.items()
                  for part in items_of(value) if isinstance(part, str) and is_file(part)]
        content = json.dumps([self.line("", "."), self.files, inputs], sort_keys=True)
        return f"{self.name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"

    def arguments(self, root: str, own: str) -> list[str]:
        """The flags as a shell passes them.

        Args:
            root: the folder of all cells.
            own: the folder of this cell.
        """
        def path(part):
            if not isinstance(part, Made):
                return part
            folder = os.path.join(root, part.cell.folder) if part.cell else own
            return os.path.normpath(os.path.join(folder, part.path))

        return [f"--{name}={','.join(shown(path(part)) for part in items_of(value))}"
                for name, value in self.flags.items() if value not in (None, [])]

    def line(self, root: str, own: str) -> str:
        """The command line."""
        return f"{self.command} {shlex.join(self.arguments(root, own))}"


class Cells:
    """The cells in a folder."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._results: dict[str, dict] = {}

    def path(self, cell: Cell, *parts: str) -> str:
        """A path in the folder of a cell."""
        return os.path.join(self._root, cell.folder, *parts)

    def line(self, cell: Cell) -> str:
        """The command line of a cell, as a user would type it."""
        return cell.line(self._root, os.path.join(self._root, cell.folder))

    def result(self, cell: Cell) -> dict[str, float] | None:
        """The numbers of a finished cell; None if it is not finished."""
        path = self.path(cell, CELL)
        if cell.folder not in self._results and exists(path):
            results = None
            with contextlib.suppress(InputError):
                results = read_json(path).get("results")
            if not isinstance(results, dict):
                raise InputError(f"{path} is damaged; remove it and run the command again, which "
                                 "then measures the cell again.")
            self._results[cell.folder] = results
        return self._results.get(cell.folder)

    def carry_out(self, cells: Iterable[Cell]) -> None:
        """Carries out all cells without results, after the cells whose files they read, and waits
        for the cells of other processes."""
        asked = list(cells)
        do_missing(lambda: {cell.folder: cell for cell in self._missing(asked)}.values(),
                   self._work)

    def _missing(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        """The cells without results, after those that they need."""
        for cell in cells:
            if self.result(cell) is None:
                yield from self._missing(cell.needs)
                yield cell

    def _work(self, cell):
        """Does a cell; False if another process is at it, or at a cell whose files it reads."""
        if any(self.result(need) is None for need in cell.needs):
            return False
        with turn(self.path(cell)) as is_free:
            if is_free and self.result(cell) is None:
                self._do(cell, self.path(cell))
        return is_free

    def _fitted(self, content, cell):
        """A configuration for the vocabulary that its cell reads, which may have fewer tokens than
        were asked for. Records are for models of as many rows, or of the next multiple of 128."""
        if not (vocabulary := _vocabulary(cell)) or "vocab_size" not in content:
            return content
        path = self.path(vocabulary, vocabulary.flags["output_file"].path)
        size = open_tokenizer(path).vocabulary.size
        surplus = max(content["vocab_size"] - size, 0)
        rows = size + -size % 128 if surplus % 128 else content["vocab_size"] - surplus
        return {**content, "vocab_size": rows}

    def _do(self, cell, folder):
        for name, content in cell.files.items():
            write_json(os.path.join(folder, name), self._fitted(content, cell))
        start = time.process_time()
        print(f"{cell.folder} ...", end=" ", flush=True)
        with logged(folder):
            try:
                main, configs = commands.parse(
                    [*cell.command.split(), *cell.arguments(self._root, folder)])
                main(*configs)
            except InputError as error:
                error.args = (f"{folder}, {cell.command}: {error}",)
                raise
        results, seconds = _numbers(folder), time.process_time() - start
        write_json(os.path.join(folder, CELL), {
            "command": self.line(cell), "results": results, "cpu_seconds": round(seconds, 1)})
        if not cell.is_kept:
            _clean(folder)
        print(f"{seconds:,.0f} CPU s", flush=True)


def _vocabulary(cell):
    """The cell whose vocabulary a cell reads; None if it reads none."""
    return next((maker for need in cell.needs if (
        maker := need if need.command == "bert-build-vocab" else _vocabulary(need))), None)


def _numbers(folder):
    path = os.path.join(folder, "metrics.json")
    if exists(path):
        return read_json(path)["metrics"]
    path = os.path.join(folder, "eval_results.txt")
    if not exists(path):
        return {}
    with open_file(path) as file:
        pairs = [line.split(" = ") for line in file]
    return {name: float(value) for name, value in pairs}


def _clean(folder):
    for name in list_folder(folder):
        path = os.path.join(folder, name)
        if is_folder(path):
            remove_folder(path)
        elif name not in (CELL, LOG) and not name.startswith("."):
            remove_file(path)
