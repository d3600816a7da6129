"""Fine-tunes a model on a task or on several, scores it, and predicts.

The task decides which program this is: --task, --tasks, --task_kind, flags that only one program
has, such as --predict_file of squad, or the fine-tuned model that predicts. Its name can also be
the first argument.
"""

import contextlib
from collections.abc import Mapping

from bert_tf import checkpoints
from bert_tf.config import read_config
from bert_tf.errors import InputError
from bert_tf.tasks.named import find_task
from bert_tf.tasks.task import KINDS, SavedTask

_SQUAD = {"predict_file", "squad_style", "version_2_with_negative"}
_CLASSIFIER = {"text_a_column", "label_column", "multi_label", "tfds_name"}
_FALSE = ("false", "f", "0", "no", "n")


def choose(given: Mapping[str, str]) -> str | None:
    """Returns the name of the program for flags, a dict of values by name; None if they do not
    decide.

    Raises:
        InputError: there is no such task, or the description of a fine-tuned task is damaged.
    """
    if given.get("tasks") or "task_config_path" in given:
        return "text-to-text" if _writes_texts(given) else "multitask"
    kind = given.get("task_kind")
    if name := given.get("task") or given.get("task_name"):
        kind = find_task(name).kind.name
    if not kind and given.keys() & _SQUAD:
        kind = "span"
    if not kind and given.get("do_train", "false").lower() in _FALSE:
        kind = _saved_kind(given)
    if not kind and "choice_columns" in given:
        kind = "multiple_choice"
    if not kind and given.keys() & _CLASSIFIER:
        kind = "classification"
    if not kind and _writes_texts(given):
        kind = "text_to_text"
    if not kind:
        return None
    # A misspelt --task_kind is refused by the program.
    script = KINDS[kind].script if kind in KINDS else "run_classifier"
    return script.removeprefix("run_").replace("_", "-")


def _saved_kind(given):
    """The kind of the task that the model was fine-tuned on, or None."""
    folder = (given.get("init_checkpoint") or given.get("ensemble", "").partition(",")[0]
              or given.get("output_dir"))
    saved = SavedTask.read(folder) if folder else None
    return saved.task.kind.name if saved else None


def _writes_texts(given):
    """Whether the model is T5."""
    if _saved_kind(given) == "text_to_text":
        return True
    with contextlib.suppress(InputError):       # the program reports it
        config = (read_config(given["bert_config_file"]) if given.get("bert_config_file") else
                  checkpoints.read_config(given.get("init_checkpoint", "")))
        return config.model_type == "t5"
    return False
