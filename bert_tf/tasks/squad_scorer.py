"""Scores of SQuAD, TriviaQA, KorQuAD and CMRC as in the official scripts: means in percent of the
best over the correct answers, compared without case, punctuation and extra spaces, in English
without a, an and the; and the threshold of the odds above which no answer is best."""

import collections
import difflib
import re
import string
import typing
from collections.abc import Callable

import numpy as np

from bert_tf.errors import InputError, from_extra

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TRIVIA_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´", " "))
_KOREAN_MARKS = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))
_CHINESE_MARKS = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CHINESE = re.compile("([\u4e00-\u9fa5])")


def normalize(text: str) -> str:
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def normalize_trivia(text: str) -> str:
    """The text in the form that TriviaQA's script compares: punctuation parts words."""
    return normalize(text.translate(_TRIVIA_PUNCTUATION))


def normalize_korean(text: str) -> str:
    """The text in the form that KorQuAD's script compares: quotes and brackets part words."""
    return " ".join(text.translate(_KOREAN_MARKS).lower().translate(_PUNCTUATION).split())


def normalize_chinese(text: str) -> str:
    return text.lower().strip().translate(_CHINESE_MARKS)


def exact(answer, prediction):
    return int(answer == prediction)


def f1(answer, prediction):
    """The harmonic mean of precision and recall of two normalised texts' words; 0 at the least."""
    return _f1_of_bags(answer.split(), prediction.split())


def character_f1(answer, prediction):
    """Returns `f1` of the characters but blanks, as KorQuAD's script does."""
    return _f1_of_bags(*("".join(text.split()) for text in (answer, prediction)))


def chinese_f1(answer, prediction):
    """Returns the harmonic mean of precision and recall of the longest run that two normalised
    texts have in common. Its units are Chinese characters, and the tokens that NLTK's
    `word_tokenize` makes of a line in other scripts, as in CMRC's script."""
    answer, prediction = _chinese_units(answer), _chinese_units(prediction)
    run = difflib.SequenceMatcher(None, answer, prediction, autojunk=False).find_longest_match()
    return _f1_of(run.size, answer, prediction)


def _chinese_units(text):
    nltk = from_extra("nltk.tokenize", "cmrc", "--scorer=cmrc")
    tokenizer, units = nltk.NLTKWordTokenizer(), []
    for part in _CHINESE.split(text):
        units += [part] if _CHINESE.match(part) else tokenizer.tokenize(part)
    return units


def _f1_of_bags(answer, prediction):
    common = (collections.Counter(answer) & collections.Counter(prediction)).total()
    return _f1_of(common, answer, prediction)


def _f1_of(common, answer, prediction):
    """Returns F1 of two sequences with `common` common elements."""
    if not common:
        return 0
    precision, recall = common / len(prediction), common / len(answer)
    return 2 * precision * recall / (precision + recall)


def f1_or_none(answer, prediction):
    """`f1` of v2.0, where a text without words claims that there is no answer."""
    return f1(answer, prediction) if answer and prediction else exact(answer, prediction)


class Scorer(typing.NamedTuple):
    """The functions of a script: `normalized` prepares a text, `f1` compares two of these texts."""

    normalized: Callable[[str], str]
    f1: Callable[[str, str], float]


SCORERS = {"squad": Scorer(normalize, f1), "trivia_qa": Scorer(normalize_trivia, f1),
           "korquad": Scorer(normalize_korean, character_f1),
           "cmrc": Scorer(normalize_chinese, chinese_f1)}


def score_v1(answers: dict, predictions: dict,
             scorer: Scorer = SCORERS["squad"]) -> dict[str, float]:
    """Returns exact_match and f1 of v1.1, in percent, from {question id: correct answers} and
    {question id: text}; a question without text scores 0. Raises InputError if a prediction is not
    text, or a question has no correct answer; names the id."""
    _check(predictions, str, "prediction")
    totals = np.zeros(2)
    for name, texts in answers.items():
        if not texts:
            raise InputError(f"question {name!r} has no correct answer, which only SQuAD v2.0 "
                             "allows; train with --version_2_with_negative, or leave out the "
                             "question.")
        if name in predictions:
            totals += _best_scores([*map(scorer.normalized, texts)],
                                   scorer.normalized(predictions[name]), scorer.f1)
    exact_match, mean_f1 = (100.0 * totals / len(answers)).tolist()
    return {"exact_match": exact_match, "f1": mean_f1}


