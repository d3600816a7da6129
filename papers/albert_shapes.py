"""Compares BERT and ALBERT of several shapes: scores, weights and speed.

This is table 2 of ALBERT's paper (arXiv:1909.11942). Its six shapes are scaled down: the layers by
--layer_scale, the width by --width_scale; ALBERT's embeddings have the width --embedding_size. BERT
learns masked words and next sentences. ALBERT's layers share their weights; it learns masked
n-grams and the order of sentences. All read the same text for the same steps, with the same
vocabulary and BERT's optimizer. Speedup is the rate of training steps, by CPU seconds, as a
multiple of BERT-large's (see bert-benchmark sizes).

Example:
    bert-benchmark albert-shapes --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: ALBERT xxlarge is 3.8 ± 0.1 points below BERT large on MNLI-m; in the paper it is 1.4 above.

Defaults, 15 MB of Wikipedia, three seeds, 9,888 pairs of MNLI: millions of weights, MNLI-m (33% is
chance), speedup: BERT base: 1.01, 35.2 ± 1.0, 2.6; BERT large: 1.85, 35.8 ± 0.1, 1.0; ALBERT base:
0.38, 32.9 ± 0.9, 2.8; ALBERT large: 0.48, 33.4 ± 1.7, 1.1; ALBERT xlarge: 1.12, 32.3 ± 0.6, 0.5;
ALBERT xxlarge: 3.69, 32.0 ± 0.0, 0.3. 8 of the 12 ALBERT models give all pairs one answer. On a
CPU, shared layers compute the same products.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf.config import config_from_dict
from bert_tf.errors import InputError
from bert_tf.flags import option
from papers.tables.cells import Cell, Made
from papers.tables.making import program
from papers.tables.material import Material, TableFlags, refuse_sizes, scaled
from papers.tables.table import Column, Table

TASKS = ("SQuAD", "SQuAD EM", "SQuAD2.0", "SQuAD2.0 EM", "MNLI-m", "SST-2", "RACE")
_SPEEDUP = Column("Speedup", "cpu_seconds", 1.0, ratio="gain")
# Layers, width, heads, and whether it is ALBERT.
SHAPES = {"BERT base": (12, 768, 12, False), "BERT large": (24, 1024, 16, False),
          "ALBERT base": (12, 768, 12, True), "ALBERT large": (24, 1024, 16, True),
          "ALBERT xlarge": (24, 2048, 16, True), "ALBERT xxlarge": (12, 4096, 64, True)}
# Speed as a multiple of BERT large's, and the dev scores of `TASKS`; millions of weights.
PUBLISHED = {"BERT base": (4.7, 90.4, 83.2, 80.4, 77.6, 84.5, 92.8, 68.2),
             "BERT large": (1.0, 92.2, 85.5, 85.0, 82.2, 86.6, 93.0, 73.9),
             "ALBERT base": (5.6, 89.3, 82.3, 80.0, 77.1, 81.6, 90.3, 64.0),
             "ALBERT large": (1.7, 90.6, 83.9, 82.3, 79.4, 83.5, 91.7, 68.5),
             "ALBERT xlarge": (0.6, 92.5, 86.1, 86.1, 83.1, 86.4, 92.4, 74.8),
             "ALBERT xxlarge": (0.3, 94.1, 88.3, 88.1, 85.1, 88.0, 95.2, 82.3)}
PUBLISHED_WEIGHTS = dict(zip(PUBLISHED, (108, 334, 12, 18, 60, 235)))


@dataclasses.dataclass(kw_only=True)
class AlbertShapesFlags(TableFlags):
    little: ClassVar = {**TableFlags.little, "layer_scale": 12, "width_scale": 16}

    layer_scale: int = option(6, "Divide the number of layers by this number.", least=1, most=12)
    width_scale: int = option(8, "Divide the width by this number.", least=1, most=32)
    embedding_size: int = option(32, "Width of ALBERT's embeddings.", least=8)
    learning_rate: float = option(1e-3, "Peak of the learning rate in pre-training.")

    def __post_init__(self) -> None:
        refuse_sizes(self)
        super().__post_init__()
        for name, (layers, width, heads, _) in SHAPES.items():
            if layers % self.layer_scale or width % (self.width_scale * heads):
                raise InputError(
                    f"--layer_scale={self.layer_scale} and --width_scale={self.width_scale}: "
                    f"{name} has {layers} layers of width {width} with {heads} heads, which they "
                    "do not divide; give 1, 2, 3, 4, 6 or 12, and a power of 2.")


def sizes_of(job: AlbertShapesFlags, row: str) -> dict[str, Any]:
    """The sizes of a row."""
    *shape, is_albert = SHAPES[row]
    own = {"model_type": "albert", "embedding_size": job.embedding_size, "num_hidden_groups": 1}
    return {**scaled(job, *shape), **(own if is_albert else {})}


def albert(material: Material, name: str, seed: int, sizes: Mapping[str, Any],
           held_out: bool = False) -> Cell:
    """A pre-trained ALBERT, whose masks are drawn while records are made, and its evaluation if it
    has held-out records."""
    records, others = (material.records(
        f"albert-{of}", f"{of}.txt", recipe="albert", masking=None) for of in ("text", "held_out"))
    return material.pretrained(name, records, seed, others if held_out else None, recipe="albert",
                               optimizer="adamw", sizes={"model_type": "albert", **sizes})


@program
def main(job: AlbertShapesFlags) -> Table:
    """The table."""
    material = Material(job)

    def cell(row: str, column: Column, seed: int) -> Cell:
        sizes, name = sizes_of(job, row), f"shape-{row.lower().replace(' ', '-')}"
        if column == _SPEEDUP:
            return Cell(f"sizes-{name}", "bert-benchmark sizes", {
                "models": Made("sizes.json"), "output_dir": Made("."),
                "max_seq_length": job.max_seq_length, "train_batch_size": job.train_batch_size,
                "max_predictions_per_seq": material.slots},
                files={"sizes.json": material.config(**sizes)})
        model = (albert(material, name, seed, sizes) if SHAPES[row][-1] else
                 material.pretrained(name, material.records(), seed, sizes=sizes))
        return material.tuned(column.title, model / "model.keras", seed)

    shapes = {row: sizes_of(job, row) for row in SHAPES}
    weights = {row: config_from_dict(material.config(**sizes)).num_weights / 1e6
               for row, sizes in shapes.items()}
    return Table(
        "albert-shapes", "Shapes of BERT and ALBERT", "table 2 of arXiv:1909.11942", list(SHAPES),
        [*material.averaged(*TASKS), _SPEEDUP], cell,
        {row: dict(zip((_SPEEDUP.title, *TASKS), figures)) for row, figures in PUBLISHED.items()},
        baseline="BERT large", notes=[
            "Here the shapes are, layers x width with so many heads, and in millions of weights "
            "[published]: " + "; ".join(
                "{}: {num_hidden_layers} x {hidden_size} with {num_attention_heads}, {:.2f} [{}]"
                .format(row, weights[row], PUBLISHED_WEIGHTS[row], **sizes)
                for row, sizes in shapes.items())
            + f". ALBERT's embeddings are {job.embedding_size} wide."])
