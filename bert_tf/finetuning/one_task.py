"""The only task of a run: its flags, its files and its model are checked before work starts."""

import dataclasses
import functools
import math
from typing import Any

from bert_tf.checkpoints.names import tasks_beside, with_head_of
from bert_tf.errors import InputError, listed
from bert_tf.finetuning.member import Member
from bert_tf.finetuning.model import ModelFlags, check_task, masked_heads, open_encoder
from bert_tf.opening import Model, check_regression, folder_of, task_of_labels
from bert_tf.tasks.kinds.sentence import is_reached
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.saved_task import TASK_FILE, SavedTask
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.tag_schemes import scheme_of
from bert_tf.tasks.task import OWN, Task
from bert_tf.tasks.task_flags import OF_NUMBERS, FileFlags, SquadFlags
from bert_tf.training.settings import FineTuneSettings

# Options where no flag is not the same as the flag of the training: the encoder's training depends
# on them too.
_DECIDED = ("head", "feature_layers")
_DEFAULTS = {"head": "linear", "bilstm_size": 0, "label_scale": 1, "version_2_with_negative": False,
             "squad_style": "bert"}
BALANCED = "balanced"


def plan_task(task_flags: FileFlags | SquadFlags, model_flags: ModelFlags,
              settings: FineTuneSettings, options: dict, taught: Task | None = None) -> Member:
    """The only task of a run, after all was checked that can be known before work starts.
    `options`: dict of more options of the input and of the head, which are kept with the model;
    None where a flag is not given. `taught`: a teacher's task, whose values labels have in answers.
    Raises InputError if anything is wrong with them."""
    saved = None
    if model_flags.keep_head or not model_flags.do_train:       # the model's head is used
        saved = SavedTask.read(folder_of(model_flags.init_checkpoint or settings.output_dir))
    if saved and isinstance(task_flags, FileFlags):
        task_flags = task_flags.with_columns(saved.columns)
    task = task_flags.read_task(saved.task.kind.name if saved else "")
    options = {**{name: getattr(task_flags, name) for name in task.kind.input_options}, **options}
    if model_flags.do_train:
        check_has_training_set(task)
    model_flags.check(settings)
    model, model_flags = _open_model(task, task_flags, model_flags, settings, options)
    if model.saved:
        task = as_trained(task, model.saved, model.path, task_flags.names_kind)
    elif not model_flags.do_train:
        task = _as_named(task, model)
    if taught:
        task = task.answering_as(taught)
    kept = dict(getattr(model.saved, "options", {}))
    if model_flags.do_train and not model_flags.keep_head:
        for name in OF_NUMBERS:     # which are fitted to the numbers of another file
            kept.pop(name, None)
    options = task.kind.options(options, kept, model_flags.do_train, model.path)
    options |= reader_options(model_flags, model)
    masked_heads(model_flags, model.config)
    if model.config.is_causal and options.get("version_2_with_negative") and not options.get(
            "bilstm_size"):
        raise InputError("with --version_2_with_negative the first token decides whether there is "
                         "an answer, but in a left-to-right model the first token sees no other; "
                         "give --bilstm_size too.")
    if model_flags.do_train:
        check_style(model, options)
    task.kind.check_options(options, model.max_seq_length, model.tokenizer)
    splits = task_flags.find(task_flags.with_options(task, options), model_flags.do_train,
                             model_flags.do_eval, model_flags.do_predict)
    task = next(iter(splits.sources.values())).task     # with its labels
    if task.kind.has_labels and not task.labels:
        raise InputError(f"there is no {TASK_FILE} beside {model.path}, so its labels are not "
                         "known; name a model that bert_tf fine-tuned, or give its --labels in "
                         "their order.")
    if model_flags.do_train and not (model_flags.keep_head and model.saved):
        options = with_begun(task, options, splits.sources["train"],
                             SavedTask.read(settings.output_dir))
    weights = class_weights(settings, task)
    if model_flags.do_train:
        check_task(settings.output_dir, task, model, task.kind.fixed_options(options))
    member = Member(task, model, options, splits, model_flags, settings, weights)
    if model.saved and not model_flags.do_train:
        for split in member.predicted_splits:
            model.saved.check_texts(task.kind.num_texts(task, split), splits.sources[split].path)
    return member


