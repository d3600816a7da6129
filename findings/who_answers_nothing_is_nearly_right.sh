#!/usr/bin/env bash
# ranky 1.0.0: with several labels, metric gives each text without a label the first one, in the truth too, so a model
# that answers nothing gets an F1 of 0.85; with two classes the area under the ROC curve is that of the rounded answers.
#
# ranky compares and ranks models by many measures, and metric(y_true, y_pred, method) computes them from labels and
# probabilities, "one row per example, one column per class". Two of its preparations change what is measured.
# "If unilabel is False, it is the multi-label case", and False is the default. Then answers are rounded at 0.5 with
# at_least_one_class=True, which sets the most probable class if none is above. It is applied to the truth as well: in a
# row of zeros the most probable class is the first. Where 81% of the texts have no label, as with abuse or rare topics,
# the model with zeros for all has the F1 0.85, precision 0.85, recall 0.84, where scikit-learn has 0 for each. A model
# that gives each label less than 0.5 at random, and so answers nothing too, has 0.21.
# For two columns, the answers are turned into the number of the larger one before every method, not only before those
# that need it: "roc_auc", "average_precision", "mxe" (log loss), "mse", "rmse", "mae" and "sar" don't see the
# probabilities. The area is 0.84 in place of 0.92, the log loss 5.9 in place of 0.36, and a model that is four times as
# sure as it should be has the same numbers as the calibrated one. With three columns the probabilities are used.
#
# Take scikit-learn's functions. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ranky==1.0.0 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1 pandas==3.1.1 matplotlib==3.11.2
MPLCONFIGDIR="$folder" "$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import ranky
from sklearn import metrics

print("ranky", version("ranky"), "numpy", np.__version__)
rng = np.random.default_rng(0)
labels = (rng.random((2000, 5)) < 0.04).astype(int)
print(f"texts without a label: {(labels.sum(1) == 0).mean():.0%}")
models = {"nothing": np.zeros((2000, 5)), "less than 0.5 by lot": 0.49 * rng.random((2000, 5)), "right": labels * 1.0}
f1 = {}
for name, chances in models.items():
    own = [ranky.metric(labels, chances, method) for method in ("f1_score", "precision", "recall")]
    right = [f(labels, (chances > 0.5).astype(int), average="micro", zero_division=0)
             for f in (metrics.f1_score, metrics.precision_score, metrics.recall_score)]
    f1[name] = own[0], right[0]
    print(f"{name}: F1, precision and recall {np.round(own, 2)}, scikit-learn {np.round(right, 2)}")
    assert name == "right" or right == [0, 0, 0]
assert f1["nothing"][0] > 0.8 and 0.1 < f1["less than 0.5 by lot"][0] < 0.3, "no label is none now"
assert f1["right"] == (1, 1)

truth = rng.integers(0, 2, 2000)
evidence = 2 * truth - 1 + rng.normal(size=2000)
methods = ("roc_auc", "average_precision", "mxe", "mse")
seen = []
for name, slope in (("calibrated", 2), ("four times as sure", 8)):
    chance = 1 / (1 + np.exp(-slope * evidence))
    table = np.stack([1 - chance, chance], axis=1)
    own = [ranky.metric(np.eye(2)[truth], table, method) for method in methods]
    right = [metrics.roc_auc_score(truth, chance), metrics.average_precision_score(truth, chance),
             metrics.log_loss(truth, chance), metrics.brier_score_loss(truth, chance)]
    seen.append((own, right))
    print(f"{name}: {methods} {np.round(own, 3)}, scikit-learn {np.round(right, 3)}")
    rounded = (chance > 0.5).astype(int)
    assert abs(own[0] - metrics.roc_auc_score(truth, rounded)) < 1e-12 and own[0] < right[0] - 0.05, "roc_auc sees more"
    assert abs(own[2] - metrics.log_loss(truth, rounded)) < 1e-9 and own[2] > 5, "the log loss is that of the chances"
assert np.allclose(seen[0][0], seen[1][0]), "too sure and calibrated differ now"
assert seen[1][1][2] > 1.5 * seen[0][1][2]
three = rng.dirichlet(np.ones(3), 2000)
truth = np.array([rng.choice(3, p=row) for row in three])
assert abs(ranky.metric(np.eye(3)[truth], three, "mxe") - metrics.log_loss(np.eye(3)[truth], three)) < 1e-9
PYTHON
echo "as seen"
