"""A user's own files as a `Task`."""

import dataclasses
import os

from bert_tf.errors import InputError
from bert_tf.metrics import is_entity_tag
from bert_tf.tasks.task import Split, Task

FORMATS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl"}
_TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_ENTITY_METRICS = ("entity_f1", "entity_precision", "entity_recall", "tag_accuracy")
_METRICS = {"classification": ("accuracy", "macro_f1", "matthews"),
            "regression": ("pearson", "spearman"), "multiple_choice": ("accuracy",),
            "tagging": _ENTITY_METRICS, "multi_label": ("micro_f1", "macro_f1", "exact_match")}


def own_task(kind, files, texts, label, *, choices=(), labels=(), multi_label=False, header=True,
             labelled_test=False, tfds_name=None):
    """The `Task` of files that no table knows.

    Args:
        kind: classification, regression, multiple_choice or tagging.
        files: dict of split (train, dev, test) -> file, ending in .tsv, .csv or .jsonl unless it
            holds tagged words; with `tfds_name` the name of a split there, and all if it is empty.
        texts, label, choices, header: see `Split`.
        labels, multi_label: see `Task`; labels that are not given must be discovered.
        labelled_test: whether the test file has the label's column too.
        tfds_name: the data set of tensorflow_datasets.

    Raises:
        InputError: the files have another ending, or a column is missing.
    """
    if tfds_name:
        files = {split: f"{tfds_name}:{name}" for split, name in (files or _TFDS_SPLITS).items()}
    if not files:
        raise InputError("no file is named: give --train_file, --dev_file or --test_file, or one "
                         "of the tasks that have a name with --task.")
    if label is None and (labelled_test or set(files) != {"test"}):
        raise InputError("--label_column must be given: only a test file may be without labels.")
    if (kind == "multiple_choice") != bool(choices):
        raise InputError("--choice_columns must be given for a multiple choice, and only there.")
    splits = {}
    for split, file in files.items():
        has_label = split != "test" or labelled_test
        splits[split] = Split((file,), tuple(texts), label if has_label else None, tuple(choices),
                              "tfds" if tfds_name else _format(kind, file), header)
    metrics = _METRICS["multi_label" if multi_label else kind]
    return with_labels(Task("own", kind, splits, metrics=metrics, multi_label=multi_label), labels)


def with_labels(task, labels):
    """The task with these labels; tags that name no entities are scored word by word."""
    metrics = task.metrics
    if task.kind == "tagging" and labels and not any(map(is_entity_tag, labels)):
        metrics = ("tag_accuracy",)
    return dataclasses.replace(task, labels=tuple(labels), metrics=metrics)


def _format(kind, file):
    if kind == "tagging":
        return "words"
    ending = os.path.splitext(file.removesuffix(".gz"))[1].lower()
    if ending not in FORMATS:
        raise InputError(f"{file} must end in {', '.join(FORMATS)} (or that and .gz), so that its "
                         "format is known.")
    return FORMATS[ending]