def _open_model(task, task_flags, model_flags, settings, options):
    """Returns the model to begin with, and its flags with a `keep_head` that is decided."""
    beside = model_flags.keep_head is None and task.name in tasks_beside(
        model_flags.init_checkpoint)
    if model_flags.keep_head or beside or not model_flags.do_train:
        model_flags = dataclasses.replace(model_flags, init_checkpoint=with_head_of(
            model_flags.init_checkpoint, task.name))
    model = open_encoder(
        model_flags, settings.output_dir, task.defaults.max_seq_length, find_head=functools.partial(
            find_head, task=task, task_flags=task_flags, flags=model_flags, settings=settings,
            options=options))
    if model_flags.do_train:
        model_flags = dataclasses.replace(
            model_flags, keep_head=bool(model_flags.keep_head or model.saved))
    return model, model_flags


def reader_options(flags: ModelFlags, model: Model) -> dict:
    """The options of the LSTM between the model and the head; {} without an LSTM. Raises InputError
    if the head to begin with was trained with another LSTM."""
    saved = model.saved and model.saved.options.get("bilstm_size", 0)
    size = next((size for size in (flags.bilstm_size, saved) if size is not None), 0)
    if saved not in (None, size):
        raise InputError(f"{model.path} was trained with --bilstm_size={saved}, not {size}: leave "
                         "the flag out.")
    return {"bilstm_size": size} if size else {}


def check_style(model: Model, options: dict) -> None:
    """Raises InputError if a head for questions needs [CLS] where the model does not have it."""
    style, is_last = options.get("squad_style"), model.tokenizer.vocabulary.layout.cls_last
    if style == "xlnet" and not is_last:
        raise InputError("--squad_style=xlnet is for models whose class token is the last token, "
                         "as XLNet's, and here it is the first; give another --squad_style.")
    if is_last and (style == "electra" or
                    style == "albert" and options.get("version_2_with_negative")):
        raise InputError(f"--squad_style={style} is for models whose class token is the first "
                         "token, and here it is the last; give --squad_style=xlnet or bert.")


def class_weights(settings: FineTuneSettings, task: Task) -> str | list[float] | None:
    """The weights of labels that --class_weights gives: None, a number for each label, or BALANCED.
    Raises InputError if they are not as many as the labels, or they are not weights; or if labels
    are to be smoothed in a task that has none."""
    if settings.label_smoothing and not task.kind.smooths:
        raise InputError(f"--label_smoothing is for labels, and the task {task.name} has none; "
                         "leave the flag out.")
    flag = settings.class_weights
    if not flag or flag == [BALANCED] and task.has_classes:
        return next(iter(flag), None)
    if not task.has_classes:
        raise InputError(f"--class_weights is for labels, and the task {task.name} has none; leave "
                         "the flag out.")
    try:
        weights = [float(value) for value in flag]
    except ValueError:
        weights = []
    if len(weights) != len(task.labels) or not (
            any(weights) and all(0 <= weight < math.inf for weight in weights)):
        raise InputError(f"--class_weights={','.join(flag)}: give {BALANCED}, or a number of at "
                         f"least 0 for each label ({', '.join(task.labels)}), and not 0 for all.")
    print("weights of labels in the loss: " + ", ".join(    # their order is not that of the file
        f"{label} {weight:g}" for label, weight in zip(task.labels, weights)), flush=True)
    return weights


def with_begun(task: Task, options: dict, source: Source, begun: SavedTask | None) -> dict:
    """The options of a new head with those that fit it to the training examples of a `Source`. A
    run that was `begun` keeps its own."""
    if begun is None:
        return task.kind.fitted(options, source)
    return {**options, **{name: begun.options[name] for name in OF_NUMBERS
                          if name in begun.options and options.get(name) is None}}


def check_has_training_set(task: Task) -> None:
    """Raises InputError for a task that the model of another task answers."""
    if task.model_of:
        raise InputError(f"{task.name} has no training set; train with --task={task.model_of}, "
                         f"then give the model as --init_checkpoint to score --task={task.name}.")


