"""Compares BERT, denoising on XLNet's network, and XLNet without its parts.

This is table 6 of XLNet's paper (arXiv:1906.08237). All models have the same sizes, and read the
same text for the same steps. Those on XLNet's network have a memory of three quarters of a
sequence, as in the paper, and an `initializer_range` of 0.1, without which so small a network does
not learn. BERT has a WordPiece vocabulary, the others SentencePiece. One token in K is predicted.

Example:
    bert-benchmark xlnet-ablations --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: BERT is ahead of XLNet (K = 6) by 6.5 ± 1.8 points with each seed, but no difference can be
told from 0.

Defaults, 15 MB of Wikipedia, three seeds, MNLI-m (33% is chance): BERT 40.5 ± 3.5, DAE +
Transformer-XL 37.0 ± 5.3, K = 7 35.8 ± 0.9, K = 6 34.0 ± 0.4, without memory 34.0 ± 2.1, without
spans 33.5 ± 1.9, without bidirectional data 35.4 ± 0.8, with next sentences 34.6 ± 0.2.
"""

import dataclasses
from typing import Any

from bert_tf.errors import InputError
from bert_tf.flags import option
from papers.tables.cells import Cell
from papers.tables.making import program
from papers.tables.material import Material, TableFlags
from papers.tables.table import Column, Table

_TASKS = ("RACE", "SQuAD2.0", "SQuAD2.0 EM", "MNLI-m", "SST-2")
_FULL = "XLNet K = 6"
# Dev scores of `_TASKS`.
PUBLISHED = {"BERT": (64.3, 76.30, 73.66, 84.34, 92.78),
             "DAE + Transformer-XL": (65.03, 79.56, 76.80, 84.88, 92.60),
             "XLNet K = 7": (66.05, 81.33, 78.46, 85.84, 92.66),
             _FULL: (66.66, 80.98, 78.18, 85.63, 93.35),
             "- memory": (65.55, 80.15, 77.27, 85.32, 92.78),
             "- span-based pred": (65.95, 80.61, 77.91, 85.49, 93.12),
             "- bidirectional data": (66.34, 80.65, 77.87, 85.31, 92.66),
             "+ next-sent pred": (66.76, 79.83, 76.94, 85.32, 92.89)}
# K, further flags of the records, and flags of the training, of the rows on XLNet's network.
ROWS: dict[str, tuple[int, dict[str, Any], dict[str, Any]]] = {
    "DAE + Transformer-XL": (6, {}, {"terms": ["masked_lm"]}),
    "XLNet K = 7": (7, {}, {}), _FULL: (6, {}, {}),
    "- memory": (6, {}, {"recipe": "xlnet", "mem_len": 0}),
    "- span-based pred": (6, {"max_gram": 1}, {}),
    "- bidirectional data": (6, {"bi_data": False}, {}),
    "+ next-sent pred": (6, {}, {"terms": ["permutation_lm", "next_sentence"]})}


@dataclasses.dataclass(kw_only=True)
class XLNetAblationsFlags(TableFlags):
    num_train_steps: int = option(2000, "Steps of pre-training.", least=1)
    learning_rate: float = option(1e-3, "Peak of the learning rate in pre-training.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_seq_length % 2 or self.train_batch_size % 2:
            raise InputError("--max_seq_length and --train_batch_size must be even: XLNet's "
                             "sequences have two halves, and half of the rows run backward.")


def sizes_of(job: XLNetAblationsFlags) -> dict[str, Any]:
    """The configuration of XLNet's network."""
    return {"model_type": "xlnet", "vocab_size": job.vocab_size, "d_model": job.hidden_size,
            "n_layer": job.num_hidden_layers, "n_head": job.hidden_size // 64, "d_head": 64,
            "d_inner": 4 * job.hidden_size, "dropout": 0.0, "dropatt": 0.0,
            "mem_len": 3 * job.max_seq_length // 4, "initializer_range": 0.1}


@program
def main(job: XLNetAblationsFlags) -> Table:
    """The table."""
    material = Material(job)
    vocabulary = material.vocabulary("vocab-xlnet", tokenizer="sentencepiece",
                                     sentencepiece_style="xlnet")

    def pretrained(row: str, seed: int) -> Cell:
        if row not in ROWS:
            return material.pretrained("bert", material.records(), seed)
        one_in, made_with, trained_with = ROWS[row]
        slots = {"max_predictions_per_seq": job.max_seq_length // one_in}
        records = material.records(
            "-".join(["xlnet", str(one_in), *made_with]), recipe="xlnet", masking=None,
            vocab_file=vocabulary, mask_alpha=one_in, bsz_per_host=job.train_batch_size,
            **slots, **made_with)
        model = material.pretrained("xlnet", records, seed, first_weights=None, **slots,
                                    **trained_with)
        return dataclasses.replace(model, files={"sizes.json": sizes_of(job)})

    def cell(row: str, column: Column, seed: int) -> Cell:
        own = {"vocab_file": vocabulary} if row in ROWS else {}
        return material.tuned(column.title, pretrained(row, seed) / "model.keras", seed, **own)

    return Table(
        "xlnet-ablations", "BERT, Transformer-XL with denoising, and XLNet without its parts",
        "table 6 of arXiv:1906.08237 (base size, medians of five)", list(PUBLISHED),
        material.columns(*_TASKS), cell,
        {row: dict(zip(_TASKS, figures)) for row, figures in PUBLISHED.items()}, baseline=_FULL)
