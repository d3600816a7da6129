"""Compares ELECTRA with a masked LM by the operations of pre-training.

This is figure 2 of ELECTRA's paper (arXiv:2003.10555): the score over the floating-point operations
of pre-training. Both models have the same sizes, and read the same records with the same masks; the
masked LM takes so many more steps that its operations are ELECTRA's with its generator, counted as
in bert-benchmark flops. --points checkpoints of each run are kept, at equal distances, and each is
fine-tuned on --tasks. The score is the mean over the tasks; the picture has a curve for each model.

Example:
    bert-benchmark training-flops --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: No difference between ELECTRA and the masked LM can be told from 0; ELECTRA is above in the
paper.

Defaults, 15 MB of Wikipedia, --pretraining_seeds=1, mean of MNLI-m and MRPC after 0, 9.1, 18.2,
27.3, 36.4, 45.5, 54.6 times 10^12 operations: masked LM: 54.4, 52.5, 51.2, 50.0, 51.4, 51.1, 50.8;
ELECTRA: 54.4, 50.9, 50.8, 51.3, 50.5, 50.9, 50.8. At a learning rate of 2e-3 the discriminator
found 0.7% of the replaced tokens, at 5e-4 21% after 600 steps.
"""

import dataclasses
from typing import Any

from benchmarks.flops import operations
from bert_tf.config import EncoderConfig
from bert_tf.flags import option
from papers.tables.making import program
from papers.tables.material import GLUE, Material
from papers.tables.table import Table
from papers.training_steps import TrainingStepsFlags, curves

_SHARE = 0.15       # of the tokens that are masked


@dataclasses.dataclass(kw_only=True)
class TrainingFlopsFlags(TrainingStepsFlags):
    num_train_steps: int = option(
        1200, "Steps of ELECTRA's pre-training; the masked LM's has as many operations.", least=1)
    learning_rate: float = option(
        5e-4, "Peak of the learning rate in pre-training. At 2e-3 ELECTRA's discriminator learns "
        "nothing.")
    tasks: list[str] = option(["MNLI-m", "SST-2", "MRPC"], "Tasks whose mean is the score.",
                              choices=GLUE)


@program
def main(job: TrainingFlopsFlags) -> Table:
    """The table, whose columns are operations."""
    config = EncoderConfig.from_dict({**Material(job).config(), "model_type": "electra"})
    electra, masked = (operations(config, job.max_seq_length, _SHARE, job.train_batch_size, 1,
                                  is_electra) for is_electra in (True, False))
    steps = job.points * round(job.num_train_steps * electra / masked / job.points)
    rows: dict[str, dict[str, Any]] = {
        "masked LM": {"recipe": "electra", "electra_objective": False,
                      "num_train_steps": steps, "num_warmup_steps": steps // 10},
        "ELECTRA": {"recipe": "electra"}}
    return dataclasses.replace(
        curves(job, "flops", rows, lambda step: f"{step * electra:.3g}"), name="training-flops",
        title="ELECTRA and a masked LM by the operations of pre-training",
        over="floating-point operations of pre-training",
        source="figure 2 of arXiv:2003.10555, curves without figures, of which ELECTRA's is above",
        notes=[f"ELECTRA is pre-trained for {job.num_train_steps:,} steps, the masked LM for "
               f"{steps:,}."])
