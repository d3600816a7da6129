"""A task and the interface of its kind. Readers, records, scripts and the Predictor use a kind, and
none of them knows which kinds there are."""

from __future__ import annotations

import dataclasses
import itertools
import os
import typing

from bert_tf.errors import InputError, counted, warn
from bert_tf.files import TABLES, is_file, is_folder, is_library_name, join_path, match_names
from bert_tf.files import exists as is_there
from bert_tf.heads import BILSTM, HEADS
from bert_tf.tasks import kinds
from bert_tf.tasks.reading import Example

OWN = "own"         # name of a task that files of a user describe
OF_WORDS = ("words", "conllu", "annotations")


@dataclasses.dataclass(frozen=True)
class Split:
    """The file layout of a split's examples. A column is a name in the header or a number from 0.

    The format is "tsv", where quotes are plain characters; "csv"; "jsonl"; "words", one word per
    line and a blank line between sentences; "conllu"; "annotations", words or texts of annotation
    tools; "tfds", of tensorflow_datasets; "library", rows of a library; "squad"; "race", a folder
    of files of one article each; "folders", a folder with a folder of .txt files for each label,
    each file an example; or one of `bert_tf.tasks.super_glue`."""

    files: tuple        # possible names in the data folder, the official first; or a library's set
    texts: tuple        # columns; the second text of a choice is the beginning that all share
    label: str | int | None = None      # the column
    choices: tuple = ()         # columns; "ending*" means all that begin so
    format: str = "tsv"
    header: bool = True         # the first line names the columns
    size: int | None = None     # the official number of examples
    submission: str | None = None       # the file that the server of GLUE or SuperGLUE takes
    words: tuple = ()           # (column, cell, text): the text, or label, that is read for a cell
    only: tuple = ()            # (column, cell): the rows that are examples, among others
    line_break: str = ""        # a mark that is read as a blank; blanks at the ends then go, too
    tags: str | None = None     # how they name entities: `tag_schemes.way_of`; None: see the file
    tag_names: tuple = ()       # of tags that are numbers in the file
    is_broken: bool = False     # the official file has lines to leave out, which are counted

    def refusal(self, task: str, path: str, count: int) -> str:
        """Why the server refuses predictions for a file of `count` examples."""
        return (f"no {self.submission}: the server takes {self.size:,} predictions of {task}, and "
                f"{path} has {counted(count, 'example')}")

    def takes(self, task: str, path: str, count: int) -> bool:
        """Whether a server takes predictions for `count` examples; prints a wrong number."""
        if self.submission and count != self.size:
            print(self.refusal(task, path, count), flush=True)
            return False
        return bool(self.submission)


@dataclasses.dataclass(frozen=True)
class Defaults:
    """Defaults of a task's training (arXiv:1810.04805, section 4 and A.3)."""

    max_seq_length: int = 128
    train_batch_size: int = 32
    learning_rate: float = 2e-5
    num_train_epochs: float = 3.0


