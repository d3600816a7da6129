"""A suite of tasks: each is learned at every point of a grid, with several seeds, by any number of
processes that share an output folder. The median on the development set chooses the point."""

import collections
import contextlib
import dataclasses
import functools
import math
import os
import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.checkpoints.names import MODEL_FILE
from bert_tf.errors import DivergedError, InputError, choose_from
from bert_tf.files import absolute, exists, read_json, remove_file, write_json
from bert_tf.finetuning import jobs
from bert_tf.finetuning.families import HEADS, Heads
from bert_tf.kept import CELL, Kept, differences, do_missing, logged, turn
from bert_tf.tasks.kinds.labelled import SplitPredictions
from bert_tf.tasks.named import OF_SUITES, TASKS, find_folder, placed
from bert_tf.tasks.suites import Row, Suite, is_of
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training import resume
from bert_tf.training.settings import GRID
from bert_tf.training.trials import DEGENERATE, DIVERGED, RESULTS

DEFAULTS, MAJORITY = "defaults", "most_frequent_label"
# Settings of a run that trains nothing.
_OF_PREDICTION = ("eval_batch_size", "dtype", "distribution_strategy", "num_workers")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One training of a task: a point of the grid, and a seed. `folder` has all its files,
    `begins_with` is the task whose chosen model it begins with, "" for the suite's own model, and
    `settings` are those of `bert_tf.finetune`, by name."""

    row: Row
    point: str
    seed: int
    folder: str
    begins_with: str
    settings: Mapping[str, Any]

    @property
    def trains(self) -> bool:
        return self.point not in (MAJORITY, self.begins_with)

    @property
    def mark(self) -> str:
        """What follows the scores of a model that gives all examples one answer; else ""."""
        results = read_json(os.path.join(self.folder, RESULTS), {})
        return f"  {DEGENERATE}" if results.get("degenerate") else ""


@dataclasses.dataclass
class SuiteRun:
    """All cells of a suite in an output folder."""

    suite: Suite
    rows: list[Row]         # of the tasks to do
    data_dir: str
    output_dir: str
    model: Mapping[str, Any]        # the settings that name the model to begin with
    points: list[dict[str, Any]]    # the settings of each point of the grid
    seeds: list[int]                # of each point
    # Further settings of `bert_tf.finetune`.
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    intermediate: bool = False      # tasks begin with another one's model where the rows say so
    family: Heads = HEADS           # of the model
    _results: dict[str, dict] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def cells(self) -> list[Cell]:
        """The cells; tasks that others depend on come first. Raises InputError if a task's files,
        or the task that it depends on, are not there."""
        cells = [cell for row in self.rows for cell in self._cells_of(row)]
        names = {row.task for row in self.rows}
        for cell in cells:
            if cell.begins_with and cell.begins_with not in names:
                raise InputError(f"{cell.row.task} needs the model of {cell.begins_with}, which is "
                                 f"not among --tasks; add it, or leave {cell.row.task} "
                                 f"out{', or leave --intermediate out' if cell.trains else ''}.")
        needed = {cell.begins_with for cell in cells}
        return sorted(cells, key=lambda cell: (cell.row.task not in needed, not cell.trains))

    def folder(self, row: Row) -> str:
        return find_folder(self.data_dir, row.task, "leave the task out of --tasks")

    def _cells_of(self, row):
        data_dir = self.folder(row)
        task = placed(OF_SUITES[row.task], data_dir)
        named = self.family.named(task, data_dir)
        has = _jobs(task, data_dir)
        place = os.path.join(self.output_dir, "tasks", row.task)
        if row.majority:
            task.path(data_dir, "train")
            return [Cell(row, MAJORITY, 0, os.path.join(place, MAJORITY), "", {})]
        has |= {**named, "do_train": not task.model_of}
        if task.model_of:
            has |= {name: self.settings[name] for name in _OF_PREDICTION if name in self.settings}
            return [Cell(row, task.model_of, 0, os.path.join(place, task.model_of), task.model_of,
                         has)]
        task.path(data_dir, "train")
        has |= self.family.records(os.path.join(place, "records"))
        begins_with, cells = row.begins_with if self.intermediate else "", []
        for point in self.points:
            name = "-".join(f"{GRID[key][1]}{value:g}" for key, value in point.items()) or DEFAULTS
            cells += [Cell(row, name, seed, os.path.join(place, name, f"seed{seed}"), begins_with,
                           {**self.settings, **point, **has, "random_seed": seed})
                      for seed in self.seeds]
        return cells

    def cells_of(self, task: str) -> dict[str, list[Cell]]:
        of_task = [cell for cell in self.cells if cell.row.task == task]
        return {point: [cell for cell in of_task if cell.point == point]
                for point in dict.fromkeys(cell.point for cell in of_task)}

    def result(self, cell: Cell) -> dict | None:
        """The results of a finished cell: `metrics`, and the name of the `headline`. Raises
        InputError if it was made with other settings, or began with another model."""
        path = os.path.join(cell.folder, CELL)
        if path not in self._results and exists(path) and (
                not cell.begins_with or self.chosen(cell.begins_with)):     # known from then on
            self._results[path] = self._kept(cell).get("result")
        return self._results.get(path)

    def headline(self, cell: Cell) -> float:
        """The score of a finished cell that decides; the least where it is not a number."""
        result = self.result(cell) or {}
        value = result.get("metrics", {}).get(result.get("headline"), math.nan)
        return max(-math.inf, value)        # -inf of NaN, too

    def diverged(self, cell: Cell) -> bool:
        return (self.result(cell) or {}).get(DIVERGED, False)

    def is_lost(self, task: str) -> bool:
        return all(self.diverged(cell) for cells in self.cells_of(task).values() for cell in cells)

    def _is_in_vain(self, cell):
        return bool(cell.begins_with) and (self.is_lost(cell.begins_with) or all(
            self._is_in_vain(other) for cells in self.cells_of(cell.begins_with).values()
            for other in cells))

    def chosen(self, task: str) -> Cell | None:
        """The best cell of the point with the best median on the development set, without cells
        that diverged; of equal ones the first. None while cells are missing, and for ""."""
        points = self.cells_of(task)
        if not all(self.result(cell) for cells in points.values() for cell in cells):
            return None
        counted = [[cell for cell in cells if not self.diverged(cell)] for cells in points.values()]
        best = max(filter(None, counted), default=None,
                   key=lambda cells: statistics.median(map(self.headline, cells)))
        return best and max(best, key=self.headline)

    def carry_out(self) -> None:
        """Does all cells that no process has done, and waits for other processes' cells."""
        do_missing(lambda: [cell for cell in self.cells if not (
            self.result(cell) or self._is_in_vain(cell))], self._work)

    def _work(self, cell):
        """Does a cell; False if another process works on it, or its first model is missing."""
        chosen = self.chosen(cell.begins_with)
        if cell.begins_with and not chosen:
            return False
        model = self.model
        if chosen:
            if not exists(os.path.join(chosen.folder, MODEL_FILE)):
                raise InputError(
                    f"{chosen.folder} is now the best run of {chosen.row.task}, but its model was "
                    "removed when another run was better; remove the folder, and run the same "
                    "command again to train it.")
            model = {"init_checkpoint": chosen.folder}
            if self.family is HEADS:
                model["keep_head"] = cell.row.keeps_head
        with turn(cell.folder) as is_free:
            if not is_free:
                return False
            if not self.result(cell):
                with logged(cell.folder):
                    is_done = self._measure(cell, model)
                if not (is_done and self.result(cell)):
                    return False
                result = self.result(cell)
                scores = ", ".join(f"{name} {value:.4f}" for name, value in result[
                    "metrics"].items() if is_of(name, cell.row.metrics)) + cell.mark
                print(f"{cell.row.task}, {cell.point}, seed {cell.seed}: "
                      f"{'DIVERGED' if result.get(DIVERGED) else scores}", flush=True)
            drop_models(self, cell.row.task)
        return True

    def _measure(self, cell, model):
        task = OF_SUITES[cell.row.task]
        if cell.point == MAJORITY:
            answer_most_frequent(task.name, self.folder(cell.row), cell.folder)
            scores = HEADS.scores(None, task, cell.folder)
        else:
            with contextlib.ExitStack() as held:
                records = cell.settings.get("records_dir")
                if records and not held.enter_context(turn(records)):
                    return False
                run = jobs.open_job(**{"init_checkpoint": "", **cell.settings, **model,
                                       "output_dir": cell.folder})
            try:
                run.carry_out()
                scores = self.family.scores(run, task, cell.folder)
            except DivergedError as error:
                print(error, flush=True)
                scores = {"metrics": {}, DIVERGED: True}
        self._kept(cell).put("result", scores)
        return True

    def _kept(self, cell):
        def compare(own, saved):
            if (others := differences(own, saved)) == ["--chosen"]:
                raise InputError(
                    f"{cell.folder} started from a model of {cell.begins_with} that is no longer "
                    "the best; name another --output_dir, or remove all such folders of "
                    f"{cell.row.task}.")
            return others

        return Kept(os.path.join(cell.folder, CELL), self._described(cell), cell.folder, compare)

    def _described(self, cell):
        own = {name: value for name, value in cell.settings.items()
               if name not in ("data_dir", "records_dir", "num_workers")}
        if "task" in own:
            own["task"] = cell.row.task
        if chosen := self.chosen(cell.begins_with):
            return {**own, "begins_with": cell.begins_with, "chosen": [chosen.point, chosen.seed]}
        if cell.point == MAJORITY:
            return own
        return own | {name: absolute(value) if isinstance(value, str) and value else value
                      for name, value in self.model.items()}


