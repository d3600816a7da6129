"""Compares the order of sentences with next sentences as an objective.

This is table 5 of ALBERT's paper (arXiv:1909.11942): models that learn masked words alone, with
next sentences (NSP: does B follow A, or is it from another text?), and with their order (SOP: are A
and B swapped?). Each is asked for masked words, for next sentences and for the order, on text that
is held out, whatever it has learned, and is fine-tuned on the tasks whose files are there. The
paper's claim: a model of the order can tell next sentences, a model of next sentences can't tell
the order.

The network is BERT's.

Example:
    bert-benchmark sentence-order --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: A model of next sentences cannot tell the order, as published; a model of the order cannot
yet tell next sentences.

Defaults, documentation of the installed packages, three seeds: MLM, NSP, SOP, MNLI-m: none: 32.4 ±
0.2, -, -, 34.6 ± 1.0; NSP: 31.9 ± 0.3, 64.7 ± 1.1, 52.7 ± 1.5, 36.6 ± 3.7; SOP: 33.9 ± 0.1, 57.1 ±
0.3, 53.8 ± 0.5, 36.6 ± 3.1; the most frequent answer: -, 58.9, 52.4. The masked LM is 2.0 ± 0.2
better with the order than with next sentences; in the paper it is 0.5 worse.
"""

import dataclasses
import math

from bert_tf.data.records.manifest import manifest_path
from bert_tf.files import read_json
from bert_tf.flags import option
from papers.albert_shapes import TASKS
from papers.tables.cells import Cell, Cells, Made
from papers.tables.making import program
from papers.tables.material import Material, TableFlags
from papers.tables.table import Column, Table

# Accuracy in percent: masked words, next sentences, order; then `TASKS`.
PUBLISHED = {"none": (54.9, 52.4, 53.3, 88.6, 81.5, 78.1, 75.3, 81.5, 89.9, 61.7),
             "NSP": (54.5, 90.5, 52.0, 88.4, 81.5, 77.2, 74.6, 81.6, 91.1, 62.3),
             "SOP": (54.0, 78.9, 86.5, 89.3, 82.3, 80.0, 77.1, 82.0, 90.3, 64.0)}
_INTRINSIC = [Column("MLM", "masked_lm_accuracy"), Column("NSP", "next_sentence_accuracy"),
              Column("SOP", "next_sentence_accuracy")]


@dataclasses.dataclass(kw_only=True)
class SentenceOrderFlags(TableFlags):
    num_train_steps: int = option(2000, "Steps of pre-training.", least=1)
    dupe_factor: int = option(
        3, "Passes over the text, each with different pairs; also for the held-out text.", least=1)


@program
def main(job: SentenceOrderFlags) -> Table:
    """The table."""
    material = Material(job)

    def records(row: str, of: str = "text") -> Made:
        return material.records(f"{of}-{row.lower()}", f"{of}.txt", dupe_factor=job.dupe_factor,
                                random_next_sentence=row != "SOP")

    def cell(row: str, column: Column, seed: int) -> Cell | None:
        terms = {"terms": ["masked_lm"]} if row == "none" else {}
        model = material.pretrained(row.lower(), records("NSP" if row == "none" else row), seed,
                                    **terms)
        if column not in _INTRINSIC:
            return material.tuned(column.title, model / "model.keras", seed)
        asked = column.title
        if asked == "MLM":
            asked = "SOP" if row == "SOP" else "NSP"
        if row == "none" and column.title != "MLM":
            return None
        return material.scored(f"{row.lower()}-on-{asked.lower()}", model,
                               records(asked, "held_out"), **terms)

    def remark(by_row: dict[str, dict[str, dict]], cells: Cells) -> list[str]:
        """The paper's claim, held against each seed's accuracy."""
        told = {}
        for row, asked in (("SOP", "NSP"), ("NSP", "SOP")):
            if asked not in by_row.get(row, {}):
                return []
            held_out = records(asked, "held_out")
            counts = read_json(manifest_path(cells.path(held_out.cell, held_out.path)))["counts"]
            pairs, ones = counts["instances"], counts["random_next"]
            share = max(ones, pairs - ones) / pairs
            least = 100 * (share + 2 * math.sqrt(share * (1 - share) / pairs))
            values = by_row[row][asked]["values"].values()
            told[asked] = sum(value > least for value in values), len(values), 100 * share, least
        (next_by_order, seeds, *_), (order_by_next, *_) = told["NSP"], told["SOP"]
        holds = next_by_order == seeds and not order_by_next
        return [*("The claim: {} tells {} in {} of {} seeds. The most frequent answer has {:.1f}%, "
                  "and {:.1f}% is two standard errors above.".format(model, what, *told[asked])
                  for model, what, asked in (("the model of the order", "next sentences", "NSP"),
                                             ("the model of next sentences", "the order", "SOP"))),
                f"The paper's claim {'holds' if holds else 'does not hold'} here."]

    return Table(
        "sentence-order", "The order of sentences, and next sentences",
        "table 5 of arXiv:1909.11942 (ALBERT-Base)", list(PUBLISHED),
        [*_INTRINSIC, *material.averaged(*TASKS)], cell,
        {row: dict(zip(("MLM", "NSP", "SOP", *TASKS), figures))
         for row, figures in PUBLISHED.items()}, baseline="NSP",
        notes=["A model that has learned masked words alone has no head to tell sentences with; "
               "the paper has 52.4 and 53.3 for it."], remark=remark)
