#!/usr/bin/env bash
# confidenceinterval 1.0.5: the default intervals of macro precision and macro F1 don't hold what they promise.
#
# The package is made for a line in a paper: a score of scikit-learn with its 95% interval, which comes from a formula
# unless a bootstrap is asked for. Two steps of the formulas are wrong. For macro F1 a sum stands where the paper it
# follows has a product: the interval of a test set without one mistake reaches from 0.935 to 1.065, and at 95%
# accuracy on two even classes it is over four times as wide as it should be. So a real gain looks like noise. For macro
# precision, macro recall and the F1 of two classes, the covariance of the counts is computed as p * p.transpose() of
# a flat array, which is the squares and not the products of all pairs. With one common class and two rare ones, the
# "95%" interval of macro precision holds the true value in 80 of 100 test sets, so noise looks like a real gain.
# Accuracy and the micro averages are right. No warning comes.
#
# Pass method="bootstrap_percentile". Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check confidenceinterval==1.0.5 scikit-learn==1.9.1 \
    statsmodels==0.15.0 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W error - <<'PYTHON'
from importlib.metadata import version

import confidenceinterval
import numpy as np

print("confidenceinterval", version("confidenceinterval"))
gold = np.arange(300) % 3
score, (low, high) = confidenceinterval.f1_score(gold, gold, average="macro")
print(f"300 of 300 right: macro F1 {score:.3f}, from {low:.3f} to {high:.3f}")
assert low < 0.94 and high > 1.06, "the interval of a perfect score is another one"

TEXTS, SETS = 300, 500
DATA = {"two even classes": ([0.5, 0.5], 0.95), "one common, two rare": ([0.8, 0.1, 0.1], 0.7)}
results = {}
for name, (shares, certainty) in DATA.items():
    classes = len(shares)
    joint = np.diag(shares) * certainty + np.outer(shares, np.full(classes, (1 - certainty) / classes))
    precision, recall = np.diag(joint) / joint.sum(0), np.diag(joint) / joint.sum(1)
    truth = {"accuracy": np.trace(joint), "precision": precision.mean(), "recall": recall.mean(),
             "f1": (2 * precision * recall / (precision + recall)).mean()}
    for measure, true in truth.items():
        function, options = getattr(confidenceinterval, measure + "_score"), {"average": "macro"}
        if measure == "accuracy":
            options = {}
        rng, holds, widths, scores = np.random.default_rng(0), 0, [], []
        for _ in range(SETS):
            texts = rng.choice(joint.size, TEXTS, p=joint.ravel())
            score, (low, high) = function(*np.divmod(texts, classes), **options)
            holds += low <= true <= high
            widths.append(high - low)
            scores.append(score)
        right_width = 2 * 1.96 * np.std(scores)
        results[name, measure] = holds / SETS, np.mean(widths) / right_width
        print(f"{name:<21}{measure:<10} holds the true value in {holds / SETS:6.1%}, "
              f"{np.mean(widths) / right_width:.2f} times as wide as the scores are spread")
assert results["two even classes", "f1"][1] > 3.5, "macro F1 has a narrower interval"
assert results["one common, two rare", "precision"][0] < 0.85, "macro precision has a wider interval"
for name in DATA:
    holds, width = results[name, "accuracy"]
    assert 0.92 < holds < 0.98 and 0.9 < width < 1.1, "the interval of accuracy is wrong too"

rng = np.random.default_rng(1)
joint = joint.ravel()                          # the common class and the rare ones
holds = 0
for _ in range(40):
    gold, predicted = np.divmod(rng.choice(joint.size, TEXTS, p=joint), 3)
    _, (low, high) = confidenceinterval.precision_score(
        gold, predicted, average="macro", method="bootstrap_percentile", n_resamples=200, random_state=0)
    holds += low <= truth["precision"] <= high
print(f"the same precision, bootstrap: holds the true value in {holds} of 40")
assert holds >= 36, "the bootstrap fails too"
PYTHON
echo "as seen"
