"""Every metric on twenty made cases, against its formula in plain Python: ties, one class, one
example, all right, all wrong, no words."""

import collections
import math
import random
import re
import statistics
import string

import numpy as np
import pytest

from bert_tf import metrics
from bert_tf.models.t5 import scores as text_scores
from bert_tf.models.t5.tasks import TEXT_TASKS

CASES = range(20)


def f1_of(label, gold, found):
    """F1 of a label, 0 without any."""
    both = sum(one == other == label for one, other in zip(gold, found))
    total = gold.count(label) + found.count(label)
    return 2 * both / total if total else 0.0


def accuracy(gold, found):
    return sum(one == other for one, other in zip(gold, found)) / len(gold)


def matthews(gold, found):
    """Gorodkin's form for any number of classes (2004, eq. 8)."""
    size, right = len(gold), sum(one == other for one, other in zip(gold, found))
    g, f = collections.Counter(gold), collections.Counter(found)
    cross = sum(g[label] * f[label] for label in g)
    spread = (size ** 2 - sum(n * n for n in f.values())) * (
        size ** 2 - sum(n * n for n in g.values()))
    return (right * size - cross) / math.sqrt(spread) if spread else 0.0


def pearson(gold, found):
    if len(gold) < 2 or len(set(gold)) == 1 or len(set(found)) == 1:
        return 0.0
    mean, other = statistics.fmean(gold), statistics.fmean(found)
    dot = sum((a - mean) * (b - other) for a, b in zip(gold, found))
    return dot / math.sqrt(sum((a - mean) ** 2 for a in gold) * sum(
        (b - other) ** 2 for b in found))


def ranks(values):
    """Ranks from 1; equal values share the mean of theirs."""
    return [sum(other < value for other in values) + (values.count(value) + 1) / 2
            for value in values]


def labels_of(case, classes):
    """Gold and predicted labels of a case."""
    rng = random.Random(case)
    size = (1, 2, 7, 30)[case % 4]
    gold = [rng.randrange(classes) for _ in range(size)]
    found = [one if rng.random() < 0.7 else rng.randrange(classes) for one in gold]
    return {0: (gold, found), 1: ([1] * size, found), 2: (gold, [0] * size), 3: (gold, gold),
            4: (gold, [(one + 1) % classes for one in gold])}[case % 5]


