"""Measures how a score grows with the steps of pre-training.

This is figure 5 of BERT's paper (arXiv:1810.04805, appendix C.1). A masked and a left-to-right
model are pre-trained on the same text; --points checkpoints of each run are kept, at equal
distances, and each is fine-tuned. The columns are the steps of pre-training; the picture has a
curve for each model. The paper states that the masked LM converges somewhat more slowly, as it
predicts 15% of the tokens alone, but is ahead almost immediately.

The same command started again does what is missing, and several processes share the work. Writes
training-steps.md, .json and .png.

Example:
    bert-benchmark training-steps --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables
"""

import dataclasses

from benchmarks.tables.cells import Cell, Cells
from benchmarks.tables.material import COLUMNS, Material, TableFlags
from benchmarks.tables.table import Column, Table, make
from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.flags import option

ROWS = {"masked LM": {"recipe": "bert"}, "left to right": {"recipe": "ltr"}}


@dataclasses.dataclass(kw_only=True)
class TrainingStepsFlags(TableFlags):
    """The material, the sizes, and how long to train."""

    num_train_steps: int = option(1200, "Steps of pre-training.", least=1)
    task: str = option("MNLI-m", "The task of the score.", choices=tuple(COLUMNS))
    points: int = option(6, "Checkpoints of each pre-training.", least=1)
    include_start: bool = option(
        True, "A point at step 0 too: the original's random weights, without pre-training.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_train_steps % self.points:
            raise InputError(f"--num_train_steps is {self.num_train_steps}; it must be a multiple "
                             f"of --points={self.points}.")


def declare(job: TrainingStepsFlags) -> Table:
    """The table, whose columns are steps."""
    material = Material(job)
    metric, = material.columns(job.task)
    every = job.num_train_steps // job.points

    def cell(row: str, column: Column, seed: int) -> Cell:
        step = int(column.title)
        # Checkpoints of the run in which the paper's models were taken: one schedule for all.
        model = material.pretrained(
            f"steps-{row.split()[0]}", material.records(), seed, save_checkpoints_steps=every,
            keep_checkpoint_max=job.points, **ROWS[row])
        if step:
            return material.tuned(job.task, model / f"checkpoint-{step:09d}.safetensors", seed)
        return material.tuned(job.task, None, seed, bert_config_file=model / "bert_config.json")

    return Table(
        "training-steps", f"{job.task} after so many steps of pre-training",
        "figure 5 of arXiv:1810.04805, which has curves without figures", list(ROWS),
        [dataclasses.replace(metric, title=str(every * number))
         for number in range(not job.include_start, job.points + 1)], cell, {},
        over="steps of pre-training", remark=compare)


def compare(found: dict[str, dict[str, dict]], cells: Cells) -> list[str]:
    """A sentence: at how many points the masked LM is ahead, and what the paper says."""
    if len(found) < 2:
        return []
    masked, causal = (found[row] for row in ROWS)
    ahead = [title for title in masked if masked[title]["mean"] > causal[title]["mean"]]
    return [f"The masked LM is ahead at {len(ahead)} of {len(masked)} points ({', '.join(ahead)}); "
            "in the paper it is ahead at all of its points, from 200,000 steps on."]


def main(job: TrainingStepsFlags) -> None:
    """Trains the cells that are missing, and reports."""
    make(declare(job), job)


def run() -> None:
    flags.run(main, TrainingStepsFlags)


if __name__ == "__main__":
    run()
