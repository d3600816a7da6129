"""A table of a paper: its rows, its columns, the cell of each place, and the published figures."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import lazy_loader

from bert_tf.errors import InputError, choose_from
from bert_tf.kept import CELL
from papers.tables.cells import Cell, Cells

_scipy = lazy_loader.load("scipy")


@dataclasses.dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        title: its heading.
        metric: the number of a cell's results.
        factor: the factor of the number.
        mean_of: titles of the columns whose mean it is, a group for each task; a group counts as
            the mean of its columns, and is left out where no column of it has a value.
        ratio: "gain": it is the number of the row to compare with, divided by each row's; "share":
            each row's divided by that number, times `factor`.
    """

    title: str
    metric: str
    factor: float = 100.0
    mean_of: tuple[tuple[str, ...], ...] = ()
    ratio: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: of its files.
        title: the title of its report.
        source: paper and table of the published figures; "" without such figures.
        rows: their names; the others are compared with the first, or with `baseline`.
        cell: function of row, column and seed, and of the task where there are tasks, that returns
            the cell, or None where the place has no cell.
        published: figures by row and column.
        notes: sentences below the table.
        tasks: of each place, whose figure is the mean over them.
        subsets: titles of the tasks of further means, by their names.
        over: label of the columns' numbers, where the picture is curves over them.
        remark: function of the result of `fill`, and of the cells, that returns further notes.
    """

    name: str
    title: str
    source: str
    rows: Sequence[str]
    columns: Sequence[Column]
    cell: Callable[..., Cell | None]
    published: Mapping[str, Mapping[str, float]]
    baseline: str = ""
    notes: Sequence[str] = ()
    tasks: Sequence[Column] = ()
    subsets: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    over: str = ""
    remark: Callable[[dict[str, dict[str, dict]], Cells], list[str]] | None = None

    @property
    def compared_with(self) -> str:
        """The row that the others are compared with."""
        return self.baseline if self.baseline in self.rows else self.rows[0]

    def only(self, rows: Sequence[str], columns: Sequence[str]) -> "Table":
        """This table with some rows and columns; all where none is named. A mean comes with its
        columns."""
        titles = [column.title for column in self.columns]
        for flag, names, known in (("rows", rows, self.rows), ("columns", columns, titles)):
            for name in names:
                if name not in known:
                    raise InputError(f"--{flag}: there is no {name!r}; "
                                     + choose_from(name, list(known)))
        shown = {*columns, *(title for column in self.columns if column.title in columns
                              for group in column.mean_of for title in group)}
        return dataclasses.replace(
            self, rows=[row for row in self.rows if row in rows or not rows],
            columns=[column for column in self.columns if column.title in shown or not columns])


@dataclasses.dataclass(frozen=True)
class Difference:
    """A row less the baseline in a column: the published one, if there is one, and ours with its
    standard error over `seeds`, None of one measurement."""

    row: str
    baseline: str
    column: str
    published: float | None
    ours: float
    error: float | None
    seeds: int

    @property
    def verdict(self) -> str:
        """Whether the direction is the published one; the direction where none is published, or
        where the published figures are equal."""
        if self.error is None:
            return "one measurement"
        # The 95% interval by Student's t: of few seeds it is far more than two standard errors.
        if abs(self.ours) <= float(_scipy.stats.t.ppf(0.975, self.seeds - 1)) * self.error:
            return "not distinguished from 0"
        if not self.published:
            return "higher" if self.ours > 0 else "lower"
        return "as published" if self.ours * self.published > 0 else "the direction differs"

    def __str__(self) -> str:
        spread = "" if self.error is None else f" ± {self.error:.2f}"
        published = "" if self.published is None else f"{self.published:+.1f} published, "
        return (f"{self.column}, {self.row} less {self.baseline}: {published}"
                f"{self.ours:+.2f}{spread} here: {self.verdict}")


def fill(table: Table, cells: Cells, seeds: Sequence[int]) -> dict[str, dict[str, dict]]:
    """Carries out the missing cells; returns by row and column the values by seed, their mean,
    deviation and median, and the published figure; with tasks, `parts` has the values of each task
    and subset. A cell counts once: the first of the seeds that share it has its value."""
    places = [(row, column, seed, task, cell) for seed in seeds for row in table.rows
              for column in table.columns if not column.mean_of
              for task in ([each] for each in table.tasks or [None])
              if (cell := table.cell(row, column, seed, *filter(None, task)))]
    cells.carry_out(cell for *_, cell in places)
    figures: dict[str, dict[str, dict]] = {row: {} for row in table.rows}
    counted = set()
    for row, column, seed, (task,), cell in places:
        measured, results = task or column, cells.result(cell) or {}
        measure = cell.scored_by or measured
        if measure.metric not in results:
            raise InputError(f"{cells.path(cell)} has no {measure.metric}; it has "
                             f"{', '.join(results)}.")
        if not math.isfinite(figure := results[measure.metric]):
            raise InputError(f"{cells.path(cell, CELL)}: {measure.metric} is {figure}; leave the "
                             "row or the column out with --rows or --columns, or give other "
                             "settings of training.")
        place = figures[row].setdefault(column.title, {"command": cells.line(cell), "parts": {}})
        values = place["parts"].setdefault(measured.title, {})
        if (key := (row, column.title, measured.title, cell.folder)) not in counted:
            counted.add(key)
            values[str(seed)] = measure.factor * figure
    for row, columns in figures.items():
        for title, place in columns.items():
            by_task = place.pop("parts")
            place |= _mean(by_task.values())
            if len(by_task) > 1:
                subsets = {name: [by_task[task] for task in tasks if task in by_task]
                           for name, tasks in table.subsets.items()}
                parts = subsets | {task: [values] for task, values in by_task.items()}
                place["parts"] = {name: _mean(each) for name, each in parts.items() if each}
            if (published := table.published.get(row, {}).get(title)) is not None:
                place["published"] = published
    for column in table.columns:
        if column.ratio:
            _divide(figures, column, table)
        for places in figures.values():
            if column.mean_of and (groups := list(filter(None, (
                    [places[title] for title in group if title in places]
                    for group in column.mean_of)))):
                places[column.title] = _average(groups)
    return figures


def _divide(figures, column, table):
    """Replaces the values of a column by their ratios to the compared row's. If that row was
    measured once, all are compared with this measurement."""
    title = column.title
    base = figures[table.compared_with][title]["values"]
    for places in figures.values():
        pairs = {seed: (value, base[seed] if len(base) > 1 else next(iter(base.values())))
                 for seed, value in places[title]["values"].items()
                 if seed in base or len(base) == 1}
        places[title] |= _mean([{
            seed: other / value if column.ratio == "gain" else column.factor * value / other
            for seed, (value, other) in pairs.items()}])
        if table.baseline not in table.rows:        # published are multiples of another row's
            places[title].pop("published", None)


def _average(groups):
    """The mean over groups of places of a row; each group counts once."""
    place = _mean(_mean(place["values"] for place in group)["values"] for group in groups)
    if all("published" in place for group in groups for place in group):
        place["published"] = statistics.fmean(
            statistics.fmean(place["published"] for place in group) for group in groups)
    return place


def _mean(tasks):
    """The mean over tasks by seed, and the mean, deviation and median over the seeds that all
    tasks have."""
    tasks = list(tasks)
    by_seed = {seed: statistics.fmean(values[seed] for values in tasks) for seed in tasks[0]
               if all(seed in values for values in tasks)}
    values = list(by_seed.values())
    return {"values": by_seed, "mean": statistics.fmean(values),
            "median": statistics.median(values),
            "stdev": statistics.stdev(values) if len(values) > 1 else None}


def differences(table: Table, figures: Mapping[str, Mapping[str, Any]]) -> list[Difference]:
    """The differences to the baseline: of a table with published figures, wherever there are two.
    """
    first, rows = table.compared_with, []
    for column in (column.title for column in table.columns):
        base = figures[first].get(column, {})
        for row in table.rows:
            place = figures[row].get(column, {})
            published = [each["published"] for each in (place, base) if "published" in each]
            if row == first or not (place and base) or (table.published and len(published) < 2):
                continue
            each = [value - base["values"][seed] for seed, value in place["values"].items()
                    if seed in base["values"]]
            error = statistics.stdev(each) / len(each) ** 0.5 if len(each) > 1 else None
            expected = published[0] - published[1] if published else None
            rows.append(Difference(row, first, column, expected, statistics.fmean(each), error,
                                   len(each)))
    return rows
