"""Compares fine-tuned models of one task by size, speed and score.

This is table 1 of Rogers, Kovaleva and Rumshisky (arXiv:2002.12327), with its published figures.
Each model is a folder from bert-finetune, bert-distill, bert-prune or bert-quantise-model; + joins
folders of one method with different seeds. The first model is the one that the others are compared
with. The time is CPU time by bert-benchmark model-cost.

Example:
    bert-benchmark compression --task=mrpc --data_dir=glue --output_dir=/tmp/table \\
        --models=teacher=mrpc,distilbert=small_1+small_2+small_3,q8bert=mrpc_int8

Result: No method reaches its published share after minutes of training; Q8BERT is nearest with 98.1
of 99%.

With an earlier form of this program: MiniLM-L6 on STS-B, Pearson of 1,500 pairs: times smaller, %
kept, times faster: PKD, 3 layers: 1.31, 86.2, 3.04 (the same layers without a teacher: 72.0);
Theseus, 3 layers: 1.31, 93.0, 2.47; Pre-trained BERT-Tiny: 5.17, 78.0, 20.6; TinyBERT: 3.09, 49.5,
6.54; small vocabulary: 5.98, 17.2, 3.66; MobileBERT miniature: 57.0, 16.7, 19.0; BiLSTM: 2.29,
68.7, 8.77; Q8BERT: 3.99, 98.1, 1.20; Q-BERT, 4 bits: 5.18, 97.1, 0.63; half of the heads: 1.08,
98.3, 1.29. TinyBERT, small vocabulary and MobileBERT were pre-trained for minutes only.
"""

import dataclasses
import os

from bert_tf.errors import InputError
from bert_tf.files import absolute, digest
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.named import find_task
from papers.tables.cells import Cell, Made
from papers.tables.making import RunFlags, program
from papers.tables.table import Column, Table
from papers.tables.tuning import dev_split
from run_scripts.finetuning.scoring import weights_files

_SCORE = "score"
_RATIOS = ("times smaller", "% kept", "times faster")
# By the name of a method: how many times smaller than its teacher, per cent of its score that are
# kept, how many times faster; shorter where it is not reported.
PUBLISHED = {
    "distilbert": (2.5, 90, 1.6), "internal": (2, 94), "pkd6": (1.6, 97, 1.9),
    "pkd3": (2.4, 92, 3.7), "bert48": (62, 87, 77), "bert192": (5.7, 94, 22),
    "tinybert": (7.5, 96, 9.4), "mobilebert": (4.3, 100, 4), "pretrained": (1.6, 98, 2.5),
    "minibert": (6, 98, 27), "bilstm": (110, 91, 434), "qbert": (13, 99),
    "q8bert": (4, 99), "albert_base": (9, 97, 5.6), "albert_xxlarge": (0.47, 107, 0.3),
    "theseus": (1.6, 98)}


@dataclasses.dataclass(kw_only=True)
class CompressionFlags(RunFlags):
    """The models, and the task."""

    models: list[str] = option(
        REQUIRED, "NAME=FOLDER of each model, or NAME=FOLDER+FOLDER of several seeds; the first is "
        f"the teacher. For {', '.join(PUBLISHED)}, and for NAME-ANYTHING, published figures are "
        "shown too.")
    task: str = option(REQUIRED, "The task of all models.")
    examples: int = option(0, "Number of examples to score on, from the start; 0: all.", least=0)

    def folders(self) -> dict[str, list[str]]:
        """The folders of each method.

        Raises:
            InputError: an element of --models has another form, or a folder has no model.
        """
        methods: dict[str, list[str]] = {}
        for model in self.models:
            name, _, paths = model.partition("=")
            if not (name and paths) or name in methods:
                raise InputError(f"--models: {model!r} must be NAME=FOLDER, with another name for "
                                 "each.")
            methods[name] = paths.split("+")
            for path in methods[name]:
                if not os.path.isdir(path):
                    raise InputError(f"--models: there is no folder {path}.")
                weights_files(path, "models")
        return methods


@program
def main(job: CompressionFlags) -> Table:
    """The table."""
    methods, task = job.folders(), find_task(job.task)
    if not (data_dir := job.folder(task.name, dev_split(task))):
        raise InputError(f"--data_dir has no folder with the files of {task.name}; put its "
                         "files into a subfolder of its name, and name the folder above.")

    def cell(row: str, column: Column, seed: int) -> Cell:
        path = methods[row][(seed - 1) % len(methods[row])]
        weights = digest(*weights_files(path, "models"))[:8]
        return Cell(f"cost-{row}-{weights}", "bert-benchmark model-cost", {
            "model_dir": absolute(path), "task": task.name, "data_dir": data_dir,
            "examples": job.examples, "output_dir": Made(".")})

    teacher = next(iter(methods))
    published = {name: dict(zip(_RATIOS, PUBLISHED.get(name.partition("-")[0], ())))
                 for name in methods}
    return Table(
        "compression", f"Smaller models of {task.name}", "table 1 of arXiv:2002.12327",
        list(methods), [
            Column("MB", "bytes", 1e-6), Column("times smaller", "bytes", ratio="gain"),
            Column("million weights", "weights", 1e-6), Column("CPU ms", "cpu_seconds", 1000.0),
            Column("times faster", "cpu_seconds", ratio="gain"), Column(_SCORE, _SCORE, 1.0),
            Column("% kept", _SCORE, ratio="share")],
        cell, {**published, teacher: dict.fromkeys(_RATIOS, 1) | {"% kept": 100}},
        baseline=teacher)
