"""Defaults of a fine-tuning run that the model decides which it begins with."""

import contextlib
from collections.abc import Mapping
from typing import Any

from bert_tf import checkpoints, finetuning_defaults
from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.opening import folder_of
from bert_tf.tasks.named import OF_SUITES, SQUAD, find_questions, find_task
from bert_tf.tasks.saved_task import SavedTask

# Flags that set the number of steps in another way; a paper's number of steps is then not used.
_STEPS = ("num_train_steps", "num_train_epochs", "train_batch_size", "grid")
# Options that a model keeps when its head is trained further.
_OF_HEAD = ("max_seq_length", "squad_style", "label_scale", "label_mean", "max_qa_length",
            "carry_choices")
_WARMUP = ("num_warmup_steps", "warmup_proportion")


def config_of(given: Mapping[str, Any]) -> Sizes:
    """The configuration of the model that flags name."""
    file = given.get("bert_config_file")
    if file:
        return checkpoints.read_config_file(file)
    return checkpoints.read_config(given.get("init_checkpoint", ""))


def named_defaults(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The defaults for the task that --task names, or for files of a user: what they follow, and
    the values by flag. `given` are the flags on the command line; `flags.run` calls this."""
    return _defaults(given, lambda: find_task(given["task"]).name if given.get("task") else "")


def squad_defaults(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The defaults for a version of SQuAD; see `named_defaults`."""
    has_negatives = (given.get("version_2_with_negative")
                     or find_questions(given.get("task", "")) is SQUAD[True])
    return _defaults(given, lambda: SQUAD[bool(has_negatives)].name)


def _may_keep(given, name):
    """Whether the model was fine-tuned for a task with the labels of the task `name`, or, if it is
    a task of the user, for any."""
    path = given.get("init_checkpoint")
    saved = SavedTask.read(folder_of(path)) if path else None
    if not saved or not name:
        return bool(saved)
    task, trained = OF_SUITES[name], saved.task
    return (task.labels, task.label_names or trained.label_names) == (
        trained.labels, trained.label_names or task.label_names)


def _defaults(given, task_of):
    # The papers train the encoder, but with --feature_layers it is not trained.
    if not given.get("do_train") or given.get("feature_layers"):
        return "", {}
    values: dict[str, Any] = {}
    with contextlib.suppress(InputError):       # `main` reports it, after the other flags
        config = config_of(given)
        values = dict(finetuning_defaults.find(config, task_of()))
        # 0 steps mean that a flag is not given; a warm-up of 0 is one.
        has_steps = any(given.get(name) for name in _STEPS)
        if has_steps:
            values.pop("num_train_steps", None)
        if has_steps or any(given.get(name) is not None for name in _WARMUP):
            values.pop("num_warmup_steps", None)
        if given.get("keep_head", _may_keep(given, task_of())):
            for name in _OF_HEAD:
                values.pop(name, None)
    return (f"fine-tuning of {config.model_type}", values) if values else ("", {})
