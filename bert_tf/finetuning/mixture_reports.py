"""Files that a run on several tasks writes for all of them together."""

import math
import os
from collections.abc import Iterable

from bert_tf import training
from bert_tf.files import copy_file, exists, make_folder, write_aside, write_json
from bert_tf.finetuning.member import Member


def copy_submissions(member: Member, splits: Iterable[str]) -> None:
    """Copies to one folder the files that GLUE's server takes of a task's splits."""
    for split in splits:
        name = member.task.split(split).submission
        path = os.path.join(member.folder, name or "")
        if split in member.splits.test_splits and name and exists(path):
            folder = os.path.join(member.settings.output_dir, "submission")
            make_folder(folder, "output_dir")
            copy_file(path, os.path.join(folder, name))
            print(f"wrote {os.path.join(folder, name)}", flush=True)


def write_scores(run, scores: dict[str, float]) -> None:
    """Writes scores of a `FineTuneRun`'s tasks, and of training the curves and best epochs."""
    folder = run.settings.output_dir
    if any(member.splits.eval_splits for member in run.members):
        scores = {"average": run.average(scores), **scores}
    described = {"headlines": {m.name: m.headline for m in run.members}, "metrics": scores}
    if run.flags.do_train:
        described["best_epochs"] = _write_curves(run)
    for name, value in scores.items():
        print(f"{name} = {value:.4f}", flush=True)
    write_json(os.path.join(folder, "metrics.json"), described)
    training.write_eval_results(folder, scores)


def _write_curves(run):
    """Writes a line per epoch with the headline of each task; returns the best epoch of each."""
    columns = {"average": "average", **{m.name: m.headline for m in run.members}}
    lines = training.read_metrics(run.settings.output_dir, "eval")
    with write_aside(os.path.join(run.settings.output_dir, "dev_curves.tsv")) as file:
        file.write("\t".join(["epoch", "step", *columns]) + "\n")
        file.writelines("\t".join([f"{line['step'] / run.epoch_steps:g}", str(line["step"]), *(
            f"{line[name]:.4f}" for name in columns.values())]) + "\n" for line in lines)
    best = {}
    for name, column in columns.items():
        values = [-math.inf if math.isnan(line[column]) else line[column] for line in lines]
        index = max(range(len(lines)), key=values.__getitem__)
        best[name] = {"epoch": lines[index]["step"] / run.epoch_steps, "score": values[index]}
        print(f"best epoch of {name}: {best[name]['epoch']:g} ({values[index]:.4f})", flush=True)
    return best