def drop_models(run: SuiteRun, task: str) -> None:
    """Removes models that no choice can take: of each point the best is kept, and of a finished
    task the chosen one. Checkpoints go with the run."""
    chosen = run.chosen(task)
    for cells in run.cells_of(task).values():
        done = [cell for cell in cells if run.result(cell)]
        best = chosen or max(done, key=run.headline, default=None)
        for cell in done:
            paths = list(resume.checkpoints(cell.folder))
            if cell != best and cell.trains:
                paths.append(os.path.join(cell.folder, MODEL_FILE))
            for path in paths:
                with contextlib.suppress(FileNotFoundError):
                    remove_file(path)


def _jobs(task, data_dir):
    """Returns whether to evaluate and to predict, as settings, by the files of a task. Raises
    InputError for files that have neither labels to evaluate on nor examples to predict."""
    labelled = [split for split, layout in task.splits.items()
                if split != "train" and layout.label is not None]
    tests = [name for name in task.splits if name.startswith("test")]
    jobs = {f"do_{job}": any(task.has_file(data_dir, split) for split in splits)
            for job, splits in (("eval", labelled), ("predict", tests))}
    if not (jobs["do_eval"] or task.model_of):
        task.path(data_dir, labelled[0])
    return jobs


def find_rows(suite: Suite, tasks: list[str], trained: list[str],
              intermediate: bool = False) -> list[Row]:
    """The rows of the named tasks; without names, the rows of all tasks. Tasks that come first are
    then left out unless `intermediate`. `tasks`: their names, and names of ways, which mean all
    tasks of a way. `trained`: tasks that are learned although the suite's row has the most frequent
    label. Raises InputError if the suite has no such task."""
    known = {_plain(row.task): row for row in suite.rows}
    tasks = [task for name in tasks for task in suite.ways.get(name, {"": name}).values()]
    for name in (*tasks, *trained):
        if _plain(name) not in known:
            raise InputError(f"the suite has no task {name!r}; " + choose_from(
                name, [*suite.ways, *(row.task for row in known.values())]))
    chosen, learned = (set(map(_plain, names)) for names in (tasks, trained))
    for name in learned:
        if not known[name].majority:
            raise InputError(f"--train_majority: {known[name].task} is trained in any case; leave "
                             "it out.")
    return [dataclasses.replace(row, majority=row.majority and name not in learned)
            for name, row in known.items()
            if name in chosen or not tasks and (intermediate or not row.is_first)]


