"""Scores against those of the official scripts, and predictions that are none."""

import pytest
import squad_case
from squad_case import questions, with_more_answers

from bert_tf.errors import InputError
from bert_tf.tasks.squad_scorer import (
    SCORERS,
    best_threshold,
    normalize,
    normalize_trivia,
    question_scores,
    reachable_threshold,
    score_v1,
    score_v2,
)

ANSWERS = {"q1": ["the Kings"], "q2": ["1895", "in 1895"], "q3": []}
RIGHT = {"q1": "kings", "q2": "1895", "q3": ""}


def stored(name, tmp_path):
    golden = squad_case.load(name, tmp_path).golden
    answers = {q["id"]: [answer["text"] for answer in q["answers"]]
               for q in questions(with_more_answers(golden["dataset"]))}
    return answers, golden["scores"]


def test_v1_scores_are_the_official(tmp_path):
    answers, cases = stored("cased_v1", tmp_path)
    for case in cases:
        scores, official = score_v1(answers, case["predictions"]), case["scores"]
        assert scores["exact_match"] == pytest.approx(100 * official["exact_match"], rel=1e-14)
        assert scores["f1"] == pytest.approx(100 * official["final_f1"], rel=1e-14)


def test_scores_of_trivia_qa():
    """triviaqa_evaluation.py, normalize_answer: punctuation and four quotes part words."""
    for text, form in (("The Rock-n-Roll", "rock n roll"), ("snow_white", "snow white"),
                       ("Rock ‘n’ Roll´s`", "rock n roll s"), ("O'Neill", "o neill"),
                       ("a-ha", "ha"), ("“quoted”", "“quoted”")):
        assert normalize_trivia(text) == form
    answers, predictions = {"q": ["rock n roll", "rock"]}, {"q": "the Rock-n'-roll"}
    assert score_v1(answers, predictions, SCORERS["trivia_qa"]) == {
        "exact_match": 100.0, "f1": 100.0}
    assert score_v1(answers, predictions) == {"exact_match": 0.0, "f1": 0.0}


# Exact match and F1 of the functions of each script.
CMRC = [("光荣和ω-force", "光荣和ω-Force开发", 0, 0.8), ("1963年", "于1963年。", 0, 0.8),
        ("《战国无双3》", "战国无双 3", 0, 1), ("3D Max 1,000%", "3d max 1,000", 0, 6 / 7),
        ("大辅", "乡里大辅先生", 0, 0.5), ("it's 好", "it's", 0, 0.8), ("北京", "上海", 0, 0),
        ("北京", "", 0, 0)]
KORQUAD = [("《삼국지》", "삼국지", 1, 1), ("1963년 3월", "1963년", 0, 5 / 6),
           ("‘나’의 집", "나의 집", 0, 1), ("서울특별시", "서울", 0, 4 / 7),
           ("Park's", "park s", 1, 1), ("부산", "서울", 0, 0), ("부산", "", 0, 0)]


@pytest.mark.parametrize("name, cases", [("cmrc", CMRC), ("korquad", KORQUAD)])
def test_scores_of_chinese_and_korean_answers_are_the_official(name, cases):
    """cmrc2018_evaluate.py and KorQuAD's evaluate-v1.0.py."""
    for answer, prediction, exact, f1 in cases:
        found = score_v1({"q": ["nothing", answer]}, {"q": prediction}, SCORERS[name])
        assert found == pytest.approx({"exact_match": 100 * exact, "f1": 100 * f1})


def test_v2_scores_and_thresholds_are_the_official(tmp_path):
    answers, cases = stored("lower_v2", tmp_path)
    for case in cases:
        official = {key.replace("final_", "best_"): value for key, value in case["scores"].items()
                    if not key.startswith("pr_")}
        assert score_v2(answers, case["predictions"], case["odds"]) == pytest.approx(
            official, rel=1e-14)