def score_v2(answers: dict, predictions: dict, null_odds: dict | None = None,
             threshold: float = 1.0) -> dict[str, float]:
    """Returns the scores of v2.0 in percent: exact, f1, total; the same with HasAns_ and NoAns_
    before them, over the questions with and without an answer, if there are such; with null_odds
    also best_exact and best_f1 and the thresholds best_exact_thresh and best_f1_thresh.

    Args:
        answers: {question id: correct answers}, empty where there is no answer.
        predictions: {question id: text}, "" for no answer; every question must have one.
        null_odds: {question id: number}, the larger the likelier there is no answer.
        threshold: odds above it count as the prediction of no answer.
    """
    odds = dict.fromkeys(predictions, 0.0) if null_odds is None else null_odds
    _check(predictions, str, "prediction", answers)
    _check(odds, (int, float), "null odds", answers)
    raw = question_scores(answers, predictions)
    scores = raw | {name: [float(not answers[name])] * 2 for name in raw if odds[name] > threshold}
    result = _means(scores, answers)
    for prefix, has_answer in (("HasAns", True), ("NoAns", False)):
        if names := [name for name in answers if bool(answers[name]) == has_answer]:
            result |= {f"{prefix}_{key}": v for key, v in _means(scores, names).items()}
    if null_odds is not None:
        for index, key in enumerate(("exact", "f1")):
            best, at = best_threshold(answers, predictions, odds,
                                      {name: pair[index] for name, pair in raw.items()})
            result |= {f"best_{key}": best, f"best_{key}_thresh": at}
    return result


def question_scores(answers: dict, predictions: dict) -> dict:
    """Returns {question id: (exact match, 0 or 1, and F1, 0.0 to 1.0)} of v2.0.

    An answer of nothing but articles and punctuation counts as no answer."""
    return {name: _best_scores([*filter(None, map(normalize, texts))] or [""],
                               normalize(predictions[name]), f1_or_none)
            for name, texts in answers.items()}


def _best_scores(answers, prediction, overlap):
    return (max(exact(answer, prediction) for answer in answers),
            max(overlap(answer, prediction) for answer in answers))


def _means(scores, names):
    total = len(names)
    return {"exact": 100.0 * sum(scores[name][0] for name in names) / total,
            "f1": 100.0 * sum(scores[name][1] for name in names) / total, "total": total}


def _check(values, kind, what, questions=()):
    for name, value in values.items():
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f"the {what} of question {name!r} is {value!r}, which is "
                             f"{'no text' if kind is str else 'no number'}; correct it.")
    missing = [name for name in questions if name not in values]
    if missing:
        raise InputError(f"{len(missing)} of {len(questions)} questions have no {what}, such as "
                         f"question {missing[0]!r}; predict the whole file.")


def best_threshold(answers: dict, predictions: dict, odds: dict,
                   scores: dict) -> tuple[float, float]:
    """The best mean score in percent and its threshold, as the official script of v2.0. It ignores
    that equal odds lie on one side of any threshold, and returns 0.0 where it is best to answer
    nothing; `reachable_threshold` does neither. The arguments are `score_v2`'s; `scores` are
    {question id: score of the prediction, whatever its odds}."""
    totals, levels = _running_totals(answers, predictions, odds, scores)
    best = totals.argmax()
    return float(100.0 * totals[best] / len(scores)), [0.0, *levels][best]


def reachable_threshold(answers: dict, predictions: dict, odds: dict, scores: dict) -> float:
    """Returns the threshold that, applied, really gives the best mean score. Takes
    `best_threshold`'s arguments, but `predictions` are the best texts, whatever the threshold."""
    totals, levels = _running_totals(answers, predictions, odds, scores)
    levels = np.array([np.nextafter(levels[0], -np.inf), *levels])
    last_of_equals = np.append(levels[1:] != levels[:-1], True)
    return float(levels[np.where(last_of_equals, totals, -np.inf).argmax()])


def _running_totals(answers, predictions, odds, scores):
    """Returns the total scores when nothing is answered, then with one question more answered at a
    time in the order of the odds [N + 1]; and the list of these odds."""
    order = sorted((name for name in odds if name in scores), key=odds.get)
    gains = [scores[name] if answers[name] else -bool(predictions[name]) for name in order]
    impossible = sum(not texts for texts in answers.values())
    return np.cumsum([impossible, *gains], dtype=np.float64), [odds[name] for name in order]
