"""Named tasks whose examples are rows of a library's data set in place of official files, as GLUE's
in tensorflow_datasets and on the Hugging Face Hub."""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.tasks.libraries import HUB, TFDS, has_configuration, is_library_name, pinned_name
from bert_tf.tasks.task import Split, Task

_PREMISE = ("premise", "hypothesis")
# Where columns have other names than in the official files.
_TEXTS = {"cola": ("sentence",), "mrpc": ("sentence1", "sentence2"),
          **dict.fromkeys(("mnli", "ax", "snli", "scitail", "xnli"), _PREMISE)}
_OF_LANGUAGES = ("xnli", "paws-x")      # a configuration for each language
# Data sets with a configuration for each task, and where it has another name than the task.
_SUITES = ("glue", "super_glue")
_CONFIGURATIONS = {"sst-2": "sst2", "sts-b": "stsb", "ax-b": "axb", "ax-g": "axg",
                   "superglue-rte": "rte", "wnli-ranking": "wnli", "wsc-ranking": "wsc"}
# Further names of classes, and the labels of the official files.
_CLASSES = {"paws-x": {"different_meaning": "0"}}
_ALONE = ("race", "swag", "conll2003", "snli", "scitail", "imdb", "nsmc", *_OF_LANGUAGES)
# Dev sets with another name than validation; where there is none, the test set is read.
_DEV = dict.fromkeys(("imdb", "nsmc"), "test")
# Tasks that tensorflow_datasets lacks, or has in another form.
_HUB_ALONE = {"conll2003", "nsmc", "race", "squad", "squad_v2", "swag", "triviaqa", *_OF_LANGUAGES}
# Tasks that are separate data sets next to the data set that --data_dir names.
_SQUAD = {"squad": "v1.1", "squad_v2": "v2.0"}
# Tasks that SuperGLUE's tasks may begin with.
_BEFORE_SUPER_GLUE = {"mnli": f"{HUB}nyu-mll/glue/mnli", "swag": f"{HUB}allenai/swag/regular"}
_TRIVIA_QA = f"{HUB}mandarjoshi/trivia_qa/rc.wikipedia"
# Formats whose columns a library renames; lines of others are made of its rows.
_TABLES = ("tsv", "csv", "folders")


def placed(task: Task, data_dir: str) -> Task:
    """Returns a task with the splits of a data set where `data_dir` names one and has no official
    files; else the task as it is.

    Raises:
        InputError: the library has no such rows of the task.
    """
    if not is_library_name(data_dir) or any(task.has_file(data_dir, name) for name in task.splits):
        return task
    if data_dir.startswith(TFDS) and _group(task) in _HUB_ALONE:
        raise InputError(f"--data_dir: {task.name} is not read from tensorflow_datasets; name the "
                         f"data set of the Hub, {HUB}OWNER/NAME, or the folder of the official "
                         "files.")
    if _last_name(data_dir) in _SUITES and _group(task) not in _ALONE:
        data_dir = configuration(data_dir, task)
    splits = {name: split for name, layout in task.splits.items()
              if (split := _split(task, name, layout, data_dir))}
    if not splits or not (task.model_of or "train" in splits):
        raise InputError(f"--data_dir: {data_dir} has no examples of {task.name}; give the folder "
                         "of its official files, or leave the task out.")
    return dataclasses.replace(task, splits=splits)


def with_rows(task: Task, name: str) -> Task:
    """Returns a task whose splits have the layout of rows where a split's file is named as a
    library's data set; else the task as it is."""
    if not is_library_name(name):
        return task
    return dataclasses.replace(task, splits={
        split: _split(task, split, layout, name) or layout
        for split, layout in task.splits.items()})


def configuration(data_dir: str, task: Task) -> str:
    """The name of a task's data set, in a suite of configurations or of several sets."""
    version = _SQUAD.get(pinned_name(data_dir))
    if task.name == "triviaqa":
        return _TRIVIA_QA
    if _last_name(data_dir) == "super_glue" and task.name in _BEFORE_SUPER_GLUE:
        return _BEFORE_SUPER_GLUE[task.name]
    if version not in (None, _SQUAD.get(task.name, version)):
        raise InputError(f"--data_dir: {data_dir} is version {version} of SQuAD, but {task.name} "
                         f"needs {_SQUAD[task.name]}; name the set without a version or a "
                         "revision, or leave the task out.")
    if _group(task) in _ALONE or has_configuration(data_dir):
        return data_dir
    if task.name not in _SQUAD:
        return f"{data_dir}/{_CONFIGURATIONS.get(task.name, task.name)}"
    if "@" in data_dir:
        return data_dir
    base = data_dir.removesuffix("_v2")         # the Hub's two sets
    return base if task.name == "squad" else f"{base}_v2"


def _split(task, name, layout, data_dir) -> Split | None:
    """The split of a library; None if the library lacks it."""
    group = _group(task)
    part, _, rest = name.partition("_")
    if task.model_of and layout.label is not None:
        if layout.format in _TABLES:
            return None     # the labels of AX, and translations of test sets, are in files alone
        part = "test"
    elif part == "dev":
        part = _DEV.get(group, "validation")
    if group in _OF_LANGUAGES:
        language = rest or task.name.removeprefix(group).removeprefix("-") or "en"
        return _layout(task, layout, f"{data_dir}/{language}:{part}")
    return _layout(task, layout, f"{data_dir}:{part}" + (f"_{rest}" if rest else ""))


def _layout(task, layout, file):
    """The layout of a library's rows, or of the lines that are made of them."""
    if layout.format not in _TABLES:
        return dataclasses.replace(layout, files=(file,))
    # A class has a name there where official files have a number; -1 is not a label.
    names = dict(zip(task.label_names, task.labels)) | _CLASSES.get(_group(task), {})
    words = [("label", *pair) for pair in names.items()]
    if task.without_label:
        words.append(("label", -1, task.without_label))
    return dataclasses.replace(
        layout, files=(file,), format="library", only=(),
        texts=_TEXTS.get(_group(task), layout.texts), words=(*layout.words, *words),
        label=None if layout.label is None else "label")


def _last_name(data_dir):
    """Returns the name of a data set without its library, owner and version."""
    return data_dir.rpartition(":")[2].rpartition("/")[2].partition("@")[0]


def _group(task):
    return task.folder_of if task.folder_of in _OF_LANGUAGES else task.name
