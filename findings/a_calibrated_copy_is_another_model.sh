#!/usr/bin/env bash
# MLstatkit 0.1.91: Delong_test gives p = 0.0 for a model and its calibrated copy, and for two models without a mistake.
#
# DeLong's test compares the areas under the ROC curves of two models on the same texts. Two models that order all pairs
# of a positive and a negative text alike have one area, and the variance of the difference is 0. So it is for a model
# before and after temperature or Platt scaling, for logits and their probabilities, for a copy in another file format,
# and if both models separate the classes without a mistake. Delong_test takes the bootstrap then, as documented. In
# each of its samples the difference is exactly 0. p is twice the smaller one of two shares: that of differences up to
# 0, which is 1, and that of differences above 0, which is 0. So p = 0.0, the surest difference that there is,
# beside z = 0.0. Nothing speaks for a difference, and p should be 1, as z = 0 and Permutation_test of the same package
# say. With one pair of texts in another order the usual way is taken, and p is 0.48.
#
# Test info["method"] == "bootstrap" and z == 0, and take p = 1 then. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mlstatkit==0.1.91 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - 2>"$folder/progress" <<'PYTHON' || { cat "$folder/progress"; exit 1; }
from importlib.metadata import version

import numpy as np
from MLstatkit import Delong_test, Permutation_test
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

print("MLstatkit", version("mlstatkit"))
rng = np.random.default_rng(0)
labels = rng.integers(0, 2, 200)
logits = labels + rng.normal(size=200)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def test(first, second, name, labels=labels):
    z, p, *_, one, other, info = Delong_test(labels, first, second, n_boot=500, random_state=0)
    permuted = Permutation_test(labels, first, second, metric_str="roc_auc", n_bootstraps=200)[2]
    print(f"{name}: areas {one:.4f} and {other:.4f}, z {z:.3f}, p {p:.4f}, by {info['method']}; "
          f"p of z {2 * norm.sf(abs(z)):.4f}, by permutation {permuted:.2f}")
    assert abs(one - roc_auc_score(labels, first)) < 1e-9 and abs(other - roc_auc_score(labels, second)) < 1e-9
    return z, p, info["method"], permuted


for second, name in ((sigmoid(logits / 2), "temperature 2"), (sigmoid(0.7 * logits - 0.3), "Platt scaling"),
                     (logits, "logits and probabilities"), (sigmoid(logits), "the same model twice")):
    assert test(sigmoid(logits), second, name) == (0, 0, "bootstrap", 1), "equal models are equal now"
first, second = labels + 0.1 * rng.uniform(size=200), labels + 0.1 * rng.uniform(size=200)
assert test(first, second, "two models without a mistake") == (0, 0, "bootstrap", 1), "equal models are equal now"

swapped = sigmoid(logits)
order = np.argsort(swapped)
place = next(place for place in range(100, 200) if labels[order[place]] != labels[order[place + 1]])
swapped[order[place]], swapped[order[place + 1]] = swapped[order[place + 1]], swapped[order[place]]
z, p, method, permuted = test(sigmoid(logits), swapped, "one pair in another order")
assert method == "delong" and 0.4 < p < 0.6, "one pair makes a difference"

wrong = 0
for seed in range(100):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 60)
    logits = labels + rng.normal(size=60)
    z, p = Delong_test(labels, sigmoid(logits), sigmoid(logits / 2), return_ci=False, return_auc=False, n_boot=50)
    wrong += p < 0.001
print(f"of 100 models {wrong} differ from their calibrated copies with p < 0.001")
assert wrong == 100
PYTHON
echo "as seen"
