"""The interface of a kind of task. Readers, records, scripts and the Predictor use a kind, and none
of them knows which kinds there are.
"""

from __future__ import annotations

import dataclasses
import typing

from bert_tf.errors import InputError
from bert_tf.heads import BILSTM, HEADS
from bert_tf.options import settle
from bert_tf.tasks.reading import Example

if typing.TYPE_CHECKING:
    from bert_tf.tasks.task import Task


class Kind:
    """One kind of task. A kind has no state: a method takes the `Task` that it works for.

    Attributes:
        name: a key of `KINDS`.
        title: the kind's name in messages.
        script: the script that fine-tunes such a task.
        features: the `Feature`s of training records.
        texts: the least and the most texts of an example (None: any number), and their name in
            errors.
        own_metrics: metrics of a user's own files, the headline first; () if a kind takes no such
            files.
        format: of a user's own files; None if the file's ending shows it.
        default_columns: the text and label columns of own files that need no flag.
        lines: lines of a table for each example.
        needs_choices: whether own files must have columns of choices.
        has_labels: whether labels come from a list of names, which is kept with the model.
        labels_are_classes: whether a model classifies into these names, so that they may have any
            order, and weights.
        smooths: whether its loss can smooth labels.
        is_grouped: whether a question or a line has several examples, which have its number for a
            `document`; a task's sizes then count these.
        keeps_head: whether training begins with the head of pre-training that it is named as.
        measures: whether records to predict hold labels, so that their loss can be measured.
        reads: names of the features from which a model writes texts; () for other models.
    """

    name = title = script = ""
    features: tuple = ()
    texts: tuple = (1, None, "a text")
    own_metrics: tuple = ()
    reads: tuple[str, ...] = ()
    format: str | None = None
    default_columns: tuple = ("", "")
    lines = 1
    needs_choices = has_labels = is_grouped = keeps_head = False
    labels_are_classes = smooths = measures = True

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    @property
    def on_disk(self) -> dict:
        """The kind as `task.json` and manifests write it."""
        return {"kind": self.name, "multi_label": False}

    def is_percent(self, score: str) -> bool:
        """Returns whether a score is a percentage, as an official script prints it."""
        return False

    # The model

    def with_labels(self, task: Task, labels) -> Task:
        """Returns the task with these labels."""
        return dataclasses.replace(task, labels=tuple(labels))

    def fits_labels(self, labels: tuple, trained: tuple) -> bool:
        """Whether a model with the labels `trained` does a task with these labels."""
        return tuple(labels) == tuple(trained)

    def num_texts(self, task: Task, split: str = "train") -> int | None:
        """Returns the number of texts of a split's examples, if a model may meet another number;
        else None."""
        return None

    def options(self, given: dict, saved: dict, is_training: bool, path: str) -> dict:
        """Returns the options of input and head: the flag, else the value that the model was
        trained with.

        Args:
            given: values of flags by name, None where a flag is not given.
            saved: the options of the model's `SavedTask`.
        """
        return settle(given, saved)

    def check_options(self, options: dict, max_seq_length: int, tokenizer) -> None:
        """Raises InputError for options that cannot work."""

    def fixed_options(self, options: dict) -> dict:
        """Returns the options that must be equal to resume a run."""
        return options

    def head(self, task: Task, options: dict) -> tuple[str, dict]:
        """Returns the head's name in `bert_tf.heads` and its arguments."""
        name, arguments = self._head(task, options)
        size = options.get("bilstm_size")
        if size and not BILSTM.keys() <= HEADS[name].shapes.keys():
            raise InputError(f"--bilstm_size is for heads that are one layer, not for {name}; "
                             "leave it out.")
        return name, {**arguments, **({"bilstm_size": size} if size else {})}

    def _head(self, task, options):
        return self.name, {"num_labels": len(task.labels)} if self.has_labels else {}

    def gather(self, task: Task, rows: typing.Iterator[tuple], path: str, omissions
               ) -> typing.Iterator[tuple]:
        """Groups a file's rows into examples' rows; see `bert_tf.tasks.reading.read_examples`."""
        return rows

    # Runs of the scripts

    def records(self, source, tokenizer, max_seq_length: int, options: dict,
                output_dir: str):
        """Plans the records: `make` writes them, `report` prints what was written."""
        raise NotImplementedError

    def predictions(self, source, tokenizer, max_seq_length: int, options: dict,
                    is_scored: bool):
        """Returns an object that decodes, scores and writes the predictions for a `Source`, with
        the methods of `bert_tf.tasks.kinds.labelled.SplitPredictions`. `is_scored` requires the
        file to hold the right answers."""
        raise NotImplementedError

    def headline(self, task: Task, eval_splits: list) -> str:
        """Returns the metric that decides between trials, named as `SplitPredictions` and the run
        name it."""
        return f"{eval_splits[0]}/{task.headline}" if eval_splits else ""

    def scored_on(self, identities: list, options: dict) -> list | None:
        """Returns all that a trial's scores depend on, a JSON value: the identities of its records,
        and the options that decide about answers."""
        return identities

    # The Predictor

    def example(self, given: str | tuple, number: int) -> Example:
        """Makes an `Example` without a label from a text or a tuple of texts, the only one of
        document `number`."""
        return Example(list(given) if isinstance(given, tuple) else [given], 0, number)

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
        """Returns the Predictor's answers to examples: dicts in their order.

        Args:
            run: function from features to the model's answers, arrays by name.
        """
        raise NotImplementedError
