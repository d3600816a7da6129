"""Scores against their formulas, and entity F1 against conlleval, retold from its Perl."""

import random

import numpy as np
import pytest

from bert_tf import metrics
from bert_tf.metrics import entities, to_bio
from bert_tf.tasks.named import TASKS

ENTITY_SCORES = ["entity_precision", "entity_recall", "entity_f1"]


def conlleval(labels, predictions):
    """(correct, guessed, gold) entities, counted line by line as conlleval does."""
    def split(tag):
        return (tag, "") if tag == "O" else tuple(tag.split("-", 1))

    def ends(last, last_type, tag, kind):
        return (last, tag) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")} or (
            last != "O" and last_type != kind)

    def starts(last, last_type, tag, kind):
        return (last, tag) in {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")} or (
            tag != "O" and last_type != kind)

    correct = guessed = gold = 0
    inside = False
    last, last_guess = ("O", ""), ("O", "")
    # A sentence ends with a line outside of all entities.
    for tag, guess in ((split(t), split(g)) for sentence in zip(labels, predictions)
                       for t, g in [*zip(*sentence), ("O", "O")]):
        if inside:
            if ends(*last, *tag) and ends(*last_guess, *guess) and last[1] == last_guess[1]:
                inside, correct = False, correct + 1
            elif ends(*last, *tag) != ends(*last_guess, *guess) or tag[1] != guess[1]:
                inside = False
        if starts(*last, *tag) and starts(*last_guess, *guess) and tag[1] == guess[1]:
            inside = True
        gold += starts(*last, *tag)
        guessed += starts(*last_guess, *guess)
        last, last_guess = tag, guess
    return correct, guessed, gold


def random_tags(rng, length):
    return rng.choices(["O", "I-A", "B-A", "I-B-x", "B-B-x"], [3, 2, 1, 2, 1], k=length)


@pytest.mark.parametrize("seed", range(20))
def test_entities_are_counted_as_conlleval_counts(seed):
    rng = random.Random(seed)
    labels, predictions = [], []
    for _ in range(100):
        tags = random_tags(rng, rng.randint(1, 12))
        labels.append(tags)
        predictions.append([tag if rng.random() < 0.8 else random_tags(rng, 1)[0] for tag in tags])
    correct, guessed, gold = conlleval(labels, predictions)
    bio = [to_bio(tags) for tags in labels]
    for truth in (labels, bio):     # IOB1 in, BIO inside
        scores = metrics.compute(ENTITY_SCORES, truth, predictions)
        assert list(scores.values()) == pytest.approx(
            [correct / guessed, correct / gold, 2 * correct / (guessed + gold)], abs=1e-12)


def test_entities_by_hand():
    gold = ["I-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-ORG"]
    assert entities(gold) == [(0, 2, "PER"), (3, 4, "LOC"), (4, 5, "LOC"), (5, 6, "ORG")]
    assert to_bio(gold) == ["B-PER", "I-PER", "O", "B-LOC", "B-LOC", "B-ORG"]
    assert to_bio(to_bio(gold)) == to_bio(gold)
    predicted = ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "B-ORG"]
    counts = metrics.count_entities([gold], [predicted])
    assert metrics.entity_scores(counts["LOC"]) == (0, 0, 0)
    everything = [*ENTITY_SCORES, "tag_accuracy"]
    assert metrics.compute(everything, [gold], [gold]) == dict.fromkeys(everything, 1.0)
    assert metrics.compute(ENTITY_SCORES, [gold], [predicted]) == pytest.approx(
        {"entity_precision": 2 / 3, "entity_recall": 2 / 4, "entity_f1": 4 / 7})
    assert metrics.compute(["entity_f1"], [["O"]], [["O"]]) == {"entity_f1": 0}


def test_classes():
    gold, predicted = np.array([1, 1, 0, 0, 1, 0, 1]), np.array([1, 0, 0, 1, 1, 0, 1])
    right, wrong_1, wrong_0 = 3, 1, 1       # true positives, false positives, false negatives
    zeros = 2
    scores = metrics.compute(["matthews", "accuracy", "f1", "macro_f1"], gold, predicted)
    assert list(scores) == ["matthews", "accuracy", "f1", "macro_f1"]
    assert scores["accuracy"] == pytest.approx(5 / 7)
    assert scores["f1"] == pytest.approx(2 * right / (2 * right + wrong_1 + wrong_0))
    assert scores["matthews"] == pytest.approx(np.corrcoef(gold, predicted)[0, 1])
    f1_of_0 = 2 * zeros / (2 * zeros + wrong_1 + wrong_0)
    assert scores["macro_f1"] == pytest.approx((scores["f1"] + f1_of_0) / 2)
    constant = metrics.compute(["matthews", "f1"], gold, np.zeros(7, int))
    assert constant == {"matthews": 0, "f1": 0}


def test_numbers():
    gold, predicted = np.array([0, 1, 2, 3, 5.0]), np.array([0.1, 4, 5, 4.5, 9])
    scores = metrics.compute(["pearson", "spearman"], gold, predicted)
    assert scores["pearson"] == pytest.approx(np.corrcoef(gold, predicted)[0, 1])
    ranks = [0, 1, 3, 2, 4]
    assert scores["spearman"] == pytest.approx(np.corrcoef(range(5), ranks)[0, 1])
    constant = metrics.compute(["pearson", "spearman"], gold, np.ones(5))
    assert constant == {"pearson": 0, "spearman": 0}


def test_several_labels():
    gold, predicted = np.array([[1, 0, 1], [0, 0, 0]]), np.array([[1, 1, 0], [0, 0, 0]])
    scores = metrics.compute(["micro_f1", "macro_f1", "exact_match"], gold, predicted)
    assert scores == pytest.approx({"micro_f1": 0.5, "macro_f1": 1 / 3, "exact_match": 0.5})


def test_one_label_that_an_example_may_have():
    """Its F1 is the one of the examples that have it, as where there are several labels."""
    gold, predicted = np.array([[1], [0], [0], [1]]), np.array([[1], [1], [0], [1]])
    of_label = 2 * 2 / (2 * 2 + 1 + 0)      # 2 TP / (2 TP + FP + FN)
    scores = metrics.compute(["micro_f1", "macro_f1", "exact_match"], gold, predicted)
    assert scores == pytest.approx({"micro_f1": of_label, "macro_f1": of_label,
                                    "exact_match": 0.75})
    for one in (gold, np.zeros_like(gold), np.ones_like(gold)):
        # A second label that all examples have, and that is always found, changes no count but TP.
        tp, both = (one & predicted).sum(), one.sum() + predicted.sum()
        two = [np.hstack([part, np.ones_like(part)]) for part in (one, predicted)]
        assert metrics.METRICS["micro_f1"](*two) == pytest.approx(
            2 * (tp + len(one)) / (both + 2 * len(one)))
        assert metrics.METRICS["micro_f1"](one, predicted) == pytest.approx(2 * tp / both)


def test_every_task_is_scored_by_known_metrics():
    of_groups = {"answer_set": {"group_em"}, "cloze": {"em"}}    # of questions, by their kinds
    for task in TASKS.values():
        known = set(metrics.METRICS) | of_groups.get(task.kind.name, set())
        assert set(task.metrics) <= known, task.name
