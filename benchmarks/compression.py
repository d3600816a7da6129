"""Compares fine-tuned models of one task by size, speed and score.

    bert-benchmark compression --task=mrpc --data_dir=glue/MRPC --output_dir=table \\
        --models=teacher=mrpc,distilbert=small_1+small_2+small_3,q8bert=mrpc_int8

Each model is a folder from bert-finetune, bert-distill, bert-prune or bert-quantise-model; + joins
folders of one method with different seeds. The first model is the one that the others are compared
with. CPU time is the minimum over --repeats passes over the split, with --batch_size texts at a
time, in this process. The table also has the figures that Rogers, Kovaleva and Rumshisky
(arXiv:2002.12327, table 1) report for each method.

Writes compression.md and compression.json; a model whose results are in compression.json is not
measured again while its weights and the flags stay as they are.
"""

import dataclasses
import functools
import json
import os
from typing import Any

import numpy as np

from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import digest, make_folder, write_aside
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.task_flags import TaskFlags
from run_scripts.finetuning.scoring import ScoredModel, weights_bytes, weights_files
from run_scripts.kept_results import KeptResults

# By the name of a method: how many times smaller than its teacher, per cent of its score that are
# kept, how many times faster; None where it is not reported.
PUBLISHED: dict[str, tuple[float, float, float | None]] = {
    "distilbert": (2.5, 90, 1.6), "internal": (2, 94, None), "pkd6": (1.6, 97, 1.9),
    "pkd3": (2.4, 92, 3.7), "bert48": (62, 87, 77), "bert192": (5.7, 94, 22),
    "tinybert": (7.5, 96, 9.4), "mobilebert": (4.3, 100, 4), "pretrained": (1.6, 98, 2.5),
    "minibert": (6, 98, 27), "bilstm": (110, 91, 434), "qbert": (13, 99, None),
    "q8bert": (4, 99, None), "albert_base": (9, 97, 5.6), "albert_xxlarge": (0.47, 107, 0.3),
    "theseus": (1.6, 98, None)}


@dataclasses.dataclass
class CompressionFlags:
    """The models."""

    models: list[str] = option(
        REQUIRED, "NAME=FOLDER of each model, or NAME=FOLDER+FOLDER of several seeds; the first is "
        f"the teacher. For {', '.join(PUBLISHED)}, and for NAME-ANYTHING, published figures are "
        "shown too.")
    output_dir: str = option(REQUIRED, "The folder to write into.")
    split: str = option(
        "", "The split to score on (default: the first labelled split other than train).")
    examples: int = option(0, "Number of examples of the split, from its start; 0: all.", least=0)
    batch_size: int = option(32, "Examples per batch.", least=1)
    repeats: int = option(3, "Number of timed passes over the split.", least=1)

    __post_init__ = flags.check

    @property
    def folders(self) -> dict[str, list[str]]:
        """Returns the folders of each method, by its name."""
        found: dict[str, list[str]] = {}
        for model in self.models:
            name, _, folders = model.partition("=")
            if not (name and folders) or name in found:
                raise InputError(f"--models: {model!r} must be NAME=FOLDER, with another name for "
                                 "each.")
            for folder in folders.split("+"):
                if not os.path.isdir(folder):
                    raise InputError(f"--models: there is no folder {folder}.")
                weights_bytes(folder, "models")
            found[name] = folders.split("+")
        return found


def measure(name: str, folder: str, job: CompressionFlags, task_flags: TaskFlags
            ) -> dict[str, Any]:
    """Measures size, weights, CPU seconds an example and score of one model.

    Each method has records of its own: its tokenizer and length may differ from the teacher's.
    """
    model = ScoredModel(folder, task_flags, os.path.join(job.output_dir, "records", name),
                        job.batch_size, "models")
    split = model.split(job.split, job.examples)
    _, seconds = split.timed(runs=job.repeats)
    return {"bytes": weights_bytes(folder), "weights": model.learner.count_params(),
            "seconds": seconds, "score": split.score(split.answer()), "metric": model.metric,
            "examples": split.size}


