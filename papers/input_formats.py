"""Compares RoBERTa's four ways to make a sequence of sentences, at small size.

This is table 2 of RoBERTa's paper (arXiv:1907.11692): pairs of segments and of sentences, with
next sentence prediction; whole sentences, across documents or of one, without. All models learn
from the same text for the same steps, with masks that are drawn while training; a step of the
shorter sequences reads fewer tokens, as --train_batch_size counts sequences.

Example:
    bert-benchmark input-formats --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: None of the six differences from pairs of segments can be told from 0.

15 MB of Wikipedia, --pretraining_seeds=1, five seeds, SQuAD on a part of its dev file: perplexity,
SQuAD F1, MNLI-m: segment pairs: 180.6, 9.0 ± 0.4, 36.7 ± 2.5; sentence pairs: 208.7, 8.8 ± 0.2,
34.2 ± 0.7; full sentences: 179.1, 8.8 ± 0.4, 36.0 ± 3.2; sentences of a document: 186.2, 8.7 ± 0.1,
34.4 ± 1.2.
"""

import dataclasses

from bert_tf.flags import option
from papers.tables.cells import Cell
from papers.tables.making import program
from papers.tables.material import PERPLEXITY, Material, TableFlags
from papers.tables.table import Column, Table

_TASKS = ("SQuAD", "SQuAD2.0", "MNLI-m", "SST-2", "RACE")
# Of each format: SQuAD v1.1 and v2.0 (F1), MNLI-m, SST-2, RACE.
PUBLISHED = {
    "segment_pairs": (90.4, 78.7, 84.0, 92.9, 64.2),
    "sentence_pairs": (88.7, 76.2, 82.9, 92.1, 63.0),
    "full_sentences": (90.4, 79.1, 84.7, 92.5, 64.8),
    "doc_sentences": (90.6, 79.7, 84.7, 92.7, 65.6)}


@dataclasses.dataclass(kw_only=True)
class InputFormatsFlags(TableFlags):
    seeds: int = option(5, "Number of seeds, from 1 on.", least=1)


@program
def main(job: InputFormatsFlags) -> Table:
    """The table."""
    material = Material(job)
    held_out = material.records("held-out-full_sentences", "held_out.txt",
                                segments="full_sentences")

    def cell(row: str, column: Column, seed: int) -> Cell:
        terms = {} if "pairs" in row else {"terms": ["masked_lm"]}
        model = material.pretrained(row, material.records(row, segments=row), seed, **terms)
        if column == PERPLEXITY:
            return material.scored(row, model, held_out, terms=["masked_lm"])
        return material.tuned(column.title, model / "model.keras", seed)

    return Table(
        "input-formats", "Input formats",
        "table 2 of arXiv:1907.11692 (BERT-Base, medians of five)",
        list(PUBLISHED), [PERPLEXITY, *material.columns(*_TASKS, may_lack=True)], cell,
        {row: dict(zip(_TASKS, figures)) for row, figures in PUBLISHED.items()},
        notes=["Perplexity of all rows is measured on full sentences."])
