"""Compares how many examples of a new task BERT and MT-DNN need.

This is figure 2 and table 5 of MT-DNN's paper (arXiv:1901.11504). BERT (--init_checkpoint) and
MT-DNN (--mtdnn_checkpoint, the --output_dir of bert-finetune with several tasks) are fine-tuned
with a new linear head on shares of the training file. With one seed, a smaller share is a part of a
larger one, the same for both. The epoch with the best score of each run counts.

Example:
    bert-benchmark adaptation --task=snli --data_dir=. --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --mtdnn_checkpoint=mtdnn --output_dir=/tmp/adaptation

Result: With 235 and with 549 examples of SNLI, MT-DNN is ahead of BERT with each of three seeds.

With an earlier form of this program: BERT is all-MiniLM-L6-v2; MT-DNN learned from it for one epoch
of 6,000 pairs of MNLI and 500 each of CoLA, MRPC, STS-B. 20,000 examples of SNLI, 400 to score on,
--max_seq_length=64 --train_batch_size=16 --learning_rate=1e-4 --optimizer=adamw
--num_train_epochs=4, with 23, 235, 549 examples (chance is 33.3): BERT: 35.2 ± 0.8, 45.6 ± 3.4,
58.4 ± 3.4; MT-DNN: 47.9 ± 11.7, 57.1 ± 7.3, 65.6 ± 3.1.
"""

import dataclasses
from typing import ClassVar

from bert_tf.errors import InputError
from bert_tf.files import absolute
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.reading import read_examples
from bert_tf.training.optimizers import OPTIMIZERS
from papers.tables.cells import Cell, Made
from papers.tables.making import program
from papers.tables.table import Column, Table
from papers.tables.tuning import TuningFlags, dev_split

# Accuracy of base models on development sets by the number of examples: table 5.
PUBLISHED = {
    "snli": {"BERT": {549: 52.5, 5493: 78.1, 54936: 86.7, 549367: 91.0},
             "MT-DNN": {549: 82.1, 5493: 85.2, 54936: 88.4, 549367: 91.5}},
    "scitail": {"BERT": {23: 51.2, 235: 82.2, 2359: 90.5, 23596: 94.3},
                "MT-DNN": {23: 81.9, 235: 88.3, 2359: 91.1, 23596: 95.7}},
}


@dataclasses.dataclass(kw_only=True)
class AdaptationFlags(TuningFlags):
    """The task, the two models, and how they are fine-tuned."""

    little: ClassVar = {**TuningFlags.little, "train_fractions": ["0.0005", "0.001"]}

    mtdnn_checkpoint: str = option(
        REQUIRED, "Checkpoint of MT-DNN: a model of several tasks, made from that BERT.")
    task: str = option("snli", "The new task.", choices=tuple(PUBLISHED))
    train_fractions: list[str] = option(["0.001", "0.01", "0.1", "1"],
                                        "Shares of the training file.")
    optimizer: str = option("adamax", "Optimizer.", choices=tuple(OPTIMIZERS))


@program
def main(job: AdaptationFlags) -> Table:
    """The table, whose columns are numbers of examples."""
    task, folder = job.find(job.task)
    count = sum(1 for _ in read_examples(task, "train", task.path(folder, "train")))
    try:
        fractions = sorted({float(value) for value in job.train_fractions})
    except ValueError:
        fractions = []
    if not fractions or not all(0 < value <= 1 for value in fractions):
        raise InputError("--train_fractions must be shares above 0, at most 1, such as 0.01,0.1.")
    shares = {str(int(count * fraction + 1e-9)): fraction for fraction in fractions}
    starts = {"BERT": job.init_checkpoint, "MT-DNN": job.mtdnn_checkpoint}

    def cell(row: str, column: Column, seed: int) -> Cell:
        return Cell(f"{row.lower()}-{column.title}-seed{seed}", "bert-finetune", {
            "tasks": [task.name], "task_config_path": Made("tasks.json"), "answer_opt": 0,
            **job.flags(seed), "init_checkpoint": absolute(starts[row]),
            "optimizer": job.optimizer}, {"tasks.json": {task.name: {
                "data_dir": folder, "train_fraction": shares[column.title],
                "train_fraction_seed": seed}}})

    metric = f"{task.name}_{dev_split(task)}_{task.headline}"
    return Table(
        "adaptation", f"Adaptation to {task.name}", "table 5 of arXiv:1901.11504 (base models)",
        list(starts), [Column(size, metric) for size in shares], cell,
        {row: {str(size): score for size, score in scores.items()}
         for row, scores in PUBLISHED[task.name].items()}, over="training examples")
