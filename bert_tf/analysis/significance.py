"""Significance of the difference between two models' answers to the same examples."""

from collections.abc import Sequence

import lazy_loader
import numpy as np

from bert_tf import metrics

_scipy = lazy_loader.load("scipy")

_RESAMPLES = 999
_BATCH = 100        # resamples in memory at a time


def p_value(labels: Sequence, first: Sequence, second: Sequence, metric: str = "accuracy") -> float:
    """Returns the probability of a difference at least as large, if both models were equally good.

    Numbers and translations are compared with a permutation test: the two answers to an example
    are exchanged at random. Other answers are compared with a sign test on the examples that
    exactly one model answers correctly: whose answer equals the label. `metric` is "pearson" or
    "spearman" for numbers, and "bleu" for translations.
    """
    if len(labels) < 2 and metric in ("bleu", "pearson", "spearman"):
        return 1.0      # the exchange of one answer only turns the difference round
    if metric == "bleu":
        return _permutation_of_counts(*(metrics.bleu_counts(labels, answers)
                                        for answers in (first, second)))
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
    """Brings answers to one scale, as both correlations are free of scale, then exchanges them."""
    def standard(values):
        if by_rank:
            values = _scipy.stats.rankdata(values)
        values = values - values.mean()
        return values / (values.std() or 1.0)

    target = standard(labels)

    def difference(one, other, axis):
        correlations = [(answers * target).mean(axis) / np.maximum(answers.std(axis), 1e-12)
                        for answers in (one, other)]
        return correlations[0] - correlations[1]

    first, second = standard(first), standard(second)
    if np.allclose(first, second, atol=1e-9):
        return 1.0
    return _exchanged(first, second, difference)


def _permutation_of_counts(first, second):
    """Exchanges the counts of two translations of a sentence, int [n, 10] each."""
    if np.array_equal(first, second):
        return 1.0
    rows, size = np.concatenate([first, second]), len(first)

    def difference(one, other, axis):
        return np.subtract(*(np.apply_along_axis(
            metrics.bleu_of_counts, -1, rows[places].sum(axis - 1)) for places in (one, other)))

    return _exchanged(np.arange(size), np.arange(size, 2 * size), difference, _BATCH)


def _exchanged(first, second, difference, batch=None):
    return float(_scipy.stats.permutation_test(
        (first, second), difference, permutation_type="samples", vectorized=True,
        n_resamples=_RESAMPLES, batch=batch, axis=-1, random_state=np.random.default_rng(0)).pvalue)
