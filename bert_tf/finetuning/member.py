"""A task of a fine-tuning run: its files, its head, the answers that a model gives it, and what is
written of them."""

import csv
import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from bert_tf import data, metrics
from bert_tf.errors import counted, listed
from bert_tf.files import make_folder, write_aside
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.split_records import SplitRecords
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import RunSplits
from bert_tf.tokenization.coverage import Coverage, join
from bert_tf.training import trials

_MOST_DRAWN = 40    # labels in a picture that can be read
_COLUMNS = ("label", "precision", "recall", "f1", "examples")


@dataclasses.dataclass
class Member:
    """One task of a run, whose flags and files were found good."""

    task: Task              # with its labels
    model: Any              # the `bert_tf.opening.Model` to begin with
    options: dict           # of input and head, see `Kind.options`
    splits: RunSplits       # the files that the run needs
    flags: Any              # as the settings, see `FineTuneRun`
    settings: Any
    class_weights: str | list[float] | None = None      # see `one_task.class_weights`
    head_name: str = ""     # among other tasks' heads; "" for the only task of a run
    number: int = 0         # the head's place among them
    is_guest: bool = False  # the head is another task's, and this one is only predicted
    loss_weight: float = 1.0        # of such a head, as its dropout
    dropout_rate: float = 0.1
    teachers: tuple[str, ...] = ()  # folders of models that it learns from
    distillation: Any = None        # how, a `Distillation`
    sets: dict = dataclasses.field(default_factory=dict)            # {split: `ExampleSet`}
    # {split: what decodes, scores and writes its predictions}.
    predictions: dict = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def predicted_splits(self) -> list[str]:
        return list(dict.fromkeys([*self.splits.eval_splits, *self.splits.test_splits]))

    @property
    def of_input(self) -> tuple:
        """How texts are read, as arguments of `Kind`: tokenizer, max_seq_length, options."""
        return self.model.tokenizer, self.model.max_seq_length, self.options

    @property
    def folder(self) -> str:
        if not self.head_name:
            return self.settings.output_dir
        return os.path.join(self.settings.output_dir, "guests" if self.is_guest else "tasks",
                            self.name)

    def score_name(self, split: str, metric: str) -> str:
        if self.head_name:
            return f"{self.name}_{split}_{metric}"
        return f"{self.predictions[split].prefix}/{metric}"

    @property
    def headline(self) -> str:
        if self.head_name:
            return self.score_name(self.splits.eval_splits[0], self.task.headline)
        return self.task.kind.headline(self.task, self.splits.eval_splits)

    def head(self) -> tuple[str, dict]:
        """The name in `bert_tf.heads` of its head, and the head's arguments."""
        name, arguments = self.task.kind.head(self.task, self.options)
        return name, {**arguments, "name": self.name, "loss_weight": self.loss_weight,
                      "dropout_rate": self.dropout_rate}

    def plan_records(self, folder: str, train: Callable[[], Any] | None = None) -> dict:
        """Plans the records of each split, to be made in a folder, and the predictions. `train`:
        function that plans the records to train on, in place of the task's own."""
        kind, sources = self.task.kind, self.splits.sources
        self.predictions |= {
            split: kind.predictions(sources[split], *self.of_input,
                                    is_scored=split in self.splits.eval_splits)
            for split in self.predicted_splits}
        return {split: train() if train and split == "train" else
                kind.records(source, *self.of_input, folder) for split, source in sources.items()}

    def make_records(self, folder: str, records: dict, keeps: tuple[str, ...] = ()) -> None:
        """Makes the records of `plan_records` that are not there yet, and reports on them. `keeps`:
        splits whose records must not be replaced by others."""
        make_folder(folder, "records_dir")
        if self.head_name:
            print(f"{self.name}:", flush=True)
        for split, one in records.items():
            may_replace = not self.flags.records_dir and split not in keeps
            one.report(*one.make(self.flags.num_workers, may_replace))
            if isinstance(one, SplitRecords):
                one.report_repeats(records.get("train"))

    def open_records(self, folder: str, padding: str) -> None:
        """Opens all records, and frees the rows of the training file. `padding`: see
        `ExampleSet`."""
        if "train" in self.splits.sources:
            self.splits.sources["train"].rows.forget()
        self.sets |= {split: data.ExampleSet(os.path.join(folder, f"{split}.manifest.json"),
                                             padding=padding)
                      for split in self.splits.sources}

    def answer(self, predict, split: str) -> tuple[dict, dict, Any]:
        """A model's answers to a split: arrays, losses, predictions; see `FineTuning.evaluate`."""
        examples = self.sets[split]
        seen = examples
        if self.head_name:
            from bert_tf.models.mtdnn.batches import TaskExamples
            seen = TaskExamples(examples, self.head_name, self.number)
        answers, losses = predict(seen, measures=self.task.kind.measures)
        answers = self.predictions[split].join(answers)
        return answers, losses, self.predictions[split].decode(answers, examples)

    def answer_all(self, predict) -> dict:
        """{split: `answer`} of all splits to score and to predict."""
        return {split: self.answer(predict, split) for split in self.predicted_splits}

    def is_degenerate(self, split: str, answered: tuple) -> bool:
        """Whether the result of `answer` tells no examples apart."""
        answers, _, predicted = answered
        return self.predictions[split].is_degenerate(answers, predicted)

    def score(self, split: str, answered: tuple) -> dict[str, float]:
        answers, _, predicted = answered
        predictions = self.predictions[split]
        return {self.score_name(split, name): value for name, value in predictions.score(
            predictions.against_ties(answers, predicted)).items()}

    def join_scores(self, split_scores: list[dict[str, float]]) -> dict[str, float]:
        """The scores of splits in one dict, after the scores of all splits together."""
        return {**self.task.kind.overall(split_scores), **{
            name: value for scores in split_scores for name, value in scores.items()}}

    def advice(self) -> list[str]:
        """What helps a model that gives all examples one answer: another vocabulary, if much of the
        text is unknown, else another training. Without either it has no sentence."""
        seen = Coverage(join(getattr(examples, "manifest", {}).get("coverage", {})
                             for examples in self.sets.values()))
        if seen.is_poor:
            return [f"Much of the text is unknown to its vocabulary, {seen.shares}: "
                    f"{seen.remedy(('do_lower_case',))}."]
        if not self.flags.do_train:
            return []
        waits = "A larger --early_stopping waits longer for answers that differ."
        return [trials.REMEDY, *[waits] * bool(self.settings.early_stopping)]

    def tell_missed(self, answered: dict[str, tuple]) -> None:
        """Prints the labels of a split's examples that are the answer to none, as rare ones are.
        `answered`: see `answer_all`."""
        task, advice = self.task, ""
        if not self.class_weights:
            advice = "; --class_weights=balanced gives rare labels more weight in training"
        for split, (_, _, predicted) in answered.items():
            if not task.has_classes or np.ndim(predicted[0]):
                continue
            targets = task.kind.targets(task, self.predictions[split].examples)
            counts = np.bincount(targets, minlength=len(task.labels))
            missed = [f"{name} ({counted(count, 'example')})"
                      for label, (name, count) in enumerate(zip(task.labels, counts))
                      if count and label not in predicted]
            if missed:
                print(f"{split}: no answer is {listed(missed)}{advice}.", flush=True)

    def keep_chosen(self, answered: dict) -> None:
        """Keeps the options that are best for the splits to score with the model."""
        for split in self.splits.eval_splits:
            saved = SavedTask.read(self.folder)
            if saved and (chosen := self.predictions[split].choose(answered[split][2])):
                dataclasses.replace(saved, options={**saved.options, **chosen}).write(self.folder)

    def write(self, answered: dict) -> None:
        make_folder(self.folder, "output_dir")
        for split, (answers, _, predicted) in answered.items():
            predictions, kind = self.predictions[split], self.task.kind
            paths = predictions.write(
                self.folder, answers, predicted, split in self.splits.test_splits)
            if self.task.has_classes and predictions.is_scored(split in self.splits.eval_splits):
                paths += write_label_scores(
                    self.folder, split, self.task, kind.targets(self.task, predictions.examples),
                    predictions.against_ties(answers, predicted))
            print("wrote " + ", ".join(paths), flush=True)


