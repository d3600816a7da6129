"""What the scripts that fine-tune write beside a model: its task, its vocabulary and its scores."""

import os
import shutil

from bert_tf.checkpoints.rules import VOCABULARY
from bert_tf.errors import InputError
from bert_tf.files import replace_aside, write_json
from bert_tf.tasks.saved import TASK_FILE, SavedTask
from bert_tf.training.reporting import write_eval_results


def check_task(folder, task, model, **options):
    """Raises InputError if a model of another task stands in a folder.

    Args:
        folder, task, model, options: see `save_task`.
    """
    saved = SavedTask.read(folder)
    if saved and not (options.items() <= saved.options.items() and saved.is_of(
            task, model.max_seq_length, model.tokenizer.do_lower_case)):
        others = " or ".join(f"--{name}" for name in ("max_seq_length", "do_lower_case", *options))
        raise InputError(f"--output_dir: {os.path.join(folder, TASK_FILE)} is of another task, "
                         f"other labels, another {others}; name another folder, or remove it.")


def save_task(folder, task, model, **options):
    """Writes what the model in a folder must be told with: `task.json` and `vocab.txt`.

    Args:
        folder: where the model will stand.
        task: its `Task`.
        model: the `Model` that training begins with.
        options: see `SavedTask`.
    """
    SavedTask(task, model.max_seq_length, model.tokenizer.do_lower_case, options).write(folder)
    target = os.path.join(folder, VOCABULARY)
    if os.path.abspath(model.vocab_file) != os.path.abspath(target):
        with replace_aside(target) as aside:
            shutil.copyfile(model.vocab_file, aside)


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
    write_eval_results(folder, scores)
