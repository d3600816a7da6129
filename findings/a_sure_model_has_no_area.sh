#!/usr/bin/env bash
# pycm 4.6: the area under a precision-recall curve lacks its left part, and that of a perfect, sure model is 0.
#
# The area under this curve is the measure for rare classes, as toxic or fraudulent texts. pycm computes a point for
# each threshold and adds up the area between neighbouring points. The curve begins at recall 0, but pycm's first
# point is the recall at the highest threshold, and nothing is added on its left. With n positive texts of different
# scores 1/n is missing, so a perfect order of 4 gives 0.75. Where several of the best texts have one score, as of a
# fine-tuned encoder whose probabilities are rounded or near 1, all of them are missing: a model that gives each
# positive text 0.99 and each other text 0.01 has 0, the mark of the worst. Here a model with a wrong text among its
# first four has the larger area, and is chosen. ROCCurve lacked its first part too, until version 4.6 mended it
# (sepandhaghighi/pycm pull request 629). A warning speaks of values that are no numbers in some cases, and says
# nothing of the area.
#
# Use average_precision_score of scikit-learn. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycm==4.6 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from pycm import PRCurve, ROCCurve

print("pycm", version("pycm"))


def average_precision(gold, scores):
    """The sum of precision times the recall that each threshold adds."""
    total, recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        chosen = gold[scores >= threshold]
        total += chosen.mean() * (chosen.sum() / gold.sum() - recall)
        recall = chosen.sum() / gold.sum()
    return total


gold = np.array([1, 1, 1, 1] + [0] * 16)
others = np.linspace(0.05, 0.4, 16)
MODELS = {"perfect, sure": np.where(gold == 1, 0.99, 0.01), "perfect, one score": np.r_[[0.9] * 4, others],
          "perfect, four scores": np.r_[0.6, 0.7, 0.8, 0.9, others],
          "one wrong in the first four": np.r_[0.3, 0.7, 0.8, 0.9, others[:-1], 0.75]}
areas = {}
for name, scores in MODELS.items():
    arguments = {"actual_vector": gold, "probs": np.c_[1 - scores, scores], "classes": [0, 1]}
    areas[name] = (float(PRCurve(**arguments).area()[1]), average_precision(gold, scores),
                   float(ROCCurve(**arguments).area()[1]))
    print(f"{name:<28} precision-recall {areas[name][0]:.3f}, average precision {areas[name][1]:.3f}, "
          f"ROC {areas[name][2]:.3f}")
assert areas["perfect, sure"] == areas["perfect, one score"] == (0, 1, 1), "sure models have another area"
assert abs(areas["perfect, four scores"][0] - 0.75) < 1e-9, "the first quarter is there now"
wrong = areas["one wrong in the first four"]
assert wrong[0] > 0.4 and wrong[1] < 0.9 and wrong[2] < 1, "the worse model is not better now"
PYTHON
echo "as seen"
