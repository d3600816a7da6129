"""The only task of a fine-tuning run: its flags, its files and its model are checked before work
starts.
"""

import dataclasses
import functools

from bert_tf.checkpoints.task_heads import tasks_beside, with_head_of
from bert_tf.errors import InputError
from bert_tf.finetuning.head_masks import masked_heads
from bert_tf.finetuning.kept_head import find_head
from bert_tf.finetuning.member import Member
from bert_tf.finetuning.model import (
    ModelFlags,
    check_directions,
    check_smoothing,
    check_style,
    check_task,
    class_weights,
    open_encoder,
    reader_options,
)
from bert_tf.opening import folder_of
from bert_tf.tasks.saved_task import TASK_FILE, SavedTask
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.task import OWN, Task
from bert_tf.tasks.task_flags import OF_NUMBERS, FileFlags, SquadFlags
from bert_tf.training.settings import FineTuneSettings


def plan_task(task_flags: FileFlags | SquadFlags, model_flags: ModelFlags,
              settings: FineTuneSettings, options: dict) -> Member:
    """The only task of a run, after all was checked that can be known before work starts.

    Args:
        options: dict of more options of the input and of the head, which are kept with the model;
            None where a flag is not given.

    Raises:
        InputError: anything is wrong with them.
    """
    task = task_flags.read_task(_kind_of_model(model_flags, settings))
    options = {**{name: getattr(task_flags, name) for name in task.kind.input_options}, **options}
    if model_flags.do_train:
        check_has_training_set(task)
    model_flags.check(settings)
    model, model_flags = _open_model(task, task_flags, model_flags, settings, options)
    if model.saved:
        task = as_trained(task, model.saved, model.path, task_flags.names_kind)
    elif not model_flags.do_train:
        task = _as_named(task, model)
    options = task.kind.options(options, _saved_options(model, model_flags), model_flags.do_train,
                                model.path)
    options |= reader_options(model_flags, model)
    masked_heads(model_flags, model.config)
    check_directions(model, options)
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
    check_smoothing(settings, task)
    weights = class_weights(settings.class_weights, task)
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


def with_begun(task: Task, options: dict, source: Source, begun: SavedTask | None) -> dict:
    """The options of a new head with those that fit it to the training examples of a `Source`. A
    run that was `begun` keeps its own."""
    if begun is None:
        return task.kind.fitted(options, source)
    fitting = {name: begun.options[name] for name in OF_NUMBERS if name in begun.options}
    return {**options, **{name: value for name, value in fitting.items()
                          if options.get(name) is None}}


def check_has_training_set(task: Task) -> None:
    """Raises InputError for a task that the model of another task answers."""
    if task.model_of:
        raise InputError(f"{task.name} has no training set; train with --task={task.model_of}, "
                         f"then give the model as --init_checkpoint to score --task={task.name}.")


def _saved_options(model, model_flags):
    """The options that the model was trained with; for a new head without those of numbers."""
    saved = model.saved.options if model.saved else {}
    is_new = model_flags.do_train and not model_flags.keep_head
    return {name: value for name, value in saved.items()
            if not (is_new and name in OF_NUMBERS)}


def _kind_of_model(model_flags, settings):
    """The name of the kind of task that the model was fine-tuned for, if its head is used; else ""
    """
    folder = model_flags.init_checkpoint or settings.output_dir
    uses_head = model_flags.keep_head or not model_flags.do_train
    saved = SavedTask.read(folder_of(folder)) if uses_head else None
    return saved.task.kind.name if saved else ""


def as_trained(task: Task, saved: SavedTask, path: str, is_named: bool,
               flag: str = "init_checkpoint") -> Task:
    """The task with the kind and the labels of a fine-tuned model.

    Args:
        saved, path: of the model.
        is_named: whether a flag decides the kind.
        flag: the model's flag, for messages.

    Raises:
        InputError: the model has another kind, or other labels.
    """
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
    return task.kind.with_labels(task, known)


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
