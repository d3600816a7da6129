"""What the scripts that fine-tune write beside a model: its task, its vocabulary and its scores."""

import os
import shutil

from bert_tf.files import write_aside, write_json
from bert_tf.tasks.saved import SavedTask


def save_task(folder, task, model, **options):
    """Writes what the model in a folder must be told with: `task.json` and `vocab.txt`.

    Args:
        folder: where the model will stand.
        task: its `Task`.
        model: the `Model` that training begins with.
        options: see `SavedTask`.
    """
    SavedTask(task, model.max_seq_length, model.tokenizer.do_lower_case, options).write(folder)
    target = os.path.join(folder, "vocab.txt")
    if os.path.abspath(model.vocab_file) != os.path.abspath(target):
        shutil.copyfile(model.vocab_file, target)


def write_scores(folder, scores, **description):
    """Prints scores, and writes them as `metrics.json` and as the original's `eval_results.txt`.

    Args:
        folder: where to.
        scores: dict of number by name, the headline first.
        description: what else `metrics.json` says: `task`, `headline` and the like.
    """
    for name, value in scores.items():
        print(f"{name} = {value:.4f}", flush=True)
    write_json(os.path.join(folder, "metrics.json"), {**description, "metrics": scores})
    with write_aside(os.path.join(folder, "eval_results.txt")) as file:
        file.writelines(f"{name.replace('/', '_')} = {value}\n"
                        for name, value in sorted(scores.items()))
