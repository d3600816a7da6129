"""Compares small models by size: fine-tuned or distilled, pre-trained or not.

These are the curves of Turc et al. (arXiv:1908.08962): small models of --sizes begin with random
weights or are pre-trained, and learn each task from its labels or from the answers of a pre-trained
and fine-tuned teacher of --num_hidden_layers layers and --hidden_size. Students learn from the
texts of the training file alone; the paper has further texts without labels. The score is the mean
over the tasks, all or without WNLI, CoLA and STS-B.

Example:
    bert-benchmark student-sizes --data_dir=glue --input_file=text.txt --output_dir=/tmp/tables

Result: Distilled students are better than fine-tuned ones in 23 of 24 pairs on MNLI-m, as
published; pre-training does not show.

Defaults, 15 MB of Wikipedia, three seeds, MNLI-m of 1x64, 2x64, 2x128, 4x128; the teachers have
41.7 to 42.5: fine-tuned: 35.4 ± 2.0, 36.4 ± 1.7, 37.3 ± 1.3, 37.8 ± 0.5; distilled: 39.9 ± 0.5,
40.2 ± 0.5, 40.9 ± 0.5, 40.7 ± 0.5; pre-trained: 33.5 ± 0.1, 34.6 ± 0.5, 38.1 ± 2.3, 38.9 ± 4.4;
both: 38.4 ± 0.8, 39.8 ± 0.7, 41.2 ± 0.5, 41.3 ± 0.3.
"""

import dataclasses
from typing import Any, ClassVar

from bert_tf.config import config_from_dict
from bert_tf.errors import InputError
from bert_tf.flags import option
from papers.tables.cells import Cell, Made
from papers.tables.making import program
from papers.tables.material import GLUE, Material, TableFlags, check_width
from papers.tables.table import Column, Table

# Whether the student is pre-trained, and whether it learns from a teacher.
ROWS = {"fine-tuned": (False, False), "distilled": (False, True),
        "pre-trained and fine-tuned": (True, False), "pre-trained and distilled": (True, True)}
SUBSETS = {"without WNLI, CoLA and STS-B": [
    task for task in GLUE if task not in ("WNLI", "CoLA", "STS-B")]}


@dataclasses.dataclass(kw_only=True)
class StudentSizesFlags(TableFlags):
    little: ClassVar = {**TableFlags.little, "sizes": ["1x64", "2x64"]}

    num_hidden_layers: int = option(4, "Layers of the teacher.", least=1)
    hidden_size: int = option(256, "Width of the teacher; heads are 64 wide.")
    sizes: list[str] = option(["1x64", "2x64", "2x128", "4x128"],
                              "Layers and width of each student.")
    tasks: list[str] = option(list(GLUE), "Tasks whose mean is the score.", choices=GLUE)


def shape(size: str) -> dict[str, int]:
    """The sizes of a student.

    Raises:
        InputError: an element of --sizes is not a size.
    """
    layers, _, width = size.partition("x")
    if not (layers.isdecimal() and width.isdecimal()):
        raise InputError(f"--sizes: {size!r} is not a size; write such as 2x128.")
    check_width(int(width))
    return {"num_hidden_layers": int(layers), "hidden_size": int(width),
            "num_attention_heads": int(width) // 64, "intermediate_size": 4 * int(width)}


@program
def main(job: StudentSizesFlags) -> Table:
    """The table, whose columns are sizes."""
    material = Material(job)
    shapes = [shape(size) for size in job.sizes]
    titles = [f"{config_from_dict(material.config(**each)).num_weights / 1e6:.2f}"
              for each in shapes]
    for number, title in enumerate(titles):
        if (first := titles.index(title)) < number:
            raise InputError(f"--sizes: {job.sizes[first]} and {job.sizes[number]} both have "
                             f"{title} million weights, which name a column; leave one out.")
    columns = dict(zip(titles, shapes))

    def pretrained(seed: int, **sizes: int) -> Cell:
        return material.pretrained("-".join(["size", *map(str, sizes.values())]),
                                   material.records(), seed, sizes=sizes)

    def tuned(task: Column, seed: int, model: Made | None, **flags: Any) -> Cell:
        # Without dropout, as students learn.
        return material.tuned(task.title, model, seed, encoder_dropout=None, **flags)

    def cell(row: str, column: Column, seed: int, task: Column) -> Cell:
        is_pretrained, is_taught = ROWS[row]
        model = pretrained(seed, **columns[column.title])
        sizes = model / "bert_config.json"
        if not is_taught:
            return (tuned(task, seed, model / "model.keras") if is_pretrained else
                    tuned(task, seed, None, bert_config_file=sizes))
        teacher = dataclasses.replace(
            tuned(task, seed, pretrained(seed) / "model.keras"), is_kept=True)
        return material.distilled(task.title, teacher, model / "." if is_pretrained else sizes,
                                  seed, recipe="pre_trained")

    return Table(
        "student-sizes", "Small models, fine-tuned or distilled",
        "arXiv:1908.08962, curves without figures", list(ROWS),
        [Column(title, "") for title in columns], cell, {}, over="millions of weights",
        tasks=material.columns(*job.tasks), subsets=SUBSETS,
        notes=["Sizes, layers x width: " + ", ".join(
            f"{size} has {title} million weights" for size, title in zip(job.sizes, columns))
            + f". The teacher is {job.num_hidden_layers}x{job.hidden_size}."])