def as_trained(task: Task, saved: SavedTask, path: str, is_named: bool,
               flag: str = "init_checkpoint") -> Task:
    """The task with the kind and the labels of a fine-tuned model. Raises InputError if the model
    has another kind, or other labels. `is_named`: whether a flag decides the kind; `flag`: the
    model's, for messages."""
    if not is_named and saved.task.kind.job == task.kind.job and saved.task.kind != task.kind:
        task = dataclasses.replace(task, kind=saved.task.kind, metrics=saved.task.metrics)
    if saved.task.kind != task.kind:
        raise InputError(f"{path} is a model for {saved.task.kind.title}, not for "
                         f"{task.kind.title}; name another --{flag}.")
    known = saved.task.labels
    if task.labels and not task.kind.fits_labels(task.labels, known):
        how = ", the same in another order" if set(task.labels) == set(known) else ""
        name = "--labels" if task.name == OWN else task.name
        raise InputError(f"{path} knows the labels {', '.join(known)}, but {name} has "
                         f"{', '.join(task.labels)}{how}; name another --{flag}.")
    return task.kind.with_labels(task, known).answering_as(saved.task)


def _as_named(task, model):
    """The task with its labels in the order of the model's config.json, which must be its own."""
    known = model.weights.labels
    if not (task.kind.has_labels and task.kind.labels_are_classes) or known == tuple(
            f"LABEL_{number}" for number in range(len(known))):     # default names
        return task
    if not task.labels:
        return task.kind.with_labels(task, known)
    for names in (task.labels, task.label_names):
        places = {_plain(name): place for place, name in enumerate(names)}
        order = [places.get(_plain(label), -1) for label in known]
        if sorted(order) != list(range(len(names))):
            continue
        if order != sorted(order) and "f1" in task.metrics:
            raise InputError(f"{model.path} has its labels in the order {', '.join(known)}, but "
                             f"the F1 of {task.name} needs {', '.join(names)}; score it on a file "
                             "of your own, with --dev_file and --label_column.")
        return dataclasses.replace(task, **{field: tuple(getattr(task, field)[at] for at in order)
                                            for field in ("labels", "label_names")
                                            if getattr(task, field)})
    if task.name == OWN or known == tuple(map(str, range(len(known)))):     # --labels decides
        return task
    raise InputError(f"{model.path} knows the labels {', '.join(known)}, but {task.name} has "
                     f"{', '.join(task.labels)}; name another --init_checkpoint.")


def _plain(label):
    return label.casefold().replace("-", "_").replace(" ", "_")


def find_head(model: Model, task: Task, task_flags: Any, flags: ModelFlags,
              settings: FineTuneSettings, options: dict) -> SavedTask | None:
    """The task of the model whose head is trained further; None for a new head. Unless --keep_head
    decides, the head of the same kind and labels is kept, and one line says what happens.
    `options`: of the head, None where a flag is not given."""
    saved = model.saved or _of_huggingface(model, task)
    if flags.keep_head and task.kind.name == "regression" and model.weights:
        check_regression(model.weights)
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
        what = f"with the labels {listed(saved.task.labels)}"
    if saved.options.get("label_mean"):
        what += f" of numbers around {saved.options['label_mean']:.6g}"
    print(f"the head of {model.path}, {what}, is trained further{seeds} (--keep_head=False begins "
          "with a new head)", flush=True)
    return saved


def _of_huggingface(model, task):
    """The task that the labels in a config.json describe, of a length that is not decided. If they
    are the names of the task's labels, they become those labels."""
    saved = task_of_labels(model.path)
    if not saved:
        return None
    labels, numbers = saved.task.labels, dict(zip(task.label_names, task.labels))
    if labels and set(labels) == set(numbers):
        labels = tuple(numbers[label] for label in labels)
    return dataclasses.replace(saved, max_seq_length=0,
                               task=dataclasses.replace(saved.task, labels=labels))


def _obstacle(model, saved, task, task_flags, options):
    path = model.path
    if task.kind != saved.task.kind:
        is_open = saved.task.kind.job == task.kind.job and not task_flags.names_kind
        advice = f" (--task_kind={saved.task.kind.name} trains its head further)" if is_open else ""
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
        return f"{path} knows the labels {listed(known)}, and here are {listed(names)}"
    if task.labels:
        fits = task.kind.fits_labels(labels, saved.task.labels)
    else:
        fits = not labels or set(labels) == set(saved.task.labels)
    if not fits:
        return f"{path} knows the labels {listed(saved.task.labels)}, and here are {listed(labels)}"
    return ""


def _training_set(task, task_flags, saved):
    if task_flags.tag_scheme is None and task.kind == KINDS["tagging"]:
        task_flags = dataclasses.replace(task_flags, tag_scheme=scheme_of(saved.task.labels))
    return task_flags.find(task, True, False, False).sources["train"]