def label_scores(task: Task, targets: Any, predicted: Any) -> dict[str, tuple]:
    """{label, or type of entities: (precision, recall, F1, examples or entities)} of a task with
    classes. Targets and predictions have one of the forms of `bert_tf.metrics`."""
    if not isinstance(predicted, list):
        return dict(zip(task.labels, metrics.by_label(targets, predicted, range(len(task.labels)))))
    if "entity_f1" in task.metrics:
        counts = metrics.count_entities(targets, predicted)
        return {kind: (*metrics.entity_scores(count), count["labelled"])
                for kind, count in sorted(counts.items())}
    words = [[tag for tags in sentences for tag in tags] for sentences in (targets, predicted)]
    return dict(zip(task.labels, metrics.by_label(*words, task.labels)))


def write_label_scores(folder: str, split: str, task: Task, targets: Any, predicted: Any
                       ) -> list[str]:
    """Writes `SPLIT_labels.tsv`, a line for each label; returns the paths of all files.

    Where an example has one label, further columns are the confusion matrix: how many examples of
    the label are taken for each. `SPLIT_confusion.png` shows the matrix of 3 to 40 labels."""
    rows = [[name, *(f"{value:.4f}" for value in values), int(count)]
            for name, (*values, count) in label_scores(task, targets, predicted).items()]
    columns, paths = list(_COLUMNS), [os.path.join(folder, f"{split}_labels.tsv")]
    if np.ndim(predicted[0]) == 0:
        matrix = metrics.confusion(targets, predicted, len(task.labels))
        columns += [f"taken for {label}" for label in task.labels]
        rows = [row + counts for row, counts in zip(rows, matrix.tolist())]
        if 2 < len(task.labels) <= _MOST_DRAWN:
            paths.append(os.path.join(folder, f"{split}_confusion.png"))
            _draw(paths[1], f"{split}: how often a label is taken for another", matrix, task.labels)
    with write_aside(paths[0]) as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows([columns, *rows])
    return paths


def _draw(path, title, matrix, labels):
    from bert_tf.analysis.pictures import picture
    places, side = range(len(labels)), 3 + 0.3 * len(labels)
    shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    with picture(path, 1, 1, (side, side)) as (figure, axes):
        figure.suptitle(title, parse_math=False)
        axis = axes[0, 0]
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axis.set(xlabel="prediction", ylabel="label")
        axis.set_xticks(places, labels, rotation=90, parse_math=False)
        axis.set_yticks(places, labels, parse_math=False)
        for row, column in np.argwhere(matrix):
            axis.text(column, row, f"{matrix[row, column]:,}", ha="center", va="center",
                      fontsize=7, color="white" if shares[row, column] > 0.5 else "black")