def summarise(runs: list[dict[str, Any]], teacher: dict[str, float], name: str) -> dict[str, Any]:
    """Returns the means over the seeds, with ratios to the teacher's means; `teacher` is {} for the
    teacher itself."""
    row: dict[str, Any] = {key: float(np.mean([run[key] for run in runs]))
                           for key in ("bytes", "weights", "seconds", "score")}
    row |= {"name": name, "seeds": len(runs), "examples": runs[0]["examples"],
            "spread": float(np.std([run["score"] for run in runs], ddof=1))
            if len(runs) > 1 else None}
    of = teacher or row
    row |= {"smaller": of["bytes"] / row["bytes"], "fewer": of["weights"] / row["weights"],
            "faster": of["seconds"] / row["seconds"],
            # A share means nothing where the teacher is no better than chance.
            "kept": 100 * row["score"] / of["score"] if of["score"] > 0 else None}
    published = PUBLISHED.get(name.partition("-")[0])
    if published and teacher:
        row |= {"published": published,
                "reaches": None if row["kept"] is None else row["kept"] >= published[1]}
    return row


def table(rows: list[dict[str, Any]], metric: str) -> str:
    """The table as Markdown."""
    lines = [f"| method | seeds | MB | smaller | weights | CPU ms an example | faster | {metric} | "
             "% kept | published: smaller, % kept, faster | reached |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        spread = "" if row["spread"] is None else f" ± {row['spread']:.1f}"
        published = "-"
        if "published" in row:
            smaller, kept, faster = row["published"]
            published = f"x{smaller:g}, {kept:g}, " + ("-" if faster is None else f"x{faster:g}")
        share = "-" if row["kept"] is None else f"{row['kept']:.1f}"
        reached = {True: "yes", False: "no", None: "-"}[row.get("reaches")]
        lines.append(
            f"| {row['name']} | {row['seeds']} | {row['bytes'] / 1e6:.1f} | "
            f"x{row['smaller']:.2f} | {row['weights'] / 1e6:.2f} M | "
            f"{1000 * row['seconds']:.2f} | x{row['faster']:.2f} | "
            f"{row['score']:.1f}{spread} | {share} | {published} | {reached} |")
    return "\n".join(lines) + "\n"


def main(task_flags: TaskFlags, job: CompressionFlags) -> None:
    """Runs the command."""
    folders = job.folders
    make_folder(job.output_dir, "output_dir")
    flags.keep(job, job.output_dir)
    results = KeptResults(os.path.join(job.output_dir, "compression.json"), {})
    rows: list[dict[str, Any]] = []
    metric = ""
    for name, of_method in folders.items():
        runs = []
        for folder in of_method:
            key = " ".join(map(str, (os.path.abspath(folder), digest(*weights_files(folder)),
                                     job.split, job.examples, job.batch_size, job.repeats,
                                     json.dumps(flags.changed(task_flags)))))
            runs.append(results.get("runs", key, measure=functools.partial(
                measure, name, folder, job, task_flags)))
            print(f"{name}: {folder}: {runs[-1]['metric']} {runs[-1]['score']:.2f}, "
                  f"{1000 * runs[-1]['seconds']:.2f} ms", flush=True)
        metric = metric or runs[0]["metric"]
        if runs[0]["metric"] != metric:
            raise InputError(f"--models: {name} is scored by {runs[0]['metric']}, the teacher by "
                             f"{metric}; give models of one task.")
        rows.append(summarise(runs, rows[0] if rows else {}, name))
    results.put("rows", rows)
    text = table(rows, metric)
    with write_aside(os.path.join(job.output_dir, "compression.md")) as file:
        file.write(text)
    print(text, end="", flush=True)


def run() -> None:
    flags.run(main, TaskFlags, CompressionFlags)


if __name__ == "__main__":
    run()
