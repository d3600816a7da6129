"""A suite's run, from its flags to its reports."""

import dataclasses
from collections.abc import Callable

from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.finetuning import suite_plan, suite_reports
from bert_tf.finetuning.families import FAMILIES, HEADS
from bert_tf.finetuning.paper_defaults import config_of
from bert_tf.finetuning.suite import SuiteRun, find_rows
from bert_tf.finetuning.suite_flags import SuiteFlags
from bert_tf.flags import check
from bert_tf.tasks.suites import SUITES, Grid

_MODEL = ("init_checkpoint", "bert_config_file", "vocab_file", "do_lower_case")
_SUITE = ("suite", "data_dir", "output_dir", "tasks", "train_majority", "rank_pronouns",
          "intermediate", "num_trials", "random_seed", "grid_learning_rate",
          "grid_train_batch_size", "grid_num_train_epochs", "dry_run")


def open_suite(job: SuiteFlags) -> SuiteRun:
    """The run that flags describe; its files were found.

    Raises:
        InputError: a flag, a file or the model cannot be used.
    """
    check(job)
    config = config_of(vars(job))
    suite, rows = _choose(job)
    points = list(_grid(job, suite.grids.get(config.model_type, Grid())).points())
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
    """The suite, where a masked LM ranks if flags say so, and its rows that flags name."""
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


def _grid(job, known):
    """The grid of the model's paper, with the flags' values in place of the paper's."""
    if job.num_train_steps and job.grid_num_train_epochs:
        raise InputError("--num_train_steps replaces the epochs; "
                         "leave out --grid_num_train_epochs.")
    axes = {name: tuple(map(kind, values))
            for name, kind in (("learning_rate", float), ("train_batch_size", int),
                               ("num_train_epochs", float))
            if (values := getattr(job, f"grid_{name}"))}
    if job.num_train_steps:
        axes["num_train_epochs"] = ()
    return dataclasses.replace(known, **axes)


def carry_out(job: SuiteFlags, begin: Callable[[], None]) -> None:
    """Prints the plan, calls `begin`, carries out the missing runs, and reports.

    Raises:
        InputError: see `open_suite`; or every run of a task diverged.
    """
    run = open_suite(job)
    print("\n".join(suite_plan.describe(run)), flush=True)
    if job.dry_run:
        return
    make_folder(job.output_dir, "output_dir")
    begin()
    run.carry_out()
    suite_reports.report(run)
    if lost := [row.task for row in run.rows if run.is_lost(row.task)]:
        raise InputError(f"every run of {' and '.join(lost)} diverged; give a lower "
                         "--grid_learning_rate.")
