"""Scores of each label, and which label is taken for which. L labels."""

import csv
import os
from typing import Any

import numpy as np

from bert_tf import metrics
from bert_tf.files import write_aside
from bert_tf.tasks.task import Task

_MOST_DRAWN = 40    # labels in a picture that can be read
_COLUMNS = ("label", "precision", "recall", "f1", "examples")


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
