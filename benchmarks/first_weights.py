"""Measures how much sooner a model learns if its heads first look at neighbours.

Two models differ only in --first_weights: the original's small random numbers, or heads that look
at neighbouring tokens. They are pre-trained on the same text with the same settings. The score of
--points checkpoints of each run is the share of held-out masked words that the model predicts, or
the score of a task after fine-tuning (--task). The picture has a curve for each model.

Run the same command again to resume; several processes share the work. Writes first-weights.md,
.json and .png.

Example:
    bert-benchmark first-weights --input_file=text.txt --output_dir=/tmp/tables
"""

import dataclasses

from benchmarks.tables.making import run_table
from benchmarks.tables.material import COLUMNS
from benchmarks.tables.table import Table
from benchmarks.training_steps import HELD_OUT, TrainingStepsFlags, curves
from bert_tf.flags import option

ROWS = {"original": {"first_weights": "original"}, "neighbours": {"first_weights": "neighbours"}}


@dataclasses.dataclass(kw_only=True)
class FirstWeightsFlags(TrainingStepsFlags):
    """The material, the sizes, and how long to train."""

    tasks: list[str] = option(
        [HELD_OUT], f"Tasks whose mean is the score; {HELD_OUT}: the share of masked words in "
        "held-out text that the model predicts, without fine-tuning; of --recipe=ltr, of next "
        "words.", choices=(*COLUMNS, HELD_OUT))
    recipe: str = option("bert", "How the model is pre-trained.",
                         choices=("bert", "roberta", "albert", "electra", "ltr"))


def declare(job: FirstWeightsFlags) -> Table:
    """The table, whose columns are steps."""
    return curves(job, "first-weights",
                  {row: {"recipe": job.recipe, **given} for row, given in ROWS.items()})


def run() -> None:
    run_table(declare, FirstWeightsFlags)


if __name__ == "__main__":
    run()
