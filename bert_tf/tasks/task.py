"""A task is a record: where its examples stand, what their labels are, how they are scored."""

import dataclasses
import os

from bert_tf.errors import InputError

KINDS = ("classification", "regression", "span", "multiple_choice", "tagging")


@dataclasses.dataclass(frozen=True)
class Split:
    """Where the examples of one split stand.

    A column is its name in the header or its number from 0.

    Attributes:
        files: the names that the file may have in the data folder, the official one first.
        texts: the columns of the text or the two texts; of the words, in tagging. In a multiple
            choice the second is the common beginning of all choices.
        label: the column of the label, None where there is none.
        choices: the columns of a multiple choice; "ending*" stands for all of that beginning.
        format: "tsv", where quotes are plain characters; "csv"; "jsonl"; "words", a word a line
            and a blank line between sentences; "tfds", of tensorflow_datasets.
        header: whether the first line names the columns.
        size: the official number of examples, None if not known.
        submission: the name of the file that the GLUE server takes, None if it takes none.
    """

    files: tuple
    texts: tuple
    label: str | int | None = None
    choices: tuple = ()
    format: str = "tsv"
    header: bool = True
    size: int | None = None
    submission: str | None = None


@dataclasses.dataclass(frozen=True)
class Defaults:
    """How a task is trained unless flags say otherwise (arXiv:1810.04805, section 4 and A.3)."""

    max_seq_length: int = 128
    train_batch_size: int = 32
    learning_rate: float = 2e-5
    num_train_epochs: float = 3.0


@dataclasses.dataclass(frozen=True)
class Task:
    """One task; a new one is one row of a table.

    Attributes:
        name: of `--task`.
        kind: one of `KINDS`.
        splits: dict of the name of a split -> `Split`.
        labels: the labels, each one's id its place; () where they are not known yet, and for
            numbers and choices.
        metrics: names of `bert_tf.metrics`, the headline first.
        multi_label: whether an example has any number of the labels.
        bounds: in regression, the least and the greatest number, if there are such.
        without_label: what stands for the label of an example that is to be left out.
        model_of: the task whose model answers this one, which has no training set.
        defaults: `Defaults`.
    """

    name: str
    kind: str
    splits: dict
    labels: tuple = ()
    metrics: tuple = ("accuracy",)
    multi_label: bool = False
    bounds: tuple | None = None
    without_label: str | None = None
    model_of: str | None = None
    defaults: Defaults = Defaults()

    @property
    def headline(self):
        """The metric that stands for the others."""
        return self.metrics[0]

    def split(self, name):
        """The `Split` of this name.

        Raises:
            InputError: the task has none.
        """
        if name not in self.splits:
            raise InputError(f"task {self.name} has no split {name!r}; it has "
                             f"{', '.join(self.splits)}.")
        return self.splits[name]

    def path(self, data_dir, split):
        """The file of a split in the folder `data_dir`.

        Raises:
            InputError: it is not there.
        """
        files = self.split(split).files
        if self.split(split).format == "tfds":
            return files[0]
        paths = [os.path.join(data_dir, name) for name in files]
        for path in paths:
            if os.path.isfile(path):
                return path
        where = f" in {data_dir!r}" if data_dir else ""
        raise InputError(f"there is no {' or '.join(files)}{where}, the {split} file of "
                         f"{self.name}; name the right file, or its folder with --data_dir.")
