"""Compares ALBERTs by the width of embeddings and by the shared weights.

These are tables 3 and 4 of ALBERT's paper (arXiv:1909.11942): embeddings of --embedding_shares of
the width of the layers (the paper's are 64, 128, 256 and 768 of 768), by layers that share nothing,
their attention, their feed-forward networks, or all. All models learn masked n-grams and the order
of sentences from the same text for the same steps, with BERT's optimizer. The paper's table 5, the
sentence objectives, is bert-benchmark sentence-order.

Example:
    bert-benchmark albert-ablations --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: Wider embeddings lower the perplexity in every row; layers that share their weights lose
nothing.

Defaults, 15 MB of Wikipedia, three seeds, perplexity with E 64, 128, 256, 768 (of 768; here a
quarter): nothing shared: 759.4 ± 3.2, 625.3 ± 6.7, 368.9 ± 8.2, 261.5 ± 4.7; attention: -, 615.3 ±
12.6, -, 255.2 ± 3.5; all shared: 758.0 ± 4.6, 620.9 ± 8.9, 363.2 ± 7.4, 261.6 ± 2.6; feed-forward:
-, 622.7 ± 3.8, -, 267.0 ± 5.0. MNLI-m says nothing: 31.9 to 35.1%, and 33% is chance.
"""

import dataclasses

from bert_tf.flags import option
from papers.albert_shapes import TASKS, albert
from papers.tables.cells import Cell
from papers.tables.making import program
from papers.tables.material import PERPLEXITY, Material, TableFlags
from papers.tables.table import Column, Table

# Values of the configuration for layers that share some of their weights.
SHARED = {"nothing": {}, "attention": {"num_hidden_groups": 1, "shared_parts": "attention"},
          "feed-forward": {"num_hidden_groups": 1, "shared_parts": "feed_forward"},
          "all": {"num_hidden_groups": 1}}
_PUBLISHED_WIDTH = 768
# The shared weights, and the width of the embeddings: the dev scores of `TASKS`. Table 3 has the
# rows that share nothing or all, table 4 the others; it prints 83.2 and 82.0 for MNLI of the two
# rows that both tables have with embeddings of 128.
PUBLISHED = {
    ("nothing", 64): (89.9, 82.9, 80.1, 77.8, 82.9, 91.5, 66.7),
    ("nothing", 128): (89.9, 82.8, 80.3, 77.3, 83.7, 91.5, 67.9),
    ("nothing", 256): (90.2, 83.2, 80.3, 77.4, 84.1, 91.9, 67.3),
    ("nothing", 768): (90.4, 83.2, 80.4, 77.6, 84.5, 92.8, 68.2),
    ("attention", 128): (89.9, 82.8, 80.7, 77.9, 83.4, 91.9, 67.6),
    ("attention", 768): (89.9, 82.7, 80.0, 77.2, 84.0, 91.4, 67.7),
    ("feed-forward", 128): (88.9, 81.6, 78.6, 75.6, 82.3, 91.7, 64.4),
    ("feed-forward", 768): (89.2, 82.1, 78.2, 75.4, 81.5, 90.8, 62.6),
    ("all", 64): (88.7, 81.4, 77.5, 74.8, 80.8, 89.4, 63.5),
    ("all", 128): (89.3, 82.3, 80.0, 77.1, 81.6, 90.3, 64.0),
    ("all", 256): (88.8, 81.5, 79.1, 76.3, 81.5, 90.3, 63.4),
    ("all", 768): (88.6, 81.5, 79.2, 76.6, 82.0, 90.6, 63.3)}


@dataclasses.dataclass(kw_only=True)
class AlbertAblationsFlags(TableFlags):
    num_hidden_layers: int = option(4, "Layers.", least=1)
    hidden_size: int = option(192, "Width; heads are 64 wide. The embeddings are 1/12, 1/6, 1/3 "
                                   "and all of it.")


def sizes_of(job: AlbertAblationsFlags, shared: str, width: int) -> dict:
    """The sizes of a row whose embeddings are so wide in the paper."""
    return {"embedding_size": job.hidden_size * width // _PUBLISHED_WIDTH, **SHARED[shared]}


@program
def main(job: AlbertAblationsFlags) -> Table:
    """The table."""
    material = Material(job)
    rows = {"{} shared: E {}".format(*key): key for key in PUBLISHED}

    def cell(row: str, column: Column, seed: int) -> Cell:
        shared, width = rows[row]
        model = albert(material, f"{shared}-{width}", seed, sizes_of(job, shared, width), True)
        if column == PERPLEXITY:
            return model
        return material.tuned(column.title, model / "model.keras", seed)

    return Table(
        "albert-ablations", "ALBERT: the width of embeddings, by what layers share",
        "tables 3 and 4 of arXiv:1909.11942 (ALBERT-Base)", list(rows),
        [PERPLEXITY, *material.averaged(*TASKS)], cell,
        {row: dict(zip(TASKS, PUBLISHED[key])) for row, key in rows.items()},
        baseline="all shared: E 128", notes=[
            "E is the width of the paper's embeddings, with layers of width 768. Here layers are "
            f"{job.hidden_size} wide, and the embeddings "
            + ", ".join(str(sizes_of(job, "all", width)["embedding_size"])
                        for width in (64, 128, 256, 768)) + "."])
