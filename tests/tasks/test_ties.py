"""Equal scores: what they count, and that a model without a preference is named."""

import itertools
import types

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from bert_tf import metrics
from bert_tf.tasks.kinds.labelled import is_flat, says_nothing
from bert_tf.tasks.kinds.span import SquadPredictions
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import Example
from bert_tf.training import trials

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
