"""What every kind of task offers. Readers, records, scripts and the Predictor ask a kind; none of
them knows which kinds there are.
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


class _AnswersTexts:
    """What the Predictor asks of a kind."""

    def example(self, given: str | tuple, number: int) -> Example:
        """The `Example` that a text or a tuple of texts is, without a label; it is the only one of
        document `number`."""
        return Example(list(given) if isinstance(given, tuple) else [given], 0, number)

    def generation(self, options: dict) -> dict:
        """The arguments with which a network that writes texts does so."""
        raise NotImplementedError

    def batch_key(self, example: Example) -> int:
        """Examples of another key do not share a batch."""
        return len(example.texts)

    def check_example(self, texts: list, tokenizer, where: str) -> None:
        """Raises InputError for texts that the model cannot read."""

    def answer(self, task: Task, examples: list, run: typing.Callable, tokenizer,
               max_seq_length: int, options: dict) -> list[dict]:
        """What the Predictor returns for examples: dicts in their order.

        Args:
            task: the task.
            examples: list of `Example`.
            run: function from features to the arrays that the model answers, by name.
            tokenizer, max_seq_length, options: see `Kind.records`.
        """
        raise NotImplementedError


class Kind(_AnswersTexts):
    """One kind of task. A kind has no state: a method takes the `Task` that it works for.

    Attributes:
        name: of the kind, a key of `KINDS`.
        title: what messages call it.
        script: the script that fine-tunes such a task.
        features: the `Feature`s of the records to train on.
        texts: the least and the most texts of an example (None: any number), and what an error asks
            for instead.
        own_metrics: the metrics of a user's own files, the headline first; () if a kind does not
            take them.
        format: of a user's own files; None if the file's ending shows it.
        default_columns: the columns of text and label of own files that no flag needs to name.
        lines: how many lines of a table an example has.
        needs_choices: whether own files must have columns of choices.
        has_labels: whether labels are from a list of names, which is kept with the model.
        labels_are_classes: whether these names are what a model tells apart, so that any order of
            them will do, and each may have a weight.
        smooths: whether its loss can smooth labels.
        measures: whether records to predict hold labels, so that their loss can be measured.
        reads: names of the features that a model writes texts from; () where it answers otherwise.
    """

    name = title = script = ""
    features: tuple = ()
    texts: tuple = (1, None, "a text")
    own_metrics: tuple = ()
    reads: tuple[str, ...] = ()
    format: str | None = None
    default_columns: tuple = ("", "")
    lines = 1
    needs_choices = has_labels = False
    labels_are_classes = smooths = measures = True

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    @property
    def on_disk(self) -> dict:
        """How `task.json` and manifests write the kind."""
        return {"kind": self.name, "multi_label": False}

    # The model

    def with_labels(self, task: Task, labels) -> Task:
        """The task with these labels."""
        return dataclasses.replace(task, labels=tuple(labels))

    def num_texts(self, task: Task, split: str = "train") -> int | None:
        """How many texts an example of a split has, where a model may be used for examples of
        another number; else None."""
        return None

    def options(self, given: dict, saved: dict, is_training: bool, path: str) -> dict:
        """The options of input and head: the flag, else what the model was trained with.

        Args:
            given: values of flags by name, None where a flag is not given.
            saved: the options of the model's `SavedTask`.
            is_training: whether the model will be trained further.
            path: of the model.

        Raises:
            InputError: a flag contradicts the model.
        """
        return settle(given, saved)

    def check_options(self, options: dict, max_seq_length: int, tokenizer) -> None:
        """Raises InputError for options that cannot work."""

    def fixed_options(self, options: dict) -> dict:
        """The options that must be equal for a run to continue."""
        return options

    def head(self, task: Task, options: dict) -> tuple[str, dict]:
        """The head of a model for the task: its name in `bert_tf.heads` and its arguments.

        Raises:
            InputError: there is to be an LSTM below a head that can have none.
        """
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
        """The rows of a file as those of examples; see `bert_tf.tasks.reading.read_examples`."""
        return rows

    # Runs of the scripts

    def records(self, source, tokenizer, max_seq_length: int, options: dict,
                output_dir: str):
        """The records to be: `make` writes them, `report` prints what was written.

        Args:
            source: `Source`.
            tokenizer: the tokenizer.
            max_seq_length: S.
            options: see `options`.
            output_dir: folder of the records.

        Raises:
            InputError: the file cannot be read.
        """
        raise NotImplementedError

    def predictions(self, source, tokenizer, max_seq_length: int, options: dict,
                    is_scored: bool):
        """What decodes, scores and writes the predictions for a `Source`; it has the methods of
        `bert_tf.tasks.kinds.labelled.SplitPredictions`.

        Args:
            source, tokenizer, max_seq_length, options: see `records`.
            is_scored: whether the file must hold the right answers.
        """
        raise NotImplementedError

    def headline(self, task: Task, eval_splits: list) -> str:
        """The metric that decides between trials, as `SplitPredictions` and the run name it."""
        return f"{eval_splits[0]}/{task.headline}" if eval_splits else ""

    def scored_on(self, identities: list, options: dict) -> list | None:
        """All that the scores of a trial depend on, a JSON value: the identities of its records,
        and the options that decide about answers."""
        return identities
