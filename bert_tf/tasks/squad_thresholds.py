"""From which odds on it is best to say that there is no answer."""

import numpy as np


def best_threshold(answers, predictions, odds, scores):
    """The threshold that makes the mean score best, as the official script of v2.0 finds it.

    It does not see that equal odds lie on one side of any threshold, and says 0.0 where it is best
    to answer nothing; `reachable_threshold` does.

    Args:
        answers: dict of question id -> list of str, empty where there is no answer.
        predictions: dict of question id -> str, "" for no answer.
        odds: dict of question id -> number; above the threshold, no answer is given.
        scores: dict of question id -> score of the prediction, whatever its odds.

    Returns:
        The mean score in percent, and the threshold.
    """
    totals, levels = _running_totals(answers, predictions, odds, scores)
    best = totals.argmax()
    return float(100.0 * totals[best] / len(scores)), [0.0, *levels][best]


def reachable_threshold(answers, predictions, odds, scores):
    """The threshold to apply so that the mean score is really the best.

    The arguments are those of `best_threshold`, but `predictions` are the best texts: none of them
    is "" because of a threshold.
    """
    totals, levels = _running_totals(answers, predictions, odds, scores)
    levels = np.array([np.nextafter(levels[0], -np.inf), *levels])
    last_of_equals = np.append(levels[1:] != levels[:-1], True)
    return float(levels[np.where(last_of_equals, totals, -np.inf).argmax()])


def _running_totals(answers, predictions, odds, scores):
    """The total score when nothing is answered, then with one question more answered at a time in
    the order of the odds [N + 1]; and these odds (a list)."""
    order = sorted((name for name in odds if name in scores), key=odds.get)
    gains = [scores[name] if answers[name] else -bool(predictions[name]) for name in order]
    impossible = sum(not texts for texts in answers.values())
    return np.cumsum([impossible, *gains], dtype=np.float64), [odds[name] for name in order]
