"""A suite's run, from its flags and plan to its reports: results, a table, the server's archive."""

import dataclasses
import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_tf.errors import InputError, counted
from bert_tf.files import exists, make_folder, relative, write_aside, write_json
from bert_tf.finetuning.families import FAMILIES, HEADS
from bert_tf.finetuning.jobs import config_of
from bert_tf.finetuning.suite import MAJORITY, Cell, SuiteRun, drop_models, find_rows
from bert_tf.finetuning.suite_flags import SuiteFlags
from bert_tf.flags import check
from bert_tf.opening import Model, open_model
from bert_tf.tasks import suites
from bert_tf.tasks.named import OF_SUITES, placed
from bert_tf.tasks.suites import SUITES, Grid, is_of
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.reporting import duration
from bert_tf.training.settings import GRID, FineTuneSettings
from bert_tf.training.trials import DIVERGED, deviation, kept_trials

_MODEL = ("init_checkpoint", "bert_config_file", "vocab_file", "do_lower_case")
_SUITE = ("suite", "data_dir", "output_dir", "tasks", "train_majority", "rank_pronouns",
          "intermediate", "num_trials", "random_seed", "grid_learning_rate",
          "grid_train_batch_size", "grid_num_train_epochs", "dry_run")
_HEADING = ("task", "metric", "settings", "mean ± deviation", "median", "best", "runs")
_TRAINED, _READ = 3, 1      # passes forward that a step of training, and of prediction, costs
# Share of the speed of one large matrix product that a step of a small encoder reaches.
_EFFICIENCY = 0.35
_START_SECONDS = 10.0       # of a run: a model is built and traced
_sizes: dict[tuple, tuple[int, float]] = {}     # of files


def open_suite(job: SuiteFlags) -> SuiteRun:
    """The run that flags describe; its files were found. Raises InputError if a flag, a file or the
    model cannot be used."""
    check(job)
    config = config_of(vars(job))
    suite, rows = _choose(job)
    if job.num_train_steps and job.grid_num_train_epochs:
        raise InputError("--num_train_steps replaces the epochs; leave out "
                         "--grid_num_train_epochs.")
    axes = {name: tuple(map(kind, values)) for name, (kind, _) in GRID.items()
            if (values := getattr(job, f"grid_{name}"))}
    if job.num_train_steps:
        axes["num_train_epochs"] = ()
    grid = dataclasses.replace(suite.grids.get(config.model_type, Grid()), **axes)
    points = list(grid.points())
    flags = {name: value for name, value in vars(job).items() if value is not None}
    settings = {name: value for name, value in flags.items() if name not in (*_MODEL, *_SUITE)}
    family = FAMILIES.get(config.model_type, HEADS)
    family.check([*settings, *(f"grid_{name}" for name in points[0]),
                  *(name for name in ("rank_pronouns", "do_lower_case")
                    if getattr(job, name) != getattr(SuiteFlags, name))])
    run = SuiteRun(
        suite, rows, job.data_dir, job.output_dir,
        {name: flags[name] for name in _MODEL if flags.get(name, "") != ""},
        points, list(range(job.random_seed, job.random_seed + job.num_trials)), settings,
        job.intermediate, family)
    assert run.cells        # an error of the files comes before work
    return run


def _choose(job):
    suite = SUITES[job.suite]
    rows = find_rows(suite, job.tasks, job.train_majority, job.intermediate)
    if job.intermediate and not any(row.begins_with for row in rows):
        raise InputError("--intermediate: none of the tasks starts from the model of another one; "
                         "leave the flag out.")
    if not job.rank_pronouns:
        return suite, rows
    if not any(row.ranking for row in rows):
        raise InputError("--rank_pronouns: none of the tasks is WNLI or WSC; leave the flag out.")
    if job.train_majority:
        raise InputError("--rank_pronouns and --train_majority are two ways to do WNLI; give one "
                         "of them.")
    suite = suite.with_ranking()
    return suite, [suite.row(row.ranking or row.task) for row in rows]


