#!/usr/bin/env bash
# netcal 1.4.0: HistogramBinning gives a confidence on the edge of two bins the accuracy of the bin below, so that
# 7 of 8 votes get the accuracy of 6 of 8.
#
# Histogram binning replaces a confidence by the share of right answers in its bin. fit counts a number on an edge for
# the bin above it (scipy's binned_statistic_dd), and transform looks it up in the bin below it (numpy.digitize with
# right=True). Confidences with many digits don't meet an edge. Votes do: 8 passes with dropout, or 8 models, give
# 0.125, 0.25 and so on, the edges of 8 bins. Each number of votes but 0 and 8 then gets the accuracy of one vote
# less. 10 votes with the default 10 bins are worse, as some edges are off by a rounding error: 9 of 10 get the 0.65 of
# 8 of 10, and 8 of 10 get 0.75, the middle of a bin without a text. So the more certain answer has the lower number,
# and the calibration error of the very texts that were fitted is 0.07 in place of 0.02. Scores of two digits lie on an
# edge one time in eleven. With several classes each class has such a binning and the same error. No warning comes.
#
# Add 1e-9 to all confidences below 1, for fit and for transform. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1 tqdm==4.70.1
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps netcal==1.4.0    # without its plots
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from netcal.binning import HistogramBinning

print("netcal", version("netcal"))
rng = np.random.default_rng(0)


def texts(votes, count=20000):
    """The votes of each text, whether it is right, and the accuracy for each number of votes."""
    numbers = rng.integers(0, votes + 1, count)
    right = (rng.random(count) < (numbers / votes) ** 2).astype(int)
    return numbers, right, np.array([right[numbers == number].mean() for number in range(votes + 1)])


numbers, right, accuracy = texts(8)
binning = HistogramBinning(bins=8).fit(numbers / 8, right)
calibrated = binning.transform(np.arange(9) / 8)
print("8 votes: accuracy  ", accuracy.round(2), "\n         calibrated", calibrated.round(2))
assert np.allclose(calibrated[1:8], accuracy[:7]), "an edge belongs to the bin above now"
assert np.isclose(calibrated[8], right[numbers >= 7].mean()), "8 of 8 is wrong too"

numbers, right, accuracy = texts(10)
binning = HistogramBinning(bins=10).fit(numbers / 10, right)
calibrated = binning.transform(np.arange(11) / 10)
error = np.abs(calibrated - accuracy)[numbers].mean()
print("10 votes: accuracy  ", accuracy.round(2), "\n          calibrated", calibrated.round(2))
print("calibration error of the fitted texts", error.round(3))
assert np.isclose(calibrated[9], accuracy[8]) and calibrated[8] == 0.75 > calibrated[9], "8 and 9 votes are otherwise"


def moved(confidences):
    return np.where(confidences < 1, confidences + 1e-9, confidences)


binning = HistogramBinning(bins=10).fit(moved(numbers / 10), right)
good = binning.transform(moved(np.arange(11) / 10))
shared = right[numbers >= 9].mean()                 # 9 and 10 votes have one bin
best = np.abs(np.append(accuracy[:9], [shared] * 2) - accuracy)[numbers].mean()
print("with 1e-9 more", good.round(2), "error", np.abs(good - accuracy)[numbers].mean().round(3))
assert np.allclose(good[:9], accuracy[:9]) and np.allclose(good[9:], shared), "the remedy does not help"
assert error > 0.05 and best < 0.025, "the error is not what it was"

classes = rng.dirichlet((1, 1, 1), 3000)
gold = np.array([rng.choice(3, p=row) for row in classes])
votes = np.array([rng.multinomial(8, row) for row in classes])
table = HistogramBinning(bins=8, independent_probabilities=True).fit(votes / 8, gold).transform(votes / 8)
for label in range(3):
    share = [(gold[votes[:, label] == number] == label).mean() for number in range(8)]
    seen = [table[votes[:, label] == number, label][0] for number in range(8)]
    assert np.allclose(seen[1:], share[:-1]), "a class of several is right"
print("three classes: each as with one")
digits = rng.random(100000).round(2)
edges = np.linspace(0, 1, 11)
print("on an edge with two digits", np.isclose(digits[:, None], edges[1:-1]).any(1).mean().round(3))
assert 0.08 < np.isclose(digits[:, None], edges[1:-1]).any(1).mean() < 0.1
PYTHON
echo "as seen"
