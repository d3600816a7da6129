"""Measures how much sooner a model learns if its heads first look at neighbours.

Two models differ only in --first_weights: the original's small random numbers, or heads that look
at neighbouring tokens. They are pre-trained on the same text with the same settings. The score of
--points checkpoints of each run is the share of held-out masked words that the model predicts, or
the score of a task after fine-tuning (--task). The picture has a curve for each model.

Example:
    bert-benchmark first-weights --input_file=text.txt --output_dir=/tmp/tables

Result: After 200 steps BERT-Tiny predicts 18.0% of the words; from the original's weights it
predicts 14.8% after 1,200.

Defaults, when words still began at random; three seeds; after 200, 400, 600, 800, 1,000, 1,200
steps: original: 9.5 ± 0.4, 12.5 ± 0.4, 13.7 ± 0.3, 14.3 ± 0.1, 14.6 ± 0.0, 14.8 ± 0.2; neighbours:
18.0 ± 0.3, 23.3 ± 0.1, 25.2 ± 0.1, 26.6 ± 0.3, 27.7 ± 0.2, 28.3 ± 0.2.
"""

import dataclasses

from bert_tf.flags import option
from papers.tables.making import program
from papers.tables.material import COLUMNS
from papers.tables.table import Table
from papers.training_steps import HELD_OUT, TrainingStepsFlags, curves

ROWS = {"original": {"first_weights": "original"}, "neighbours": {"first_weights": "neighbours"}}


@dataclasses.dataclass(kw_only=True)
class FirstWeightsFlags(TrainingStepsFlags):
    tasks: list[str] = option(
        [HELD_OUT], f"Tasks whose mean is the score; {HELD_OUT}: the share of masked words in "
        "held-out text that the model predicts, without fine-tuning; of --recipe=ltr, of next "
        "words.", choices=(*COLUMNS, HELD_OUT))
    recipe: str = option("bert", "How the model is pre-trained.",
                         choices=("bert", "roberta", "albert", "electra", "ltr"))


@program
def main(job: FirstWeightsFlags) -> Table:
    """The table, whose columns are steps."""
    return curves(job, "first-weights",
                  {row: {"recipe": job.recipe, **row_flags} for row, row_flags in ROWS.items()})