def carry_out(job: SuiteFlags, begin: Callable[[], None]) -> None:
    """Prints the plan, calls `begin`, carries out the missing runs, and reports. InputError: see
    `open_suite`; or every run of a task diverged."""
    run = open_suite(job)
    print("\n".join(plan(run)), flush=True)
    if job.dry_run:
        return
    make_folder(job.output_dir, "output_dir")
    begin()
    run.carry_out()
    for row in run.rows:        # a kill after the last result left models
        drop_models(run, row.task)
    report(run)
    if lost := [row.task for row in run.rows if run.is_lost(row.task)]:
        raise InputError(f"every run of {' and '.join(lost)} diverged; give a lower "
                         "--grid_learning_rate.")


def report(run: SuiteRun) -> dict[str, Any]:
    """Writes and prints results.json, table.md and submission.zip; returns the results."""
    summary = summarize(run)
    lines = [*table(run, summary), *table_of_ways(run, summary), *table_beside_papers(run, summary)]
    lines += ["", *(f"{name.title()} of the medians: {100 * summary[name]:.1f}"
                    for name in ("average", "score") if name in summary)]
    lines += [f"They count {task} without {' and '.join(names)}: no such file was there."
              for task, names in summary.get("lacking", {}).items()]
    cells = [cell for row in run.rows for group in run.cells_of(row.task).values()
             for cell in group]
    lines += [f"{cell.row.task}, {cell.point}, seed {cell.seed} diverged, and is not counted."
              for cell in cells if run.diverged(cell)]
    lines += [f"{cell.row.task}, {cell.point}, seed {cell.seed} is {cell.mark.strip()}."
              for cell in cells if cell.mark]
    if summary["missing"] and run.suite.has_score:
        lines.append(f"No score: {', '.join(summary['missing'])} not measured.")
    print("\n".join(lines), flush=True)
    write_json(os.path.join(run.output_dir, "results.json"), summary)
    with write_aside(os.path.join(run.output_dir, "table.md")) as file:
        file.writelines(line + "\n" for line in lines)
    print("".join(f"{line}.\n" for line in refusals(run)), end="", flush=True)
    names, missing = write_archive(run)
    if names:
        print(suites.describe_archive(run.output_dir, names, missing), flush=True)
    return summary


def summarize(run: SuiteRun) -> dict[str, Any]:
    """The results of all finished cells: of each task and point the mean, the deviation of a sample
    and the median of each metric; of finished tasks the choice; the suite's figures of the
    medians, and the development sets that these lack. Percentages are given as fractions."""
    tasks: dict[str, Any] = {}
    for row in run.rows:
        tasks[row.task] = {"points": {point: _point(run, row, cells)
                                      for point, cells in run.cells_of(row.task).items()}}
        if cell := run.chosen(row.task):
            tasks[row.task] |= {"chosen": cell.point, "seed": cell.seed,
                                "folder": relative(cell.folder, run.output_dir)}
    medians = _medians({"tasks": tasks})
    missing = run.suite.missing(medians)
    figures: dict[str, Any] = {}
    if run.suite.has_score and not missing:
        figures["score"] = run.suite.score(medians)
    if run.suite.has_average and not set(missing) & {
            row.task for row in run.suite.rows if row.average}:
        figures["average"] = run.suite.average(medians)
    for row in run.rows:
        known = {name.rpartition("/")[0] for name in medians.get(row.task, ())}
        lacking = [name for name, split in OF_SUITES[row.task].splits.items()
                   if name.startswith("dev") and split.label is not None and name not in known]
        if figures and known and lacking:
            figures.setdefault("lacking", {})[row.task] = lacking
    for split in ("dev", "test"):
        if ways := run.suite.languages(medians, split):
            figures.setdefault("ways", {})[split] = ways
    return {"tasks": tasks, "missing": missing, **figures}


def _medians(summary):
    return {task: {name: of["median"] for name, of in result["points"][result["chosen"]].items()}
            for task, result in summary["tasks"].items() if "chosen" in result}


def _point(run, row, cells: list[Cell]) -> dict[str, Any]:
    results = {cell.seed: result["metrics"] for cell in cells
               if (result := run.result(cell)) and not run.diverged(cell)}
    point = {}
    # A file may not have been there for all seeds.
    for name in dict.fromkeys(name for metrics in results.values() for name in metrics):
        whole = 100 if OF_SUITES[row.task].kind.is_percent(name) else 1
        by_seed = {str(seed): metrics[name] / whole for seed, metrics in results.items()
                   if name in metrics}
        values = list(by_seed.values())
        point[name] = {"mean": statistics.fmean(values), "median": statistics.median(values),
                       "stdev": deviation(values), "values": by_seed}
    return point


