"""Whether two models' answers to the same examples differ by more than chance."""

from collections.abc import Sequence

import lazy_loader
import numpy as np

_scipy = lazy_loader.load("scipy")

_RESAMPLES = 999


def p_value(labels: Sequence, first: Sequence, second: Sequence, metric: str = "accuracy") -> float:
    """The probability of a difference as large as that found, if both models were equally good.

    Numbers are compared by a permutation test: the two answers to an example change places at
    random. All others by a sign test on the examples that one model alone answers correctly.

    Args:
        labels: the right answers to N examples.
        first, second: the answers of two models.
        metric: of numbers: "pearson" or "spearman".
    """
    if np.asarray(first[0]).dtype.kind == "f":
        return _permutation(np.asarray(labels, float), np.asarray(first, float),
                            np.asarray(second, float), metric == "spearman")
    right = [np.array([np.array_equal(label, answer) for label, answer in zip(labels, answers)])
             for answers in (first, second)]
    wins, losses = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
    if not wins + losses:
        return 1.0
    return float(_scipy.stats.binomtest(wins, wins + losses).pvalue)


def _permutation(labels, first, second, by_rank):
    def correlation(answers, axis):
        target = _scipy.stats.rankdata(labels) if by_rank else labels
        if by_rank:
            answers = _scipy.stats.rankdata(answers, axis=axis)
        answers = answers - answers.mean(axis, keepdims=True)
        spread = np.sqrt((answers ** 2).sum(axis)) * np.linalg.norm(target - target.mean())
        return (answers * (target - target.mean())).sum(axis) / np.where(spread > 0, spread, 1.0)

    if np.array_equal(first, second):
        return 1.0
    found = _scipy.stats.permutation_test(
        (first, second), lambda x, y, axis: correlation(x, axis) - correlation(y, axis),
        permutation_type="samples", vectorized=True, n_resamples=_RESAMPLES, axis=-1,
        random_state=np.random.default_rng(0))
    return float(found.pvalue)
