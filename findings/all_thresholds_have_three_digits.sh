#!/usr/bin/env bash
# unitxt 1.26.10: BinaryMaxF1, which "tests all possible thresholds", tests those with three digits: where a classifier
# is sure of itself, the best F1 of 0.98 is given as 0.06 or 0.46.
#
# Rerankers and classifiers of a rare class give probabilities by a sigmoid that are all near 0, or all near 1, and
# still order the texts well; the best threshold is to be found in the data, and this metric is for that. The code
# takes round(probability, 3) of all predictions for the thresholds. With logits of -11 for negative and of -8 for
# positive texts the probabilities round to 0.0 and 0.001, and what is left is the threshold that takes every text for
# positive; with logits of 6 and 9 no threshold lies between 0.999 and 1.0, at which nothing is found. From
# the same scores before the sigmoid the metric finds the F1 of scikit-learn's precision_recall_curve. best_thr_maxf1
# is the rounded value too, and rounding up leaves out the text that it comes from. No warning tells of it.
#
# Give the logits, or take scikit-learn. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check unitxt==1.26.10 datasets==5.2.0 scipy==1.17.1 \
    pandas==3.1.1 numpy==2.4.6 scikit-learn==1.9.1
HF_HUB_OFFLINE=1 HF_HOME="$folder/home" "$folder/venv/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import precision_recall_curve, roc_auc_score
from unitxt.metrics import BinaryMaxF1
from unitxt.stream import MultiStream

warnings.simplefilter("ignore", UndefinedMetricWarning)
print("unitxt", version("unitxt"), "scikit-learn", version("scikit-learn"))
generator = np.random.default_rng(0)
gold = (np.arange(400) < 12).astype(int)
noise = 0.6 * generator.normal(size=400)


def unitxt(scores):
    rows = [{"prediction": float(score), "references": [float(label)], "task_data": {}}
            for score, label in zip(scores, gold)]
    result = list(BinaryMaxF1(n_resamples=None)(MultiStream.from_iterables({"test": rows}))["test"])[0]
    return result["score"]["global"]["max_f1_binary"], result["score"]["global"]["best_thr_maxf1"]


found = {}
for negative, positive in ((-11, -8), (6, 9), (-2, 1)):
    logits = np.where(gold, positive, negative) + noise
    probabilities = 1 / (1 + np.exp(-logits))
    precision, recall, _ = precision_recall_curve(gold, probabilities)
    best = (2 * precision * recall / np.maximum(precision + recall, 1e-9)).max()
    found[negative] = (*unitxt(probabilities), *unitxt(logits), best)
    print(f"logits about {negative} and {positive}, probabilities {probabilities.min():.5f} to"
          f" {probabilities.max():.5f}, AUC {roc_auc_score(gold, probabilities):.3f}:"
          f" best F1 {found[negative][0]:.2f} at {found[negative][1]},"
          f" of the logits {found[negative][2]:.2f}, scikit-learn {best:.2f}")
for negative in (-11, 6):
    assert found[negative][0] < 0.6, "all thresholds are tested now"
assert all(abs(values[2] - values[4]) < 0.05 and values[4] > 0.9 for values in found.values())
assert abs(found[-2][0] - found[-2][4]) < 0.05
PYTHON
echo "as seen"
