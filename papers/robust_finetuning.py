"""Compares robust ways of fine-tuning, and averages, with plain fine-tuning.

The ways are the noise of SMART (arXiv:1911.03437) and of FreeLB (arXiv:1909.11764), averages of the
weights, and R-Adam (arXiv:1908.03265). Each row trains on each task alone, from the same model with
the same settings and seeds; it differs from "plain" by the flags that `ROWS` names.

Example:
    bert-benchmark robust-finetuning --data_dir=glue --init_checkpoint=all-MiniLM-L6-v2 \\
        --output_dir=/tmp/robust

Result: In runs of 187 steps only SMART with large noise gains: 1.1 ± 0.2 points on SNLI.

With an earlier form of this program: all-MiniLM-L6-v2, 1,500 examples, batches of 16, length 64,
three seeds: SNLI, STS-B, and the CPU seconds of a run on SNLI: plain: 66.2 ± 1.5, 64.7 ± 7.2, 104;
smart: 67.4 ± 1.7, 56.0 ± 8.9, 200; smart_paper: 66.4 ± 1.3, 62.8 ± 9.1, 209; freelb: 58.3 ± 8.3,
32.7 ± 13.7, 242; ema: 65.8 ± 1.7, 60.5 ± 9.5, 129; swa: 65.1 ± 2.0, 44.9 ± 13.5, 123; radam: 43.2 ±
1.9, 16.7 ± 0.2, 135. Averages need longer runs, R-Adam more steps, FreeLB less noise for small
models.
"""

import dataclasses
from typing import Any

from bert_tf.flags import option
from papers.tables.cells import Cell
from papers.tables.making import program
from papers.tables.table import Column, Table
from papers.tables.tuning import TuningFlags

ROWS: dict[str, dict[str, Any]] = {
    "plain": {},
    "smart": {"adv_train": "smart"},
    "smart_paper": {"adv_train": "smart", "adv_norm_of": "step", "adv_max_norm": 1e-5},
    "freelb": {"adv_train": "freelb"},
    "ema": {"weight_average": "ema"},
    "swa": {"weight_average": "swa"},
    "radam": {"optimizer": "radam"}}


@dataclasses.dataclass(kw_only=True)
class RobustFinetuningFlags(TuningFlags):
    """The tasks, the model, and how it is fine-tuned."""

    tasks: list[str] = option(["snli", "sts-b"], "Names of tasks.")
    learning_rate: float = option(1e-4, "Peak of the learning rate.")
    num_train_epochs: float = option(2.0, "Number of epochs.", above=0)


@program
def main(job: RobustFinetuningFlags) -> Table:
    """The table."""
    columns = job.task_columns(job.tasks)

    def cell(row: str, column: Column, seed: int) -> Cell:
        return job.tuned(row, *columns[column], seed, **ROWS[row])

    return Table("robust-finetuning", "Noise and averages in fine-tuning", "", list(ROWS),
                 list(columns), cell, {})
