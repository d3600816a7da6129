"""Compares MT-DNN with training on each task alone, before and after fine-tuning.

These are the rows of tables 3 and 4 of MT-DNN's paper (arXiv:1901.11504). BERT is fine-tuned on
each task alone. ST-DNN is too, with MT-DNN's heads, losses and optimizer. MT-DNN learns all tasks
together: "no fine-tuning" is this model, and "MT-DNN" is the same model after fine-tuning on each
task with its head. The epoch with the best score of each run counts.

Example:
    bert-benchmark multitask --tasks=mnli,cola,mrpc,sts-b --data_dir=glue \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mtdnn

Result: MT-DNN is ahead of BERT and of ST-DNN on MNLI, MRPC and STS-B with each of three seeds.

With an earlier form of this program: all-MiniLM-L6-v2, 300 examples of each task (MNLI 900), 200 to
score on, --max_seq_length=64 --train_batch_size=16 --learning_rate=1e-4 --optimizer=adamw
--num_train_epochs=2: BERT, ST-DNN, MT-DNN without fine-tuning, MT-DNN: MNLI: 45.2 ± 1.6, 44.0 ±
3.1, 50.8 ± 3.8, 54.7 ± 1.5; MRPC F1: 81.3 ± 0.0, 81.7 ± 0.4, 81.1 ± 0.8, 82.3 ± 0.6; STS-B: 21.9 ±
2.7, 24.2 ± 2.2, 45.5 ± 3.8, 70.5 ± 2.9; WNLI: 46.5 ± 1.4, 40.4 ± 3.3, 39.0 ± 2.9, 35.2 ± 3.7; CoLA:
0.0 in all. MT-DNN has seen the examples of each task twice as often.
"""

import dataclasses
import math
from typing import Any

from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, option
from bert_tf.training.optimizers import OPTIMIZERS
from papers.tables.cells import Cell, Made
from papers.tables.making import program
from papers.tables.table import Column, Table
from papers.tables.tuning import TuningFlags

BERT, SINGLE, UNTUNED, TUNED = ROWS = ("BERT", "ST-DNN", "MT-DNN, no fine-tuning", "MT-DNN")
# BERT-large's headlines on the development sets: BERT, ST-DNN, MT-DNN.
PUBLISHED = {"mnli": (86.3, 86.6, 87.1), "qqp": (88.0, 88.4, 89.2), "rte": (71.1, 72.0, 83.4),
             "qnli": (92.4, None, 92.9), "mrpc": (89.5, 89.7, 91.0), "cola": (61.8, None, 63.5),
             "sst-2": (93.5, None, 94.3), "sts-b": (89.6, None, 90.7)}


@dataclasses.dataclass(kw_only=True)
class MultitaskTableFlags(TuningFlags):
    """The tasks, the model, and how it is fine-tuned."""

    tasks: list[str] = option(REQUIRED, "Names of tasks.")
    optimizer: str = option(
        "adamax", "Optimizer of ST-DNN and MT-DNN; BERT has the optimizer of its original scripts.",
        choices=tuple(OPTIMIZERS))


@program
def main(job: MultitaskTableFlags) -> Table:
    """The table."""
    columns = job.task_columns(job.tasks)
    if len(columns) < len(job.tasks):
        raise InputError("--tasks names a task twice; name each task once.")

    def together(seed: int, *names: str, **flags: Any) -> Cell:
        """MT-DNN on some tasks."""
        files = {task.name: {"data_dir": folder, "train_fraction": job.train_fraction,
                             "train_fraction_seed": seed} for task, folder in columns.values()
                 if task.name in names}
        return Cell(f"{'-'.join(names)}-seed{seed}", "bert-finetune", {
            "tasks": list(names), "task_config_path": Made("tasks.json"), **job.flags(seed),
            "optimizer": job.optimizer, "keep_head": False, **flags}, {"tasks.json": files})

    def cell(row: str, column: Column, seed: int) -> Cell:
        task, folder = columns[column]
        if row == BERT:
            return job.tuned("bert", task, folder, seed,
                             early_stopping=math.ceil(job.num_train_epochs) + 1)
        all_tasks = dataclasses.replace(
            together(seed, *(each.name for each, _ in columns.values())), is_kept=True)
        made = {SINGLE: lambda: together(seed, task.name), UNTUNED: lambda: all_tasks,
                TUNED: lambda: together(seed, task.name, init_checkpoint=all_tasks / ".",
                                        keep_head=True)}[row]()
        metric = f"{task.name}_{column.metric.replace('/', '_')}"
        return dataclasses.replace(made, scored_by=Column(column.title, metric))

    published: dict[str, dict[str, float]] = {row: {} for row in ROWS}
    for column, (task, _) in columns.items():
        for row, figure in zip((BERT, SINGLE, TUNED), PUBLISHED.get(task.name, ())):
            published[row] |= {} if figure is None else {column.title: figure}
    mean = Column("mean", "", mean_of=tuple((column.title,) for column in columns))
    return Table(
        "multitask", "MT-DNN and training on each task alone",
        "tables 3 and 4 of arXiv:1901.11504 (BERT-Large, dev sets)", list(ROWS),
        [*columns, *[mean] * (len(columns) > 1)], cell, published)