def _heading(columns):
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def table(run: SuiteRun, summary: dict[str, Any]) -> list[str]:
    """The lines of a table in Markdown: a row for each metric of each point; * marks the choice.
    Test files with labels, such as RACE's, have rows too; test files of languages have tables."""
    lines = _heading(_HEADING)
    for row in run.rows:
        task = summary["tasks"][row.task]
        for point, metrics in task["points"].items():
            for name, of in metrics.items():
                if is_of(name if run.suite.ways else name.removeprefix("test/"),
                         (*row.metrics, *row.shown)):
                    mark = " *" if point == task.get("chosen") else ""
                    lines.append(f"| {row.task} | {name} | {point}{mark} | " + " | ".join((
                        f"{100 * of['mean']:.1f} ± {100 * of['stdev']:.1f}",
                        f"{100 * of['median']:.1f}", f"{100 * max(of['values'].values()):.1f}",
                        str(len(of["values"])))) + " |")
    return lines


def table_of_ways(run: SuiteRun, summary: dict[str, Any]) -> list[str]:
    """The lines of a table in Markdown for dev and for test: a row for each way to other languages,
    a column for each language."""
    lines = []
    for split, ways in summary.get("ways", {}).items():
        columns = [*next(iter(run.suite.ways.values())), "average"]
        lines += ["", *_heading([split, *columns])]
        lines += [f"| {way} | " + " | ".join(
            f"{100 * cells[column]:.1f}" if column in cells else "-" for column in columns) + " |"
            for way, cells in ways.items()]
    return lines


def table_beside_papers(run: SuiteRun, summary: dict[str, Any]) -> list[str]:
    """The lines of a table in Markdown: the medians of this run on development sets, and published
    scores of test sets; a column for each task. A task with several cells has them all."""
    suite = run.suite
    if not suite.published:
        return []
    figure = "average" if suite.has_average else "score"
    medians = _medians(summary)
    own = [[f"{100 * value:.1f}" for name, value in medians.get(task, {}).items()
            if is_of(name, metrics)] for task, metrics in suite.compared]
    rows = [("this run, development sets", own,
             f"{100 * summary[figure]:.1f}" if figure in summary else "-"),
            *((f"{one.system} ({one.source}), test sets", [map(str, cells) for cells in one.cells],
               str(one.figure)) for one in suite.published)]
    columns = ["system", *(task for task, _ in suite.compared), figure]
    return ["", *_heading(columns), *(
        f"| {system} | {' | '.join('/'.join(cell) or '-' for cell in cells)} | {total} |"
        for system, cells, total in rows)]


def refusals(run: SuiteRun) -> Iterator[str]:
    """Yields why the archive lacks the predictions for a test file that was there."""
    for row in run.rows:
        cell, folder = run.chosen(row.task), run.folder(row)
        task = placed(OF_SUITES[row.task], folder)
        for split, layout in task.splits.items():
            if (cell and layout.submission and task.has_file(folder, split)
                    and not exists(os.path.join(cell.folder, layout.submission))):
                [source] = TaskFlags(task=task.name, data_dir=folder).find_sources(task, [split])
                numbers = (example.document if task.kind.is_grouped else number
                           for number, example in enumerate(source.examples()))
                count = sum(1 for _ in itertools.groupby(numbers))
                yield layout.refusal(task.name, source.path, count)


def write_archive(run: SuiteRun) -> tuple[list[str], list[str]]:
    """Writes submission.zip of the chosen cells' files; see `suites.write_archive`."""
    chosen = {row.task: run.chosen(row.task) for row in run.rows}
    return suites.write_archive(run.output_dir, run.suite, {
        task: cell.folder for task, cell in chosen.items() if cell})


@dataclasses.dataclass
class Load:
    """The work of one cell: examples of the training file, steps of training, and all tokens that
    are read, each as often as one pass forward costs."""

    examples: int
    steps: int
    tokens: float


