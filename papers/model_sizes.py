"""Measures the effect of the size of a model: perplexity and fine-tuned scores.

This is table 6 of BERT's paper (arXiv:1810.04805). Its six shapes, of 3 to 24 layers, are scaled
down: the layers by --layer_scale, the width by --width_scale; the number of heads stays. All are
pre-trained on the same text for the same steps. The perplexity is the masked LM's on held-out text:
the exponential of the mean loss per masked token. Each is fine-tuned on the tasks whose files are
there.

Example:
    bert-benchmark model-sizes --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: Wider models have a lower perplexity, as published; depth alone makes no difference within
600 steps.

15 MB of Wikipedia, three seeds, --width_scale=8 --max_seq_length=64 --train_batch_size=16
--num_train_steps=600 --finetuning_steps=200: perplexity, MRPC (the most frequent answer has 68.4):
L3 H768 A12: 713.3 ± 9.8, 69.1 ± 0.2; L6 H768 A3: 618.2 ± 4.6, 68.1 ± 1.4; L6 H768 A12: 724.0 ± 5.0,
68.0 ± 0.9; L12 H768 A12: 720.3 ± 3.4, 68.1 ± 1.4; L12 H1024 A16: 695.4 ± 7.4, 68.4 ± 1.0; L24 H1024
A16: 696.2 ± 6.0, 67.9 ± 1.5.
"""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.flags import option
from papers.tables.cells import Cell
from papers.tables.making import program
from papers.tables.material import PERPLEXITY, Material, TableFlags, refuse_sizes, scaled
from papers.tables.table import Column, Table

_TASKS = ("MNLI-m", "MRPC", "SST-2")
# Layers, width and heads: perplexity, and the scores on the dev sets.
PUBLISHED = {
    (3, 768, 12): (5.84, 77.9, 79.8, 88.4), (6, 768, 3): (5.24, 80.6, 82.2, 90.7),
    (6, 768, 12): (4.68, 81.9, 84.8, 91.3), (12, 768, 12): (3.99, 84.4, 86.7, 92.9),
    (12, 1024, 16): (3.54, 85.7, 86.9, 93.3), (24, 1024, 16): (3.23, 86.6, 87.8, 93.7)}


@dataclasses.dataclass(kw_only=True)
class ModelSizesFlags(TableFlags):
    layer_scale: int = option(3, "Divide the number of layers by this number.", least=1, most=3)
    width_scale: int = option(4, "Divide the width by this number.", least=1, most=16)
    learning_rate: float = option(1e-3, "Peak of the learning rate in pre-training.")

    def __post_init__(self) -> None:
        refuse_sizes(self)
        super().__post_init__()
        for shape in PUBLISHED:
            width, heads = shape[1] // self.width_scale, shape[2]
            if width % heads:
                raise InputError(f"--width_scale={self.width_scale} is a width of {width}, which "
                                 f"{heads} heads can't share; give 1, 2, 4, 8 or 16.")


@program
def main(job: ModelSizesFlags) -> Table:
    """The table."""
    material = Material(job)
    rows = {"L{} H{} A{}".format(*shape): shape for shape in PUBLISHED}

    def cell(row: str, column: Column, seed: int) -> Cell:
        model = material.pretrained(
            f"size-{row.replace(' ', '-')}", material.records(), seed, material.held_out,
            sizes=scaled(job, *rows[row]))
        if column == PERPLEXITY:
            return model
        return material.tuned(column.title, model / "model.keras", seed)

    shapes = ", ".join("{num_hidden_layers} x {hidden_size} with {num_attention_heads}".format(
        **scaled(job, *shape)) for shape in PUBLISHED)
    return Table(
        "model-sizes", "Sizes of a model: layers, width, heads", "table 6 of arXiv:1810.04805",
        list(rows), [PERPLEXITY, *material.columns(*_TASKS, may_lack=True)], cell,
        {row: dict(zip((PERPLEXITY.title, *_TASKS), PUBLISHED[shape]))
         for row, shape in rows.items()}, baseline="L12 H768 A12",
        notes=[f"Rows have the paper's shapes. Here they are, in order, layers x width with so "
               f"many heads: {shapes}."])