class Kind:
    """One kind of task. A kind has no state: a method takes the `Task` that it works for."""

    name = ""       # a key of `KINDS`
    title = ""      # in messages
    job = ""        # the row of `bert_tf.finetuning.jobs` that fine-tunes such a task
    features: tuple = ()        # the `Feature`s of training records
    # The least and most texts of an example (None: any number); their name in errors.
    texts: tuple = (1, None, "a text")
    own_metrics: tuple = ()     # of a user's own files, the headline first; () if it takes none
    format: str | None = None   # of a user's own files; None if the file's ending shows it
    default_columns: tuple = ("", "")           # the text and label of own files without a flag
    head_options: tuple[str, ...] = ("bilstm_size",)    # those that decide how the head is built
    input_options: tuple[str, ...] = ()     # flags of `TaskFlags` that are kept with the model
    reads: tuple[str, ...] = ()     # the features that a model turns into texts; () for others
    needs_choices = False           # own files must have columns of choices
    has_labels = False              # from a list of names, which is kept with the model
    has_several_labels = False      # an example may have several, or none; see `label_cells`
    labels_are_classes = True       # labels may have any order, and weights
    # A question or a line has several examples, with its number for a `document`; sizes count it.
    is_grouped = False
    keeps_head = False      # training begins with the head of pre-training that has the same name
    smooths = True          # its loss can smooth labels
    measures = True         # records to predict hold labels, so that their loss can be measured

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(self.name)

    @property
    def on_disk(self) -> dict:
        """The kind as `task.json` and manifests write it."""
        return {"kind": self.name, "multi_label": False}

    def is_percent(self, score: str) -> bool:
        """Returns whether a score is a percentage, as an official script prints it."""
        return False

    # The model

    def with_labels(self, task: Task, labels) -> Task:
        return dataclasses.replace(task, labels=tuple(labels))

    def fits_labels(self, labels: tuple, trained: tuple) -> bool:
        """Whether a model with the labels `trained` does a task with these labels."""
        return tuple(labels) == tuple(trained)

    def num_texts(self, task: Task, split: str = "train") -> int | None:
        """The number of texts of a split's examples, if a model may meet another; else None."""
        return None

    def options(self, given: dict, saved: dict, is_training: bool, path: str) -> dict:
        """Returns the options of input and head: the flag, else the value that the model was
        trained with, also where there is no such flag. `given`: values of flags by name, None where
        a flag is not given. `saved`: the options of the model's `SavedTask`."""
        return settle({**given, **{name: None for name in saved if name not in given}}, saved)

    def check_options(self, options: dict, max_seq_length: int, tokenizer) -> None:
        """Raises InputError for options that cannot work."""

    def fitted(self, options: dict, source) -> dict:
        """Returns the options of a new head for the training examples of a `Source`."""
        return options

    def fixed_options(self, options: dict) -> dict:
        """Returns the options that must be equal to resume a run."""
        return options

    def head(self, task: Task, options: dict) -> tuple[str, dict]:
        """Returns the head's name in `bert_tf.heads` and its arguments."""
        name, arguments = self._head(task, options)
        size = options.get("bilstm_size")
        if not size:
            return name, arguments
        if not BILSTM.keys() <= HEADS[name].shapes.keys():
            raise InputError(f"--bilstm_size is for heads of one layer, not for {name}; leave the "
                             "flag out.")
        return name, {**arguments, "reader_size": size}

    def _head(self, task, options):
        return self.name, {"num_labels": len(task.labels)} if self.has_labels else {}

    def gather(self, task: Task, rows: typing.Iterator[tuple], path: str, omissions
               ) -> typing.Iterator[tuple]:
        """Groups a file's rows into examples' rows; see `bert_tf.tasks.reading.read_examples`."""
        return rows

    # Runs of the scripts

    def records(self, source, tokenizer, max_seq_length: int, options: dict, output_dir: str):
        """Plans the records: `make` writes them, `report` prints their counts."""
        raise NotImplementedError

    def predictions(self, source, tokenizer, max_seq_length: int, options: dict, is_scored: bool):
        """Returns what decodes, scores and writes the predictions for a `Source`, as
        `kinds.labelled.SplitPredictions`. `is_scored`: the file must hold the right answers."""
        raise NotImplementedError

    def headline(self, task: Task, eval_splits: list) -> str:
        """The metric that decides between trials, as `SplitPredictions` and the run name it."""
        return f"{eval_splits[0]}/{task.headline}" if eval_splits else ""

    def overall(self, scores: list[dict[str, float]]) -> dict[str, float]:
        """Returns the scores of all splits together, from the scores of each."""
        return {}

    def scored_on(self, identities: list, options: dict) -> list | None:
        """All that a trial's scores depend on, as JSON: the identities of its records and options.
        """
        return identities

    # The Predictor

    def example(self, given: str | tuple, number: int) -> Example:
        """Makes the only `Example` of document `number`, without a label, from a text or texts."""
        return Example(list(given) if isinstance(given, tuple) else [given], 0, number)

    def placed(self, given: str | tuple, answer: dict) -> dict:
        """The answer to an example with places in the given text, if it has any."""
        return answer

    def generation(self, options: dict) -> dict:
        """Returns the arguments of generation for a network that writes texts."""
        raise NotImplementedError

    def batch_key(self, example: Example) -> int:
        """Returns a key; examples with different keys do not share a batch."""
        return len(example.texts)

    def check_example(self, texts: list, tokenizer, where: str) -> None:
        """Raises InputError for texts that the model cannot read."""

    def answer(self, task: Task, examples: list, run: typing.Callable, tokenizer,
               max_seq_length: int, options: dict) -> list[dict]:
        """Returns the Predictor's answers to examples: dicts in their order. `run`: function from
        features to the model's answers, arrays by name."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Task:
    """One task; a new one is one row of a table."""

    name: str                   # of `--task`
    kind: Kind                  # or its name
    splits: dict
    labels: tuple = ()          # by their ids; () if not known yet, and for numbers and choices
    metrics: tuple = ("accuracy",)      # names of `bert_tf.metrics`, the headline first
    bounds: tuple | None = None         # the least and the greatest number, if there are bounds
    without_label: str | None = None    # the label that marks an example to leave out
    model_of: str | None = None         # the task whose model answers this one, untrained itself
    folder_of: str | None = None        # another folder that may have the files
    defaults: Defaults = Defaults()
    label_names: tuple = ()     # of labels that are numbers in official files; for Hugging Face
    label_values: tuple = ()    # what answers have for the labels, where these were no texts

    @property
    def answers(self) -> tuple:
        return self.label_values or self.labels

    def answering_as(self, other: Task) -> Task:
        """The task with the values of labels in the answers of another, if it has its labels."""
        values = dict(zip(other.labels, other.label_values))
        if values.keys() != {*self.labels}:
            return self
        return dataclasses.replace(self, label_values=tuple(map(values.get, self.labels)))

    def __post_init__(self):
        if isinstance(self.kind, str):
            object.__setattr__(self, "kind", kinds.KINDS[self.kind])

    @property
    def headline(self) -> str:
        return self.metrics[0]

    @property
    def has_classes(self) -> bool:
        """Whether its labels are known, and classes: names in any order."""
        return bool(self.labels) and self.kind.labels_are_classes

    def split(self, name: str) -> Split:
        if name not in self.splits:
            raise InputError(f"task {self.name} has no split {name!r}; it has "
                             f"{', '.join(self.splits)}.")
        return self.splits[name]

    @property
    def columns(self) -> dict:
        """The columns "texts" and "choices" of a table to train on, and "header": False where no
        line names them; "texts" and "format" of tagged words; else {}."""
        train = self.splits.get("train")
        if train is None:
            return {}
        if train.format in OF_WORDS:
            return {"texts": train.texts, "format": train.format}
        if train.format not in TABLES.values():
            return {}
        columns = {"texts": train.texts, "choices": train.choices}
        if not train.header:
            columns["header"] = False
        return columns

    def path(self, data_dir: str, split: str) -> str:
        """Returns a split's file, or its folder, in the folder `data_dir`; it must exist."""
        files, form = self.split(split).files, self.split(split).format
        if form == "tfds" or is_library_name(files[0]):
            return files[0]
        # The name that must be in the folder of a split: other data have a folder "train", too.
        needed = {"race": "", "folders": next(iter(self.labels), "")}.get(form)
        def exists(path):
            if needed is not None:
                return is_folder(os.path.join(path, needed))
            # brat's annotations may be a folder.
            return is_there(path) if form == "annotations" else is_file(path)

        places = [data_dir, named_folder(data_dir, self.name, self.folder_of or self.name)]
        if needed is not None:
            places.reverse()
        for place, name in itertools.product(places, files):
            if place is not None and exists(path := join_path(place, name)):
                return path
        if needed is not None:
            files = tuple(os.path.join(name, needed, "*.txt") for name in files)
        where = f" in {data_dir!r}" if data_dir else ""
        of = "" if self.name == OWN else f" of {self.name}"
        raise InputError(f"there is no {' or '.join(files)}{where} (the {split} file{of}); name "
                         "the right file, or its folder with --data_dir.")

    def has_file(self, data_dir: str, split: str) -> bool:
        try:
            return bool(self.path(data_dir, split))
        except InputError:
            return False


def named_folder(folder: str, *names: str) -> str | None:
    """Returns the folder in `folder` that is named as a task, in capitals or not, with or without
    hyphens; the first of several names that has a folder. None if no name has one."""
    def plain(name):
        return name.lower().replace("-", "").replace("_", "")

    for name in names:
        for path in match_names(folder, "*"):
            if plain(os.path.basename(path)) == plain(name) and is_folder(path):
                return path
    return None


def settle(flags: dict, *others: dict) -> dict:
    """Returns every option of `flags` from the first dict that has it, else None: the flags, then a
    model's saved options, then the defaults."""
    return {name: next((source[name] for source in (flags, *others)
                        if source.get(name) is not None), None) for name in flags}


def warn_of_cut(is_cut: bool, what: str, most: int, flags: str) -> None:
    """Warns, once, that texts to predict for are longer than the model reads."""
    if is_cut:
        warn(f"{what} of more than {most} tokens are cut to fit, as in training ({flags}).")