@pytest.mark.parametrize("text, expected", [
    ("The  King's, an apple!", "kings apple"), ("a", ""), ("", ""), ("THE\u00a0end", "end"),
    ("theme", "theme"), ("İstanbul—A", "i̇stanbul—"), ("1,895", "1895"), ("$ 5 %", "5")])
def test_normalised(text, expected):
    assert normalize(text) == expected


def test_empty_texts_agree_in_v2_and_overlap_nothing_in_v1():
    assert score_v1({"q": ["the"]}, {"q": "an"}) == {"exact_match": 100.0, "f1": 0.0}
    scores = score_v2({"q": ["the"]}, {"q": "an"})
    assert scores["exact"] == scores["f1"] == scores["HasAns_f1"] == 100.0
    assert "NoAns_f1" not in scores


def test_missing_predictions_score_nothing_in_v1_and_are_refused_in_v2():
    answers = {"q1": ["x"], "q2": ["y"]}
    assert score_v1(answers, {"q1": "x", "unknown": "z"}) == {"exact_match": 50.0, "f1": 50.0}
    with pytest.raises(InputError, match="no prediction, such as question 'q2'"):
        score_v2(answers, {"q1": "x"})
    with pytest.raises(InputError, match="no null odds, such as question 'q1'"):
        score_v2(answers, {"q1": "x", "q2": "y"}, {"q2": 0.5})


@pytest.mark.parametrize("wrong", [None, 3, ["1895"], {"text": "x"}, True])
def test_what_is_no_text_is_named(wrong):
    for score in (score_v1, score_v2):
        with pytest.raises(InputError, match="prediction of question 'q2' is .* no text"):
            score(ANSWERS, {**RIGHT, "q2": wrong})


@pytest.mark.parametrize("wrong", [None, "3", True, [1.0]])
def test_what_is_no_number_is_named(wrong):
    with pytest.raises(InputError, match="null odds of question 'q1' is .* no number"):
        score_v2(ANSWERS, RIGHT, {"q1": wrong, "q2": 0, "q3": 1})


def test_v1_needs_answers():
    with pytest.raises(InputError, match="'q3' has no correct answer"):
        score_v1(ANSWERS, RIGHT)


def test_odds_above_the_threshold_are_no_answer():
    odds = {"q1": 1.5, "q2": 1.0, "q3": 5}
    assert score_v2(ANSWERS, {**RIGHT, "q3": "x"}, odds)["exact"] == pytest.approx(200 / 3)
    assert score_v2(ANSWERS, RIGHT, odds, threshold=2)["exact"] == 100


def applied(texts, odds, threshold):
    return {name: "" if odds[name] > threshold else text for name, text in texts.items()}


@pytest.mark.parametrize("odds, texts, best", [
    ({"q1": 1.0, "q2": 1.0, "q3": 1.0}, {**RIGHT, "q3": "x"}, 200 / 3),     # all equal
    ({"q1": 2, "q2": 3, "q3": -4.5}, {"q1": "x", "q2": "y", "q3": "z"}, 100 / 3),   # none is best
    ({"q1": -1, "q2": -7, "q3": 4}, {**RIGHT, "q3": "x"}, 100.0),
])
def test_the_reachable_threshold_is_reached(odds, texts, best):
    for index, metric in enumerate(("exact", "f1")):
        scores = {name: pair[index] for name, pair in question_scores(ANSWERS, texts).items()}
        threshold = reachable_threshold(ANSWERS, texts, odds, scores)
        assert score_v2(ANSWERS, applied(texts, odds, threshold))[metric] == pytest.approx(best)


def test_the_official_threshold_does_not_see_ties():
    odds, texts = {"q1": 1.0, "q3": 1.0}, {"q1": "kings", "q3": "x"}
    answers = {name: ANSWERS[name] for name in odds}
    assert best_threshold(answers, texts, odds, {"q1": 1, "q3": 0}) == (100.0, 1.0)