def _plain(name):
    """The name of a task without hyphens, underscores and the prefix of SuperGLUE's RTE."""
    return name.lower().replace("-", "").replace("_", "").removeprefix("superglue")


def answer_most_frequent(task: str, data_dir: str, output_dir: str) -> None:
    """Answers the labelled splits and the test files of a named task, and writes predictions and
    scores as a fine-tuning run does. Of equally frequent labels the first counts."""
    named = placed(TASKS[task], data_dir)
    has_test = any(named.has_file(data_dir, split) for split in named.splits
                   if split.startswith("test"))
    files = TaskFlags(task=task, data_dir=data_dir).find(named, True, True, has_test)
    counts = collections.Counter(example.label for example in files.sources["train"].examples())
    label = max(sorted(counts), key=counts.__getitem__)
    scores: dict[str, float] = {}
    for split in dict.fromkeys([*files.eval_splits, *files.test_splits]):
        predictions = SplitPredictions(files.sources[split])
        answers = np.full(len(predictions.examples), label)
        predictions.write(output_dir, {"probabilities": np.eye(len(named.labels))[answers]},
                          answers, split in files.test_splits)
        if split in files.eval_splits:
            scores |= {f"{split}/{name}": score
                       for name, score in predictions.score(answers).items()}
    write_json(os.path.join(output_dir, "metrics.json"), {
        "task": task, "headline": named.kind.headline(named, files.eval_splits),
        "label": named.labels[label], "metrics": scores})
