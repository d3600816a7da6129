"""Whether fine-tuning goes on with the head of a fine-tuned model, or begins with a new one."""

import contextlib
import dataclasses
from typing import Any

from bert_tf.errors import InputError
from bert_tf.finetuning.model import ModelFlags
from bert_tf.opening import Model, task_of_labels
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.label_range import is_reached
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.tag_schemes import scheme_of
from bert_tf.tasks.task import Task
from bert_tf.training.settings import FineTuneSettings

# Options where no flag is not the same as the flag of the training: the encoder's training depends
# on them too.
_DECIDED = ("head", "feature_layers")
_DEFAULTS = {"head": "linear", "bilstm_size": 0, "label_scale": 1, "version_2_with_negative": False,
             "squad_style": "bert"}
_SHOWN = 5      # labels in a message


def find_head(model: Model, task: Task, task_flags: Any, flags: ModelFlags,
              settings: FineTuneSettings, options: dict) -> SavedTask | None:
    """The task of the model whose head is trained further; None for a new head. Unless --keep_head
    decides, the head of the same kind and labels is kept, and one line says what happens.

    Args:
        model: the model to begin with.
        task: to be learned; `task_flags` describe its files.
        options: of the head, None where a flag is not given.
    """
    saved = model.saved or _of_huggingface(model, task)
    if flags.keep_head is not None:
        return saved if flags.keep_head else None
    if saved is None or task.kind.keeps_head:
        return None
    reason = _obstacle(model, saved, task, task_flags, {**options,
                                                        "bilstm_size": flags.bilstm_size})
    if reason:
        print(f"a new head is trained, since {reason}", flush=True)
        return None
    seeds = ""
    if len(settings.trials()) > 1:
        seeds = ("; all trials begin with it, so their seeds decide only the order of the examples "
                 "and dropout")
    what = f"for {saved.task.kind.title}"
    if saved.task.labels:
        what = f"with the labels {_list(saved.task.labels)}"
    if saved.options.get("label_mean"):
        what += f" of numbers around {saved.options['label_mean']:.6g}"
    print(f"the head of {model.path}, {what}, is trained further{seeds} (--keep_head=False begins "
          "with a new head)", flush=True)
    return saved


def _of_huggingface(model, task):
    """The task that the labels in a config.json describe, of a length that is not decided. If they
    are the names of the task's labels, they become those labels."""
    saved = None
    with contextlib.suppress(InputError):       # of a head that is not one of ours
        saved = task_of_labels(model.path)
    if not saved:
        return None
    labels, numbers = saved.task.labels, dict(zip(task.label_names, task.labels))
    if labels and set(labels) == set(numbers):
        labels = tuple(numbers[label] for label in labels)
    return dataclasses.replace(saved, max_seq_length=0,
                               task=dataclasses.replace(saved.task, labels=labels))


def _obstacle(model, saved, task, task_flags, options):
    """Why the head of a model can't be trained for a task; "" if it can."""
    path = model.path
    if task.kind != saved.task.kind:
        is_open = saved.task.kind.job == task.kind.job and not task_flags.names_kind
        advice = f" (--task_kind={saved.task.kind.name} trains its head further)" * is_open
        return f"{path} is a model for {saved.task.kind.title}, not for {task.kind.title}{advice}"
    head = saved.task.kind.head(saved.task, saved.options)[0]
    if head not in model.weights.heads:
        return f"{model.weights.source} does not hold the head of its task"
    for name in saved.task.kind.head_options:
        default = _DEFAULTS.get(name)
        value, known = options.get(name, default), saved.options.get(name, default)
        if name in _DECIDED:
            value = value or default
        elif value is None:
            continue        # as in training
        if value != known:
            return f"{path} was trained with --{name}={known}, not {value}"
    if task.kind == KINDS["regression"] and not is_reached(saved.options, (
            example.label for example in _training_set(task, task_flags, saved).examples())):
        return f"the labels are far from the numbers that {path} was trained on"
    labels = task.labels or (
        task.kind.has_labels and _training_set(task, task_flags, saved).task.labels)
    names, known = task.label_names, saved.task.label_names
    if names and known and set(names) != set(known):      # what the numbers of two tasks mean
        return f"{path} knows the labels {_list(known)}, and here are {_list(names)}"
    if task.labels:
        fits = task.kind.fits_labels(labels, saved.task.labels)
    else:
        fits = not labels or set(labels) == set(saved.task.labels)
    if not fits:
        return f"{path} knows the labels {_list(saved.task.labels)}, and here are {_list(labels)}"
    return ""


def _training_set(task, task_flags, saved):
    """The `Source` to train on with its labels, tags in the scheme that the model has learned."""
    if task_flags.tag_scheme is None and task.kind == KINDS["tagging"]:
        task_flags = dataclasses.replace(task_flags, tag_scheme=scheme_of(saved.task.labels))
    return task_flags.find(task, True, False, False).sources["train"]


def _list(labels):
    more = f" and {len(labels) - _SHOWN} more" * (len(labels) > _SHOWN)
    return ", ".join(map(str, labels[:_SHOWN])) + more
