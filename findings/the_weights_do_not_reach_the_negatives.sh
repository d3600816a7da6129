#!/usr/bin/env bash
# imbalanced-learn 0.14.2: with sample_weight the specificity counts true negatives without weights, so that it is near
# 1 with small weights and 16.8 with large ones, and geometric mean, balanced accuracy index and report follow it.
#
# sensitivity_specificity_support counts, for each class, the texts of it, those that are predicted so and those that
# are both, each with its weight. The true negatives are what is left. It takes this from y_true.size, the number of
# texts, in place of the sum of the weights. With weights that have the mean 1 the class counts are right and the rest
# is right by chance. If they sum to 1, as weights that come from probabilities do, the specificity of each class is
# 0.99 and more, for a classifier that guesses too. With the weight 10 for each, which changes nothing in any other
# measure, it is 1.1, 1.8 and 16.8, and the geometric mean 3.6. Weights "balanced" for many classes, or of annotators'
# trust, are not of mean 1 in a part of the data, as in a fold or a split. specificity_score, geometric_mean_score with
# any average but "multiclass", make_index_balanced_accuracy and the columns spe, geo and iba of
# classification_report_imbalanced are wrong; the columns pre, rec and f1 beside them are right. No error comes. The
# documentation is silent, and the project has an open report of June 2026:
# https://github.com/scikit-learn-contrib/imbalanced-learn/issues/1180.
#
# Divide the weights by their mean first: sample_weight=w / w.mean(). Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check imbalanced-learn==0.14.2 scikit-learn==1.9.1 \
    numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from imblearn.metrics import classification_report_imbalanced, geometric_mean_score, specificity_score
from sklearn.metrics import confusion_matrix, recall_score

print("imbalanced-learn", version("imbalanced-learn"))
rng = np.random.default_rng(0)
truth = rng.choice(3, 600, p=[0.7, 0.2, 0.1])
guess = np.where(rng.uniform(size=600) < 0.6, truth, rng.integers(0, 3, 600))
chance = rng.integers(0, 3, 600)
trust = rng.uniform(0.2, 1.0, 600)


def right(predicted, weights):
    """The specificity of each class and the mean of the geometric means, from scikit-learn's weighted table."""
    table = confusion_matrix(truth, predicted, sample_weight=weights)
    hits = np.diag(table)
    others = table.sum() - table.sum(1)
    negatives = others - (table.sum(0) - hits)
    return negatives / others, np.sqrt(negatives / others * hits / table.sum(1))


for name, weights in (("no weights", None), ("each 10", np.full(600, 10.0)), ("each 0.1", np.full(600, 0.1)),
                      ("trust", trust), ("sum of 1", trust / trust.sum()), ("trust by its mean", trust / trust.mean())):
    seen = specificity_score(truth, guess, average=None, sample_weight=weights)
    means = geometric_mean_score(truth, guess, average=None, sample_weight=weights)
    expected, expected_means = right(guess, weights)
    guessed = specificity_score(truth, chance, average=None, sample_weight=weights)
    report = classification_report_imbalanced(truth, guess, sample_weight=weights, output_dict=True)
    print(f"{name:<18}specificity {np.round(seen, 3)}, right {np.round(expected, 3)};",
          f"geometric mean {np.round(means, 3)} right {np.round(expected_means, 3)}; by chance {np.round(guessed, 3)}")
    rows = [report[str(number)] for number in range(3)]
    assert np.allclose([row["spe"] for row in rows], seen, equal_nan=True)
    assert np.allclose([row["geo"] for row in rows], means, equal_nan=True)
    assert np.allclose([row["rec"] for row in rows], recall_score(truth, guess, average=None, sample_weight=weights))
    if name in ("no weights", "trust by its mean"):
        assert np.allclose(seen, expected) and np.allclose(means, expected_means)
        continue
    assert not np.isclose(seen, expected, atol=0.01).any(), "the weights reach the negatives now"
    table = confusion_matrix(truth, guess, sample_weight=weights)
    negatives = 600 - table.sum(0) - table.sum(1) + np.diag(table)
    assert np.allclose(seen, negatives / (negatives + table.sum(0) - np.diag(table)))
    if name == "each 10":
        assert np.allclose(expected, right(guess, None)[0]) and seen.min() > 1 and 16 < seen.max() < 17.5
        assert 3.5 < means.max() < 3.8
    if name == "sum of 1":
        assert seen.min() > 0.99 and guessed.min() > 0.99
PYTHON
echo "as seen"
