"""Fine-tunes a model on all tasks of a suite such as GLUE; prints the scores.

Each task is learned at every point of a grid, with several seeds; the command chooses the point
with the best median on the development set, and the best run of this point predicts the test files.
It writes the mean, deviation and median of every cell, the suite's averages, and the archive for
the server. Several processes with the same flags share the work. Run the same command again to
resume.

Example:
    bert-run-suite --suite=glue --data_dir=glue --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --output_dir=/tmp/glue --num_trials=5 --dry_run
"""

import dataclasses

from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.finetuning.families import FAMILIES, HEADS
from bert_tf.finetuning.paper_defaults import config_of
from bert_tf.finetuning.suite import SuiteRun, find_rows
from bert_tf.flags import REQUIRED, check, option
from bert_tf.tasks.suites import SUITES, Grid
from bert_tf.training.settings import POLICIES, STRATEGIES

_MODEL = ("init_checkpoint", "bert_config_file", "vocab_file", "do_lower_case")
_SUITE = ("suite", "data_dir", "output_dir", "tasks", "train_majority", "rank_pronouns",
          "intermediate", "num_trials", "random_seed", "grid_learning_rate",
          "grid_train_batch_size", "grid_num_train_epochs", "dry_run")


@dataclasses.dataclass
class SuiteFlags:
    """The suite, the model, and what is tried."""

    suite: str = option(REQUIRED, "The suite of tasks.", choices=tuple(SUITES))
    data_dir: str = option(REQUIRED, "Folder with a subfolder of official files for each task; or "
                           "a data set such as tfds:glue or hf://datasets/nyu-mll/glue.")
    output_dir: str = option(REQUIRED, "Folder for all runs, the table and the archive.")
    init_checkpoint: str = option("", "The initial checkpoint, of any format.")
    bert_config_file: str = option(
        "", "The bert_config.json of the model; default: the file beside --init_checkpoint.")
    vocab_file: str = option(
        "", "The vocabulary of the tokenizer; default: the file beside --init_checkpoint.")
    do_lower_case: bool | None = option(None, "Lower-case the text; default: as in pre-training.")
    tasks: list[str] = option(
        [], "Some of the suite's tasks, or for xnli some of zero-shot, translate-train and "
        "translate-test. Default: all.")
    train_majority: list[str] = option(
        [], "Train a model for these tasks, such as WNLI; otherwise the suite predicts their most "
        "frequent label for all examples.")
    rank_pronouns: bool = option(
        False, "In WNLI and WSC, rank the candidates for a pronoun with the masked LM of "
        "--init_checkpoint, as in RoBERTa's paper.")
    intermediate: bool = option(
        False, "Start GLUE's RTE, MRPC and STS-B from the best model of MNLI, as in RoBERTa's "
        "paper. SuperGLUE's BoolQ, CB and RTE start from the best model of MNLI, COPA from the "
        "best model of SWAG, as BERT++. SQuAD starts from the model of TriviaQA and its head, as "
        "in BERT's paper.")
    num_trials: int = option(
        1, "Number of runs of each point of the grid, with consecutive "
        "seeds from --random_seed.", least=1)
    random_seed: int = option(12345, "The first seed.", least=0)
    grid_learning_rate: list[str] = option(
        [], "Learning rates to try; default: as in the model's paper.", items=float, above=0,
        below=float("inf"))
    grid_train_batch_size: list[str] = option(
        [], "Batch sizes to try; default: as in the model's paper.", items=int, above=0)
    grid_num_train_epochs: list[str] = option(
        [], "Numbers of epochs to try; default: as in the model's paper.", items=float, above=0,
        below=float("inf"))
    dry_run: bool = option(False, "Print the plan, with an estimate of the time, and stop.")
    # Settings of every run; None: the default of the task and the model.
    max_seq_length: int | None = option(None, "Maximum tokens of all sequences. Default: each "
                                              "task's default.",
                                        least=4)
    num_train_steps: int | None = option(
        None, "Steps of every run, instead of epochs.", least=1, rare=True)
    warmup_proportion: float | None = option(
        None, "Share of the steps in which the learning rate rises.", least=0, most=1)
    weight_decay: float | None = option(None, "Weight decay.", least=0)
    eval_batch_size: int | None = option(
        None, "Examples per step of evaluation and prediction.", least=1)
    early_stopping: int | None = option(
        None, "Stop after this many evaluations without a better headline metric.", least=0)
    save_checkpoints_steps: int | None = option(
        None, "Steps between checkpoints, from which a stopped run resumes.", least=1)
    gradient_accumulation_steps: int | None = option(
        None, "Number of parts in which each device processes its share of a batch.", least=1)
    dtype: str | None = option(None, "Type of the computation.", choices=tuple(POLICIES))
    distribution_strategy: str | None = option(
        None, "Where to train.",
        choices=tuple(name for name in STRATEGIES if name != "multi_worker"))
    num_workers: int | None = option(
        None, "Processes that make records; default: one for each core.", least=0)


def open_suite(job: SuiteFlags) -> SuiteRun:
    """The run that flags describe; its files were found.

    Raises:
        InputError: a flag, a file or the model cannot be used.
    """
    check(job)
    config = config_of(vars(job))
    suite, rows = _choose(job)
    points = list(_grid(job, suite.grids.get(config.model_type, Grid())).points())
    given = {name: value for name, value in vars(job).items() if value is not None}
    settings = {name: value for name, value in given.items() if name not in (*_MODEL, *_SUITE)}
    family = FAMILIES.get(config.model_type, HEADS)
    family.check([*settings, *(f"grid_{name}" for name in points[0]),
                  *(name for name in ("rank_pronouns", "do_lower_case")
                    if getattr(job, name) != getattr(SuiteFlags, name))])
    run = SuiteRun(
        suite, rows, job.data_dir, job.output_dir,
        {name: given[name] for name in _MODEL if given.get(name, "") != ""},
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
    given = {name: tuple(map(kind, values))
             for name, kind in (("learning_rate", float), ("train_batch_size", int),
                                ("num_train_epochs", float))
             if (values := getattr(job, f"grid_{name}"))}
    if job.num_train_steps:
        given["num_train_epochs"] = ()
    return dataclasses.replace(known, **given)


def main(job: SuiteFlags) -> None:
    """Prints the plan, carries out the missing runs, and reports."""
    run = open_suite(job)
    from bert_tf.finetuning import suite_plan, suite_reports
    print("\n".join(suite_plan.describe(run)), flush=True)
    if job.dry_run:
        return
    make_folder(job.output_dir, "output_dir")
    flags.keep(job, job.output_dir)
    run.carry_out()
    suite_reports.report(run)
    if lost := [row.task for row in run.rows if run.is_lost(row.task)]:
        raise InputError(f"every run of {' and '.join(lost)} diverged; give a lower "
                         "--grid_learning_rate.")


def run():
    flags.run(main, SuiteFlags)


if __name__ == "__main__":
    run()