def plan(run: SuiteRun) -> list[str]:
    """The lines of the plan: each task's runs, examples, steps and time, less finished runs."""
    model = open_model(run.model.get("init_checkpoint", ""), run.model.get("bert_config_file"),
                       run.model.get("vocab_file"))
    rows, total = [], 0.0
    loads = {row.task: [(cell, _load(run, cell, model)) for cell in run.cells
                        if cell.row.task == row.task] for row in run.rows}
    # The time of a token, from finished runs, else from a matrix product.
    known = [result["seconds"] / load.tokens
             for cell, load in itertools.chain.from_iterable(loads.values())
             if load.tokens and cell.trains for trial in kept_trials(cell.folder).values()
             if (result := trial.get("result"))
             and result["seconds"] and not result.get(DIVERGED)]
    start, source = 0.0, f"estimated from {counted(len(known), 'finished run')}"
    if known:
        of_token = statistics.median(known)
    else:
        start, of_token = _START_SECONDS, _token_seconds(model.config)
        source = "estimated from one matrix product; the first finished run will correct it"
    for task, cells in loads.items():
        left = [load for cell, load in cells if not run.result(cell)]
        seconds = sum(start + load.tokens * of_token for load in left if load.tokens)
        total += seconds
        first, load = cells[0]
        begins = {MAJORITY: "no model: " + MAJORITY.replace("_", " ")}.get(
            first.point, first.begins_with and f"the model of {first.begins_with}")
        steps = sorted({load.steps for _, load in cells})
        span = f"{steps[0]:,}-{steps[-1]:,}" if len(steps) > 1 else f"{steps[0]:,}"
        rows.append((task, begins or "the model", str(len(cells)), str(len(left)),
                     f"{load.examples:,}", span,
                     f"about {duration(seconds)}" if left else "done"))
    heading = ("task", "begins with", "runs", "left", "examples", "steps a run", "time left")
    widths = [max(map(len, column)) for column in zip(heading, *rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in (heading, *rows)] + [
        f"together about {duration(total)} in one process, {source}"]


def _load(run, cell: Cell, model: Model) -> Load:
    data_dir = run.folder(cell.row)
    task = placed(OF_SUITES[cell.row.task], data_dir)
    if cell.point == MAJORITY:
        return Load(0, 0, 0.0)
    defaults = run.family.defaults(model.config, task.name)
    values = {**defaults, **cell.settings}
    if run.family.has_epochs and {"train_batch_size", "num_train_epochs"} & cell.settings.keys():
        values = {name: value for name, value in values.items()
                  if name != "num_train_steps" or name in cell.settings}
    length = int(min(values.get("max_seq_length") or task.defaults.max_seq_length,
                     model.config.max_position_embeddings))
    sizes = {}
    for split in task.splits:
        if task.has_file(data_dir, split):
            key = run.family, task.path(data_dir, split), length
            if key not in _sizes:       # counted once
                _sizes[key] = run.family.size(task, split, data_dir, length, model)
            sizes[split] = _sizes[key]
    examples, tokens = sizes.get("train", (0, 0.0))
    read = sum(count * mean for split, (count, mean) in sizes.items() if split != "train")
    if not cell.trains:
        return Load(0, 0, read)
    known = {field.name for field in dataclasses.fields(FineTuneSettings)}
    settings = FineTuneSettings(output_dir=cell.folder, **{
        name: value for name, value in values.items() if name in known}).resolve(
        task.defaults, examples)
    seen = settings.num_train_steps * settings.train_batch_size
    return Load(examples, settings.num_train_steps, _TRAINED * seen * tokens + _READ * read)


def _token_seconds(config: Any) -> float:
    import keras
    width = config.hidden_size
    layers = getattr(config, "num_hidden_layers", 12)
    inner = getattr(config, "intermediate_size", 4 * width)
    left = keras.ops.ones((1024, width), "float32")
    right = keras.ops.ones((width, 4 * width), "float32")
    seconds = []
    for _ in range(5):      # the first is slower
        start = time.perf_counter()
        np.asarray(keras.ops.matmul(left, right))[0, 0]
        seconds.append(time.perf_counter() - start)
    speed = 2 * 1024 * width * 4 * width / min(seconds)
    return layers * 2 * (4 * width * width + 2 * width * inner) / (speed * _EFFICIENCY)
