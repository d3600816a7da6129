"""Scores of each label, counted by hand, and the files that a run writes of them."""

import csv

import numpy as np
import pytest

from bert_tf.finetuning.member import label_scores, write_label_scores
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.task import Task

RNG = np.random.default_rng(3)


def task(kind, labels):
    return KINDS[kind].with_labels(
        Task("own", KINDS[kind], {}, metrics=tuple(KINDS[kind].own_metrics)), labels)


def by_hand(labelled, predicted):
    right = (labelled & predicted).sum()
    precision, recall = (right / max(one.sum(), 1) for one in (predicted, labelled))
    return precision, recall, 2 * right / max(predicted.sum() + labelled.sum(), 1), labelled.sum()


def test_each_class_is_scored_against_all_others():
    labels, predictions = RNG.integers(0, 4, [2, 60])
    labels[labels == 2] = 0             # never right, and 3 is never predicted
    predictions[predictions == 3] = 1
    scores = label_scores(task("classification", tuple("abcd")), labels, predictions)
    assert list(scores) == [*"abcd"] and scores["c"][3] == 0 and scores["d"][1] == 0
    for number, values in enumerate(scores.values()):
        assert values == pytest.approx(by_hand(labels == number, predictions == number))


@pytest.mark.parametrize("count", [1, 3])
def test_each_of_several_labels_is_scored(count):
    labels, predictions = RNG.integers(0, 2, [2, 30, count])
    scores = label_scores(task("multi_label", tuple("abc"[:count])), labels, predictions)
    for number, values in enumerate(scores.values()):
        assert values == pytest.approx(by_hand(labels[:, number] == 1, predictions[:, number] == 1))


def test_tags_are_scored_by_the_type_of_entities_or_word_by_word():
    scores = label_scores(task("tagging", ("O", "B-PER", "I-PER", "B-LOC")),
                          [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER"]],
                          [["B-PER", "O", "B-LOC", "B-LOC"], ["B-PER"]])
    assert scores == {"LOC": (0.5, 1, pytest.approx(2 / 3), 1), "PER": (0.5, 0.5, 0.5, 2)}
    scores = label_scores(task("tagging", ("NN", "VB")), [["NN", "VB"], ["NN", "XX"]],
                          [["NN", "NN"], ["NN", "VB"]])
    assert {name: tuple(values) for name, values in scores.items()} == {
        "NN": (pytest.approx(2 / 3), 1, pytest.approx(0.8), 2), "VB": (0, 0, 0, 1)}


def test_the_table_holds_the_confusion_matrix(tmp_path):
    labels, predictions = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 1, 1, 2, 2, 0])
    names = ("$x", "a\tb", "$y_2$")
    table, picture = write_label_scores(
        str(tmp_path), "dev", task("classification", names), labels, predictions)
    with open(table, newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header[5:] == [f"taken for {name}" for name in names]
    assert [row[0] for row in rows] == [*names] and [row[4] for row in rows] == ["2", "1", "3"]
    assert rows[0][1:4] == ["0.5000"] * 3
    assert [list(map(int, row[5:])) for row in rows] == [[1, 1, 0], [0, 1, 0], [1, 0, 2]]
    with open(picture, "rb") as file:
        assert picture.endswith("dev_confusion.png") and file.read(4) == b"\x89PNG"


def test_two_labels_need_no_picture(tmp_path):
    assert write_label_scores(str(tmp_path), "dev", task("classification", ("0", "1")),
                              np.array([0, 1]), np.array([0, 0])) == [f"{tmp_path}/dev_labels.tsv"]
