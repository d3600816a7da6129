"""Compares MT-DNN with training on each task alone, before and after fine-tuning.

These are the four rows of the tables of arXiv:1901.11504. BERT is fine-tuned on each task alone.
ST-DNN is too, with MT-DNN's heads, losses and optimizer. MT-DNN learns all tasks together: "no
fine-tuning" is this model, and "MT-DNN" is the same model after fine-tuning on each task with its
head. All start from --init_checkpoint, and the epoch with the best score of each run counts. The
table has mean and standard deviation over the seeds, and published figures.

results.json keeps each result, and table.md has the table. Run the same command again to resume.

Example:
    bert-benchmark multitask --tasks=mnli,cola,mrpc,sts-b --data_dir=glue \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mtdnn
"""

import dataclasses
import functools
import math
from typing import ClassVar

from benchmarks.kept_comparison import KeptComparison
from benchmarks.task_trials import cut_files, percent, run_trial, train_limits, write_table
from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.finetuning.mixture import MixtureFlags
from bert_tf.finetuning.model import ModelFlags
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.named import find_task
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.optimizers import OPTIMIZERS
from bert_tf.training.settings import FineTuneSettings
from run_scripts import finetune

BERT, SINGLE, UNTUNED, TUNED = ROWS = "BERT", "ST-DNN", "MT-DNN, no fine-tuning", "MT-DNN"
# Of BERT-large, development sets, tables 3 and 4 of arXiv:1901.11504, by the headline: BERT,
# ST-DNN, MT-DNN.
_PUBLISHED = {"mnli": "86.3, 86.6, 87.1", "qqp": "88.0, 88.4, 89.2", "rte": "71.1, 72.0, 83.4",
              "qnli": "92.4, -, 92.9", "mrpc": "89.5, 89.7, 91.0", "cola": "61.8, -, 63.5",
              "sst-2": "93.5, -, 94.3", "sts-b": "89.6, -, 90.7"}


@dataclasses.dataclass
class MultitaskComparisonFlags(KeptComparison):
    """The tasks, the start of all runs, and how they are trained."""

    tasks: list[str] = option(REQUIRED, "Names of tasks.")
    data_dir: str = option(REQUIRED, "Folder with a subfolder for each task's official files.")
    init_checkpoint: str = option(REQUIRED, "The initial checkpoint, of any format.")
    output_dir: str = option(REQUIRED, "Folder for models and results.")
    vocab_file: str = option("", "Vocabulary of the model; default: the file beside "
        "--init_checkpoint.")
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    num_trials: int = option(3, "Number of runs of each row, with seeds from 1 on.", least=1)
    max_train_examples: list[str] = option(
        [], "Maximum training examples of each task, drawn at random and the same for all rows, "
        "such as 1000,mnli=6000 (default: all).")
    max_eval_examples: int = option(0, "Maximum examples of each file to score on.", least=0)
    max_seq_length: int = option(128, "Length of the longest sequence.")
    train_batch_size: int = option(32, "Examples per step.", least=1)
    learning_rate: float = option(5e-5, "Peak of the learning rate.")
    optimizer: str = option(
        "adamax", "Optimizer of ST-DNN and MT-DNN; BERT has the optimizer of its original scripts.",
        choices=tuple(OPTIMIZERS))
    num_train_epochs: float = option(5.0, "Number of epochs.", above=0)
    save_checkpoints_steps: int = option(500, "Steps between checkpoints.")

    free: ClassVar = ("num_trials", "save_checkpoints_steps")

    def check(self) -> None:
        """Raises InputError for values that can't work."""
        super().check()
        known = [find_task(task).name for task in self.tasks]
        for name in known:
            if known.count(name) > 1:
                raise InputError(f"--tasks names {name} {known.count(name)} times; once is enough.")
        train_limits(self.max_train_examples, known)


