"""Compares robust ways of fine-tuning, and averages, with plain fine-tuning.

The ways are adversarial training, averages of the weights and R-Adam. Each row trains on each task
alone, from the same checkpoint with the same settings and seeds; it differs from "plain" by the
flags that `ROWS` names. The table has the mean and the standard deviation over the seeds of the
task's first metric, the mean difference to plain of the same seed with its standard error, and the
CPU seconds of a run. These include loading and compiling, not the start of the program.

Results are kept in results.json as they arrive, and the table in table.md. Run the same command
again to resume.

Example:
    bert-benchmark robust-finetuning --data_dir=glue --init_checkpoint=all-MiniLM-L6-v2 \\
        --output_dir=/tmp/robust
"""

import dataclasses
import functools
import statistics
import time
from typing import Any, ClassVar

from benchmarks.kept_comparison import KeptComparison
from benchmarks.programs import take_little
from benchmarks.task_trials import cut_files, percent, run_trial, train_limits, write_table
from bert_tf import flags
from bert_tf.files import remove_folder
from bert_tf.finetuning.model import ModelFlags
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.named import find_task
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts import finetune

PLAIN, SECONDS = "plain", "cpu_seconds"
ROWS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    "smart": {"adv_train": "smart"},
    "smart_paper": {"adv_train": "smart", "adv_norm_of": "step", "adv_max_norm": 1e-5},
    "freelb": {"adv_train": "freelb"},
    "ema": {"weight_average": "ema"},
    "swa": {"weight_average": "swa"},
    "radam": {"optimizer": "radam"}}


@dataclasses.dataclass
class RobustnessComparisonFlags(KeptComparison):
    """The tasks, the start of all runs, and how they are trained.

    Attributes:
        little: values under --smoke of flags that are not given.
    """

    little: ClassVar[dict[str, Any]] = {
        "max_train_examples": ["32"], "max_eval_examples": 32, "num_trials": 1,
        "num_train_epochs": 1.0, "max_seq_length": 32}

    data_dir: str = option(REQUIRED, "Folder with a subfolder for each task's official files.")
    init_checkpoint: str = option(REQUIRED, "The initial checkpoint, of any format.")
    output_dir: str = option(REQUIRED, "Folder for models and results.")
    tasks: list[str] = option(["snli", "sts-b"], "Names of tasks.")
    rows: list[str] = option(list(ROWS), "Rows of the table beside plain.", choices=tuple(ROWS))
    num_trials: int = option(3, "Number of runs of each row, with seeds from 1 on.", least=1)
    max_train_examples: list[str] = option(
        ["1500"], "Maximum training examples of each task, drawn at random and the same for all "
        "rows, such as 1500,cola=3000; 0: all.")
    max_eval_examples: int = option(0, "Maximum examples of each file to score on.", least=0)
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    max_seq_length: int = option(64, "Length of the longest sequence.")
    train_batch_size: int = option(16, "Examples per step.", least=1)
    learning_rate: float = option(1e-4, "Peak of the learning rate.")
    num_train_epochs: float = option(2.0, "Number of epochs.", above=0)
    smoke: bool = option(False, "Use one seed and 32 examples, to test that everything works.")

    free: ClassVar = ("tasks", "rows", "num_trials")

    def __post_init__(self) -> None:
        if self.smoke:
            take_little(self)


def run_row(job: RobustnessComparisonFlags, row: str, task: Any, seed: int) -> dict[str, float]:
    """Trains and scores a row; returns the task's metrics and "cpu_seconds"."""
    folder = job.path(task.name, f"{row}-seed{seed}")
    # A run that was stopped would go on, and only the seconds of its rest would be measured.
    remove_folder(folder)
    start = time.process_time()
    found = run_trial(
        finetune.main, f"{folder}.log", folder,
        TaskFlags(task=task.name, data_dir=job.path("data", task.name)),
        ModelFlags(do_train=True, do_eval=True, init_checkpoint=job.init_checkpoint, num_workers=1,
                   keep_head=False,
                   max_seq_length=job.max_seq_length, do_lower_case=job.do_lower_case),
        FineTuneSettings(
            output_dir=folder, random_seed=seed, train_batch_size=job.train_batch_size,
            learning_rate=job.learning_rate, num_train_epochs=job.num_train_epochs,
            eval_batch_size=64, **ROWS[row]))
    split = next(name for name in task.splits if name.startswith("dev"))
    return {**{metric: found[f"{split}/{metric}"] for metric in task.metrics},
            SECONDS: time.process_time() - start}


def tabulate(found: dict[str, dict[str, list[dict[str, float]]]]) -> list[list[str]]:
    """Returns the rows of the table, the heading first, from row -> task -> results by seed."""
    tasks = {task: find_task(task).headline for task in found[PLAIN]}
    table = [["", *(text for task, metric in tasks.items() for text in (
        f"{task} {metric}", "less plain", "CPU seconds"))]]
    for row, of in found.items():
        cells = []
        for task, metric in tasks.items():
            values = [run[metric] for run in of[task]]
            apart = [value - run[metric] for value, run in zip(values, found[PLAIN][task])]
            cells += [percent(values), "" if row == PLAIN else _difference(apart),
                      f"{statistics.fmean(run[SECONDS] for run in of[task]):.0f}"]
        table.append([row, *cells])
    return table


def _difference(apart):
    """The mean in percent, and of several its standard error."""
    text = f"{100 * statistics.fmean(apart):+.1f}"
    if len(apart) < 2:
        return text
    return f"{text} ± {100 * statistics.stdev(apart) / len(apart) ** 0.5:.1f}"


def main(job: RobustnessComparisonFlags) -> None:
    """Makes the missing runs, and prints the table."""
    job.check()
    results = job.open_results()
    tasks = [find_task(name) for name in job.tasks]
    limits = train_limits(job.max_train_examples, [task.name for task in tasks])
    for task in tasks:
        cut_files(task, job.data_dir, job.path("data", task.name), {
            "train": limits[task.name], "dev": job.max_eval_examples})
    found: dict[str, dict[str, list[dict[str, float]]]] = {
        row: {task.name: [] for task in tasks} for row in dict.fromkeys([PLAIN, *job.rows])}
    for seed in range(1, job.num_trials + 1):
        for task in tasks:
            for row, of in found.items():
                run = results.get(task.name, row, str(seed), measure=functools.partial(
                    run_row, job, row, task, seed))
                of[task.name].append(run)
                print(f"seed {seed}, {task.name}, {row}: {task.headline} "
                      f"{100 * run[task.headline]:.1f}, {run[SECONDS]:.0f} CPU seconds", flush=True)
    write_table(job.path("table.md"), tabulate(found))


def run() -> None:
    flags.run(main, RobustnessComparisonFlags)


if __name__ == "__main__":
    run()
