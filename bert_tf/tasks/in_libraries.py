"""Named tasks whose examples are rows of a library's data set in place of official files, as GLUE's
in tensorflow_datasets and on the Hugging Face Hub."""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.tasks.libraries import TFDS, is_library_name
from bert_tf.tasks.task import Task

_PREMISE = ("premise", "hypothesis")
# Where columns have other names than in the official files.
_TEXTS = {"cola": ("sentence",), "mrpc": ("sentence1", "sentence2"),
          **dict.fromkeys(("mnli", "ax", "snli", "scitail", "xnli"), _PREMISE)}
_OF_LANGUAGES = ("xnli", "paws-x")      # a configuration for each language
_CONFIGURATIONS = {"sst-2": "sst2", "sts-b": "stsb", "ax-b": "axb", "ax-g": "axg",
                   "superglue-rte": "rte", "wnli-ranking": "wnli"}
_BY_ROWS = ("tsv", "csv", "jsonl")


def placed(task: Task, data_dir: str) -> Task:
    """Returns a task with the splits of a data set where `data_dir` names one and has no official
    files; else the task as it is.

    Raises:
        InputError: the library has no such rows of the task.
    """
    if not is_library_name(data_dir) or any(task.has_file(data_dir, name) for name in task.splits):
        return task
    known = {name: layout for name, layout in task.splits.items()
             if layout.format in _BY_ROWS
             # The labels of diagnostic sets, and translations of test sets, are in files alone.
             and not (task.model_of and layout.label is not None)}
    if not known or _group(task) == "xnli" and data_dir.startswith(TFDS):
        raise InputError(f"--data_dir: {task.name} can't be read from {data_dir}; give the folder "
                         "of its official files.")
    return dataclasses.replace(task, splits={
        name: _split(task, name, layout, data_dir) for name, layout in known.items()})


def configuration(data_dir: str, task: Task) -> str:
    """Returns the name of a task's data set, in a suite that is a data set with configurations."""
    if _group(task) in _OF_LANGUAGES:
        return data_dir
    return f"{data_dir}/{_CONFIGURATIONS.get(task.name, task.name)}"


def _split(task, name, layout, data_dir):
    part, _, rest = name.partition("_")
    if _group(task) in _OF_LANGUAGES:
        own = task.name.removeprefix(_group(task)).removeprefix("-") or "en"
        data_dir, rest = f"{data_dir}/{rest or own}", ""
    part = {"dev": "validation"}.get(part, part) + (f"_{rest}" if rest else "")
    # A class has a name there where official files have a number; -1 is no label.
    names = dict(zip(task.label_names, task.labels)) | {
        choice: str(number) for number, choice in enumerate(layout.choices)}
    words = [("label", *pair) for pair in names.items()]
    if task.without_label:
        words.append(("label", -1, task.without_label))
    return dataclasses.replace(
        layout, files=(f"{data_dir}:{part}",), format="library", only=(),
        texts=_TEXTS.get(_group(task), layout.texts), words=(*layout.words, *words),
        label=None if layout.label is None else "label")


def _group(task):
    return task.folder_of if task.folder_of in _OF_LANGUAGES else task.name