@dataclasses.dataclass(frozen=True)
class Trials:
    """The runs of one seed."""

    job: MultitaskComparisonFlags
    tasks: tuple[Task, ...]
    seed: int

    def folder(self, *parts: str) -> str:
        """A path in the folder of the seed."""
        return self.job.path(f"seed{self.seed}", *parts)

    def _settings(self, folder):
        job = self.job
        return FineTuneSettings(
            output_dir=folder, random_seed=self.seed, train_batch_size=job.train_batch_size,
            learning_rate=job.learning_rate, num_train_epochs=job.num_train_epochs,
            early_stopping=math.ceil(job.num_train_epochs) + 1, eval_batch_size=64,
            save_checkpoints_steps=job.save_checkpoints_steps)

    def _model(self, start, **changes):
        return ModelFlags(do_train=True, do_eval=True, init_checkpoint=start, num_workers=1,
                          max_seq_length=self.job.max_seq_length, vocab_file=self.job.vocab_file,
                          do_lower_case=self.job.do_lower_case, **{"keep_head": False, **changes})

    def _learn_together(self, names, folder, model, keep=False):
        """Scores of tasks by their names, after `finetune`."""
        found = run_trial(
            finetune.main, f"{folder}.log", folder,
            MixtureFlags(tasks=names, data_dir=self.job.path("data")), model,
            dataclasses.replace(self._settings(folder), optimizer=self.job.optimizer,
                                early_stopping=0),
            keep=keep)
        return {task.name: {metric: found[f"{task.name}_{_dev(task)}_{metric}"]
                            for metric in task.metrics} for task in self.tasks
                if task.name in names}

    def together(self) -> dict:
        """Learns all tasks together; returns the scores by task."""
        return self._learn_together([task.name for task in self.tasks], self.folder("mtdnn"),
                                    self._model(self.job.init_checkpoint), keep=True)

    def alone(self, row: str, task: Task) -> dict[str, float]:
        """The scores of a row that is trained on one task alone."""
        folder = self.folder(f"{row.lower()}-{task.name}")
        if row == SINGLE:
            return self._learn_together([task.name], folder,
                                        self._model(self.job.init_checkpoint))[task.name]
        if row == TUNED:
            return self._learn_together([task.name], folder, self._model(
                self.folder("mtdnn"), keep_head=True))[task.name]
        found = run_trial(
            finetune.main, f"{folder}.log", folder,
            TaskFlags(task=task.name, data_dir=self.job.path("data", task.name)),
            self._model(self.job.init_checkpoint), self._settings(folder))
        return {metric: found[f"{_dev(task)}/{metric}"] for metric in task.metrics}


def _dev(task):
    """The first split that is scored."""
    return next(name for name in task.splits if name.startswith("dev"))


def tabulate(tasks: tuple[Task, ...], found: dict[str, dict[str, list[dict]]]
             ) -> list[list[str]]:
    """Returns the rows of the table, the heading first, from row -> task -> scores by metric, for
    each seed."""
    table = [["", *ROWS, "published: BERT, ST-DNN, MT-DNN"]]
    for task in tasks:
        for metric in task.metrics:
            table.append([f"{task.name} {metric}", *(
                percent(run[metric] for run in found[row][task.name]) for row in ROWS),
                _PUBLISHED.get(task.name, "") if metric == task.headline else ""])
    means = [[sum(runs[seed][task.headline] for task, runs in zip(tasks, found[row].values()))
              / len(tasks) for seed in range(len(found[row][tasks[0].name]))] for row in ROWS]
    table.append(["mean of the first of each", *map(percent, means), ""])
    return table


def main(job: MultitaskComparisonFlags) -> None:
    """Makes the missing runs, and prints the table."""
    job.check()
    results = job.open_results()
    tasks = tuple(find_task(name) for name in job.tasks)
    limits = train_limits(job.max_train_examples, [task.name for task in tasks])
    for task in tasks:
        cut_files(task, job.data_dir, job.path("data", task.name), {
            "train": limits[task.name], "dev": job.max_eval_examples})
    found: dict[str, dict[str, list[dict]]] = {
        row: {task.name: [] for task in tasks} for row in ROWS}
    for seed in range(1, job.num_trials + 1):
        trials = Trials(job, tasks, seed)
        together = results.get(str(seed), UNTUNED, measure=trials.together)
        for task in tasks:
            found[UNTUNED][task.name].append(together[task.name])
            for row in (BERT, SINGLE, TUNED):
                found[row][task.name].append(results.get(
                    str(seed), row, task.name,
                    measure=functools.partial(trials.alone, row, task)))
            print(f"seed {seed}, {task.name} {task.headline}: " + ", ".join(
                f"{row} {100 * found[row][task.name][-1][task.headline]:.1f}" for row in ROWS),
                flush=True)
    write_table(job.path("table.md"), tabulate(tasks, found))


def run() -> None:
    flags.run(main, MultitaskComparisonFlags)


if __name__ == "__main__":
    run()