@pytest.mark.parametrize("case", CASES)
def test_classes(case):
    gold, found = labels_of(case, 2)
    arrays = np.array(gold), np.array(found)
    assert metrics.compute(("accuracy", "matthews", "f1"), *arrays) == pytest.approx({
        "accuracy": accuracy(gold, found), "matthews": matthews(gold, found),
        "f1": f1_of(1, gold, found)}, abs=1e-12)
    gold, found = labels_of(case, 3)
    arrays, seen = (np.array(gold), np.array(found)), sorted({*gold, *found})
    assert metrics.compute(("matthews", "macro_f1"), *arrays) == pytest.approx({
        "matthews": matthews(gold, found),
        "macro_f1": statistics.fmean(f1_of(label, gold, found) for label in seen)}, abs=1e-12)
    # Of T5's CB, over all three labels.
    assert text_scores.METRICS["mean_f1_of_3"](gold, found) == pytest.approx(
        statistics.fmean(f1_of(label, gold, found) for label in range(3)), abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_numbers(case):
    rng = random.Random(case)
    size = (1, 3, 9, 40)[case % 4]
    gold = [rng.randrange(6) + 0.0 for _ in range(size)]            # with ties
    found = [gold, [3.0] * size, [rng.randrange(4) / 2 for _ in range(size)],
             [one + rng.gauss(0, 1) for one in gold], [-one for one in gold]][case % 5]
    scores = metrics.compute(("pearson", "spearman"), np.array(gold), np.array(found))
    assert scores == pytest.approx({"pearson": pearson(gold, found),
                                    "spearman": pearson(ranks(gold), ranks(found))}, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_several_labels(case):
    rng = random.Random(case)
    gold, found = ([[rng.randrange(2) * (case % 5 != empty) for _ in range(3)]
                    for _ in range((1, 2, 9)[case % 3])] for empty in (1, 2))
    flat = [[cell for row in rows for cell in row] for rows in (gold, found)]
    columns = [([row[i] for row in gold], [row[i] for row in found]) for i in range(3)]
    assert metrics.compute(("micro_f1", "macro_f1", "exact_match"), np.array(gold),
                           np.array(found)) == pytest.approx({
        "micro_f1": f1_of(1, *flat), "exact_match": accuracy(gold, found),
        "macro_f1": statistics.fmean(f1_of(1, *pair) for pair in columns)}, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_candidates(case):
    rng = random.Random(case)
    size, choices = (1, 2, 8)[case % 3], 2 + case % 4
    gold = [rng.randrange(choices) for _ in range(size)]
    found = [rng.sample(range(choices), choices) for _ in range(size)]
    of_right = [row[label] for row, label in zip(found, gold)]
    right = sum((rank == 0) == (place == label) for row, label in zip(found, gold)
                for place, rank in enumerate(row))
    assert metrics.compute(("candidate_accuracy", "precision_at_1", "mrr"), np.array(gold),
                           np.array(found)) == pytest.approx({
        "candidate_accuracy": right / (size * choices), "precision_at_1": of_right.count(0) / size,
        "mrr": statistics.fmean(1 / (1 + rank) for rank in of_right)}, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_pairs_have_one_answer(case):
    """As jiant/metrics/winogender_metrics.py of nyu-mll/jiant-v1-legacy pairs them."""
    rng = random.Random(case)
    pairs = [[rng.randrange(2) for _ in range(2)] for _ in range((1, 2, 9)[case % 3])]
    found = [label for pair in pairs for label in pair]
    wanted = {"gender_parity": statistics.fmean(len(set(pair)) == 1 for pair in pairs)}
    for rest in ([], [1]):
        assert metrics.compute(wanted, np.zeros(len(found + rest)), np.array(found + rest)
                               ) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_answers_to_a_question_are_right_together(case):
    """MultiRC: F1 of the right answers, and the share of questions without a mistake."""
    gold, found = labels_of(case, 2)
    groups = [place % 3 for place in range(len(gold))]
    right = [all(g == f for g, f, mine in zip(gold, found, groups) if mine == group)
             for group in sorted(set(groups))]
    examples = [text_scores.TextExample("", str(bool(one)), group=(group,))
                for one, group in zip(gold, groups)]
    scores = text_scores.score(TEXT_TASKS["super_glue_multirc"], examples,
                               [str(bool(one)) for one in found])
    assert scores == pytest.approx({"f1": 100 * f1_of(1, gold, found),
                                    "group_em": 100 * statistics.fmean(right)}, abs=1e-9)


ANSWERS = ["The cat", "a  cat", "cat.", "", "the", "Cat sat, on", "on the mat", "(cat) cat",
           "café", "u.s.", "an"]


def official_normalize(text):
    """Lower case, no marks, no articles, single blanks, one after the other."""
    text = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


@pytest.mark.parametrize("case", CASES)
def test_answers(case):
    rng = random.Random(case)
    answers = [rng.choices(ANSWERS, k=rng.randint(1, 3)) for _ in range(5)]
    found = rng.choices(ANSWERS, k=5)
    exact, overlap = [], []
    for texts, prediction in zip(answers, found):
        words = official_normalize(prediction).split()
        exact.append(max(official_normalize(text) == " ".join(words) for text in texts))
        scores = []
        for gold in (official_normalize(text).split() for text in texts):
            both = sum((collections.Counter(gold) & collections.Counter(words)).values())
            scores.append(2 * both / (len(gold) + len(words)) if both else 0)
        overlap.append(max(scores))
    for name, expected in (("em", exact), ("answer_f1", overlap)):
        assert text_scores.METRICS[name](answers, found) == pytest.approx(
            statistics.fmean(expected), abs=1e-12)
