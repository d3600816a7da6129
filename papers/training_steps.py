"""Measures how a score grows with the steps of pre-training.

This is figure 5 of BERT's paper (arXiv:1810.04805, appendix C.1). A masked and a left-to-right
model are pre-trained on the same text; --points checkpoints of each run are kept, at equal
distances, and each is fine-tuned. The columns are the steps of pre-training; the picture has a
curve for each model. The paper states that the masked LM converges somewhat more slowly, as it
predicts 15% of the tokens alone, but is ahead almost immediately.

Example:
    bert-benchmark training-steps --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: On MNLI-m the left-to-right model is ahead at 400 steps and from 800 steps on, unlike in the
paper.

Defaults, 15 MB of Wikipedia, --pretraining_seeds=1, 9,888 pairs of MNLI; after 0, 200, 400, 600,
800, 1,000, 1,200 steps: masked LM: 36.7, 34.8, 33.6, 39.3, 38.3, 36.7, 39.0; left to right: 36.7,
37.0, 41.1, 44.0, 44.8, 45.3, 45.4.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.flags import option
from papers.tables.cells import Cell, Cells
from papers.tables.making import program
from papers.tables.material import COLUMNS, Material, TableFlags
from papers.tables.table import Column, Table

ROWS = {"masked LM": {"recipe": "bert"}, "left to right": {"recipe": "ltr"}}
HELD_OUT = "held-out"   # in place of a task: the accuracy of held-out words


@dataclasses.dataclass(kw_only=True)
class TrainingStepsFlags(TableFlags):
    num_train_steps: int = option(1200, "Steps of pre-training.", least=1)
    tasks: list[str] = option(["MNLI-m"], "Tasks whose mean is the score.",
                              choices=tuple(COLUMNS))
    points: int = option(6, "Checkpoints of each pre-training.", least=1)
    include_start: bool = option(
        True, "Also a point at step 0: random weights, fine-tuned without pre-training.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_train_steps % self.points:
            raise InputError(f"--num_train_steps is {self.num_train_steps}; it must be a multiple "
                             f"of --points={self.points}.")


@program
def main(job: TrainingStepsFlags) -> Table:
    """The table, whose columns are steps."""
    return dataclasses.replace(
        curves(job, "steps", ROWS), name="training-steps", remark=compare,
        source="figure 5 of arXiv:1810.04805, curves without figures")


def curves(job: TrainingStepsFlags, name: str, rows: Mapping[str, Mapping[str, Any]],
           label: Callable[[int], str] = str) -> Table:
    """A table whose columns are points of the pre-training, at equal shares of its steps.

    Args:
        name: beginning of the names of the cells.
        rows: flags of bert-run-pretraining, by the row's name.
        label: function of --num_train_steps at a point that returns the column's title.
    """
    material = Material(job)
    is_causal = {row["recipe"] for row in rows.values()} == {"ltr"}
    predicted, words = ("next_token_accuracy", "next") if is_causal else (
        "masked_lm_accuracy", "masked")
    held_out = [Column(HELD_OUT, predicted)] * (HELD_OUT in job.tasks)
    tasks = [title for title in job.tasks if title != HELD_OUT]
    numbers = {label(number * job.num_train_steps // job.points): number
               for number in range(0 if job.include_start and not held_out else 1, job.points + 1)}

    def cell(row: str, column: Column, seed: int, task: Column) -> Cell:
        every = rows[row].get("num_train_steps", job.num_train_steps) // job.points
        step = every * numbers[column.title]
        recipe = rows[row]["recipe"]
        # Records of its own, which name the recipe for those who read them.
        own = {} if recipe in ("bert", "ltr") else {"recipe": recipe}
        # All points are checkpoints of one run with one schedule, as in the paper.
        model = material.pretrained(
            f"{name}-{row.split()[0]}", material.records(**own), seed, save_checkpoints_steps=every,
            keep_checkpoint_max=job.points, **rows[row])
        taken = model / f"checkpoint-{step:09d}.safetensors" if step else None
        if task.title == HELD_OUT:
            return material.scored(
                f"{name}-{row.split()[0]}", model, material.records(
                    "held-out", "held_out.txt", **own), init_checkpoint=taken,
                **({"recipe": recipe} if recipe == "ltr" else {}))
        return material.tuned(task.title, taken, seed, bert_config_file=(
            None if taken else model / "bert_config.json"))

    return Table(
        name, ", ".join([f"accuracy on held-out {words} words (%)"] * len(held_out) + tasks)
        + " after so many steps of pre-training", "", list(rows),
        [Column(title, "") for title in numbers], cell, {}, over="steps of pre-training",
        tasks=[*held_out, *(material.columns(*tasks) if tasks or not held_out else [])])


def compare(figures: dict[str, dict[str, dict]], cells: Cells) -> list[str]:
    """A sentence: at how many points the masked LM is ahead, here and in the paper."""
    if len(figures) < 2:
        return []
    masked, causal = (figures[row] for row in ROWS)
    ahead = [title for title in masked if masked[title]["mean"] > causal[title]["mean"]]
    return [f"The masked LM is ahead at {len(ahead)} of {len(masked)} points ({', '.join(ahead)}); "
            "in the paper it is ahead at all of its points, from 200,000 steps on."]
