"""Scores against their formulas in plain Python, on made cases with ties, one class, one example,
no words; entity F1 against conlleval, retold from its Perl."""

import collections
import itertools
import math
import random
import re
import statistics
import string
import types

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from bert_tf import metrics
from bert_tf.metrics import entities, to_bio
from bert_tf.models.t5 import scores as text_scores
from bert_tf.models.t5.tasks import TEXT_TASKS
from bert_tf.tasks.kinds.labelled import is_flat, says_nothing
from bert_tf.tasks.kinds.span import SquadPredictions
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import Example
from bert_tf.training import trials

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


# Formulas

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
    scores = metrics.compute(("matthews", "accuracy", "f1"), *arrays)
    assert list(scores) == ["matthews", "accuracy", "f1"] and scores == pytest.approx({
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


# Ties

RANKING = KINDS["ranking"]


def by_all_orders(scores, label):
    """The means of precision@1, MRR and accuracy of candidates over all orders that the scores
    allow, each order as likely as another."""
    orders = [order for order in itertools.permutations(range(len(scores)))
              if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))]
    places = [order.index(label) for order in orders]
    is_right = [[(candidate == order[0]) == (candidate == label) for candidate in order]
                for order in orders]
    return [np.mean([place == 0 for place in places]), np.mean([1 / (1 + p) for p in places]),
            np.mean(is_right)]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_tied_candidates_count_what_chance_gives(count):
    random = np.random.default_rng(count)
    scores = random.integers(0, 3, [40, count]).astype(np.float32)
    labels = random.integers(0, count, 40)
    ranks = RANKING.decode(TASKS["qnnli"], {"logits": scores}, [], {})
    expected = np.mean([by_all_orders(*one) for one in zip(scores, labels)], 0)
    names = "precision_at_1", "mrr", "candidate_accuracy"
    assert metrics.compute(names, labels, ranks) == pytest.approx(dict(zip(names, expected)))


def test_ranks_without_ties_score_the_same_bits():
    random = np.random.default_rng(0)
    scores, labels = random.normal(size=[100, 7]), random.integers(0, 7, 100)
    ranks = RANKING.decode(TASKS["qnnli"], {"logits": scores}, [], {})
    assert (ranks == (-scores).argsort(-1).argsort(-1)).all()
    of_right = ranks[np.arange(100), labels]
    assert metrics.compute(RANKING.own_metrics, labels, ranks) == {
        "candidate_accuracy": np.mean((ranks == 0) == (np.arange(7) == labels[:, None])),
        "precision_at_1": np.mean(of_right == 0), "mrr": np.mean(1 / (1 + of_right))}


def test_tied_candidates_give_one_line_of_a_submission():
    ranks = np.array([[0, 0], [1, 0]])
    yes, no = TASKS["qnnli"].labels
    assert RANKING.submission(TASKS["qnnli"], ranks) == [yes, no, no, yes]
    examples = [Example(["q", "a", "b"], 0)] * 2
    assert RANKING.compared(TASKS["qnnli"], examples, ranks)[1].tolist() == [-1, 1]


def judged(kind, logits, labels):
    task, examples = TASKS["mnli"], [Example(["a"], label) for label in labels]
    answers = {"logits": np.array(logits, np.float32)}
    predicted = kind.decode(task, answers, examples, {})
    return (kind.against_ties(task, answers, examples, predicted),
            kind.is_degenerate(task, answers, examples, predicted))


@pytest.mark.parametrize("name", ["classification", "multiple_choice"])
def test_a_tie_of_labels_counts_a_wrong_one(name):
    kind = KINDS[name]
    logits = [[1, 1, 0], [1, 1, 0], [1, 1, 0], [0, 2, 1], [3, 3, 3], [np.nan, 0, 0]]
    found, is_degenerate = judged(kind, logits[:5], [0, 1, 2, 1, 0])
    assert found.tolist() == [1, 0, 0, 1, 1] and not is_degenerate
    assert accuracy_score([0, 1, 2, 1, 0], found) == 1 / 5
    found, is_degenerate = judged(kind, logits, [0, 1, 2, 1, 0, 0])
    assert found[-1] != 0 and is_degenerate


@pytest.mark.parametrize("name", ["classification", "multiple_choice", "ranking", "tagging"])
@pytest.mark.parametrize("value", [0.0, 7.25, np.nan])
def test_scores_that_do_not_differ_are_degenerate(name, value):
    kind, examples = KINDS[name], [Example(["a", "b", "c"], 0)] * 4
    answers = {"logits": np.full([4, 2], value, np.float32)}
    assert kind.is_degenerate(TASKS["mnli"], answers, examples, np.zeros([4, 2], int))
    answers["logits"] = np.tile(np.array([[1.0, 0.5]], np.float32), [4, 1])
    assert kind.is_degenerate(TASKS["mnli"], answers, examples, np.zeros(4, int)) is False


def test_a_collapsed_ranker_is_degenerate_in_spite_of_rounding():
    logits = np.array([[2.0, 2.0000002], [2.0, 2.0]], np.float32)
    assert says_nothing({"logits": logits}) and is_flat(logits.max(-1), logits.min(-1))
    assert not says_nothing({"logits": logits + [[0, 0.001], [0, 0]]})
    # Several labels of one probability are an answer; so is a number.
    assert not says_nothing({"logits": logits}, excludes=False)
    assert says_nothing({"values": np.array([[1.0], [np.nan]])})


def test_a_query_without_a_preferred_candidate_is_wrong():
    kind, task = KINDS["cloze"], TASKS["record"]
    examples = [Example(["p", "q"], label, query) for query, label in (
        (0, 1), (0, 0), (1, 0), (1, 1), (1, 0))]
    likely = np.array([0.5, 0.5, 0.1, 0.9, 0.2])
    answers = {"probabilities": np.stack([1 - likely, likely], 1)}
    predicted = kind.decode(task, answers, examples, {})
    assert predicted.tolist() == [1, 0, 0, 1, 0]
    assert kind.against_ties(task, answers, examples, predicted).tolist() == [0, 1, 0, 1, 0]
    assert not kind.is_degenerate(task, answers, examples, predicted)
    flat = {"probabilities": np.full([5, 2], 0.5)}
    assert kind.is_degenerate(task, flat, examples, predicted)


def test_equal_scores_of_all_positions_are_degenerate():
    predictions = types.SimpleNamespace(_answers={"a": ("x",), "b": ("y",)}, _threshold=0.0)
    given = [types.SimpleNamespace(answer=lambda threshold, text=text: text) for text in "xy"]
    flat = {name: np.full([2, 8], 0.25, np.float32) for name in ("start_logits", "end_logits")}
    assert SquadPredictions.is_degenerate(predictions, flat, given)
    flat["end_logits"][1, 3] = 1.0
    assert not SquadPredictions.is_degenerate(predictions, flat, given)


def test_a_degenerate_result_is_never_the_best():
    assert trials.rank({"mrr": 0.1}, "mrr", False) > trials.rank({"mrr": 1.0}, "mrr", True)
    assert trials.rank({"mrr": 0.1}, "mrr", False) > trials.rank({"mrr": np.nan}, "mrr", False)
