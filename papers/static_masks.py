"""Compares masks that records hold with masks that are drawn while training.

This is table 1 of RoBERTa's paper (arXiv:1907.11692). The records of the first model hold masks,
--dupe_factor different ones of each sequence, as BERT's do; those of the other hold the text, and
each reading draws other masks. Both learn from the same text for the same steps. The difference can
only show where the text is read more often than there are masks of it, so the text should be short.
The perplexity is on text that is held out.

Example:
    bert-benchmark static-masks --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: Where each static mask is read 4.7 times, dynamic masks have a perplexity of 199.2 ± 3.9 and
static ones 249.7 ± 6.9.

1.5 MB of Wikipedia, --seeds=2. With 15 MB and --dupe_factor=10, where no mask comes twice, five
seeds have 187.6 ± 2.8 and 187.9 ± 2.3. MNLI-m is near chance in all rows, 34.5 to 36.7%.
"""

import dataclasses

from bert_tf.flags import option
from papers.tables.cells import Cell
from papers.tables.making import program
from papers.tables.material import PERPLEXITY, Material, TableFlags
from papers.tables.table import Column, Table

_TASKS = ("MNLI-m", "SST-2", "SQuAD2.0")
# MNLI-m, SST-2, SQuAD v2.0 (F1).
PUBLISHED = {"static": (84.3, 92.5, 78.3), "dynamic": (84.0, 92.9, 78.7)}


@dataclasses.dataclass(kw_only=True)
class StaticMasksFlags(TableFlags):
    seeds: int = option(5, "Number of seeds, from 1 on.", least=1)
    dupe_factor: int = option(
        2, "Copies of each sequence with static masks; RoBERTa's paper has 10, and reads each copy "
        "4 times.", least=1)
    max_megabytes: float = option(
        2.0, "Maximum size of the documentation: little, so that it is read many times.", above=0)


@program
def main(job: StaticMasksFlags) -> Table:
    """The table."""
    material = Material(job)

    def cell(row: str, column: Column, seed: int) -> Cell:
        static = {"masking": "static", "dupe_factor": job.dupe_factor} if row == "static" else {}
        model = material.pretrained(row, material.records(row, **static), seed)
        if column != PERPLEXITY:
            return material.tuned(column.title, model / "model.keras", seed)
        return material.scored(row, model, material.records(
            "held-out-static", "held_out.txt", masking="static"))

    return Table(
        "static-masks", "Static and dynamic masks",
        "table 1 of arXiv:1907.11692 (BERT-Base, medians of five)", list(PUBLISHED),
        [PERPLEXITY, *material.columns(*_TASKS, may_lack=True)], cell,
        {row: dict(zip(_TASKS, figures)) for row, figures in PUBLISHED.items()})
