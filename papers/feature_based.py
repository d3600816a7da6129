"""Compares fine-tuning with features from fixed layers, on names in a text.

This is table 7 of BERT's paper (arXiv:1810.04805). Two pre-trained models, a larger and a smaller
one, are fine-tuned on CoNLL-2003. The other rows freeze the smaller one, and two bidirectional
LSTMs read the vectors of some of its layers. The paper's models are cased; give
--do_lower_case=False for cased models.

Example:
    bert-benchmark feature-based --data_dir=. --input_file=text.txt --output_dir=/tmp/tables

Result: All eight differences from the fine-tuned base model have the published direction; four
concatenated layers are the best features.

15 MB of Wikipedia, --pretraining_seeds=1, 2 layers in place of 4, all of CoNLL-2003, F1 on dev and
test: fine-tuned large: 54.0 ± 1.1, 51.5 ± 0.9; fine-tuned base: 41.0 ± 0.4, 40.5 ± 0.8; embeddings:
28.1 ± 3.1, 28.5 ± 2.4; second-to-last: 24.0 ± 4.0, 26.9 ± 3.7; last: 19.5 ± 3.4, 22.6 ± 3.2;
weighted sums: 26.8 ± 3.0, 29.1 ± 3.2; concatenation of the last four: 34.6 ± 0.4, 35.9 ± 0.9.
"""

import dataclasses
from typing import ClassVar

from bert_tf.flags import option
from bert_tf.tasks.named import TASKS
from papers.tables.cells import Cell
from papers.tables.making import program
from papers.tables.material import Material, TableFlags
from papers.tables.table import Column, Table

_LARGE, _BASE = "fine-tuned large", "fine-tuned base"
# F1 on the dev and the test file.
PUBLISHED = {
    _LARGE: (96.6, 92.8), _BASE: (96.4, 92.4), "embeddings": (91.0,),
    "second-to-last layer": (95.6,), "last layer": (94.9,),
    "weighted sum of the last four": (95.9,), "concatenation of the last four": (96.1,),
    "weighted sum of all layers": (95.5,)}
_LAYERS = dict(zip(list(PUBLISHED)[2:], (
    "embeddings", "second_to_last", "last", "weighted_sum_last_4", "concat_last_4",
    "weighted_sum_all")))
_DEV, _TEST = Column("dev F1", "dev/entity_f1"), Column("test F1", "test/entity_f1")


@dataclasses.dataclass(kw_only=True)
class FeatureBasedFlags(TableFlags):
    little: ClassVar = {**TableFlags.little, "num_hidden_layers": 4}
    num_hidden_layers: int = option(
        4, "Layers of the smaller model, at least 4; the larger one has twice as many.", least=4)
    large_hidden_size: int = option(192, "Width of the larger model; heads are 64 wide.")
    lstm_size: int = option(128, "Width of each direction of the LSTMs.", least=1)
    feature_learning_rate: float = option(1e-3, "Peak of the learning rate of the LSTMs.")


@program
def main(job: FeatureBasedFlags) -> Table:
    """The table."""
    material = Material(job)
    material.columns("NER")
    columns = [_DEV, _TEST]
    if not TASKS["conll2003"].has_file(job.find("NER"), "test"):
        columns.remove(_TEST)
        print(f"left out, as --data_dir does not have its file: {_TEST.title}", flush=True)

    def cell(row: str, column: Column, seed: int) -> Cell:
        sizes = {} if row != _LARGE else {
            "num_hidden_layers": 2 * job.num_hidden_layers, "hidden_size": job.large_hidden_size}
        model = material.pretrained("large" if row == _LARGE else "base", material.records(), seed,
                                    sizes=sizes) / "model.keras"
        if row not in _LAYERS:
            return material.tuned("NER", model, seed)
        return material.tuned(
            "NER", model, seed, feature_layers=_LAYERS[row], lstm_size=job.lstm_size,
            learning_rate=job.feature_learning_rate)

    return Table(
        "feature-based", "Fine-tuning and features, on CoNLL-2003",
        "table 7 of arXiv:1810.04805 (BERT-Large and BERT-Base)", list(PUBLISHED), columns, cell,
        {row: dict(zip((_DEV.title, _TEST.title), figures))
         for row, figures in PUBLISHED.items()}, baseline=_BASE)
