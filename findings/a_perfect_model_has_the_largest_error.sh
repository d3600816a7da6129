#!/usr/bin/env bash
# alipy 1.2.5: one_error is 1 for a model that makes no mistake and 0 for any model that gives scores, and two more of
# its measures compute something else than they are called.
#
# alipy is for active learning, and compares strategies for texts with several labels by measures of its own. One-error
# is the share of texts whose first label, by the scores, is wrong. The code takes the difference of labels and
# predictions, adds it up for each text, and returns the share of texts whose sum is 0: the right ones, or those with as
# many labels too much as too few. With scores, which its page asks for, no sum is exactly 0, so a perfect model, one
# that answers by lot and one that orders all labels the wrong way round all have 0. micro_auc_score computes the area
# for each label and averages them, which is the macro average: here 0.72 in place of 0.26, as the scores have another
# level for each label. Pairs with equal scores count nothing in place of a half, so a constant has 0 in place of 0.5.
# zero_one_loss(normalize=False), "the number of misclassifications", takes the share of right texts from their
# number, so a perfect model makes 299 mistakes in 300 texts.
#
# Take scikit-learn's zero_one_loss and roc_auc_score, and numpy for the one-error. Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check alipy==1.2.5 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1 matplotlib==3.11.2
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from alipy import metrics
from sklearn.metrics import roc_auc_score, zero_one_loss

print("alipy", version("alipy"), "numpy", np.__version__)
rng = np.random.default_rng(0)
labels = (rng.random((300, 6)) < [0.5, 0.4, 0.3, 0.2, 0.1, 0.05]).astype(int)
labels[labels.sum(1) == 0, 0] = 1
lot = rng.random(labels.shape)
models = {"perfect": labels + 0.4 * lot, "by lot": lot, "turned round": -labels - 0.4 * lot}


def by_hand(scores):
    """The share of texts whose first label is wrong."""
    return (labels[np.arange(len(labels)), scores.argmax(1)] == 0).mean()


seen = {}
for name, scores in models.items():
    seen[name] = (metrics.one_error(labels, scores), metrics.one_error(labels, (scores > 0.5).astype(int)),
                  by_hand(scores))
    print(f"{name:<13} one_error of the scores {seen[name][0]:.2f}, of the labels {seen[name][1]:.2f}; by hand "
          f"{seen[name][2]:.2f}")
assert [row[0] for row in seen.values()] == [0, 0, 0], "scores are looked at now"
assert seen["perfect"][1] == 1 and seen["by lot"][1] < 0.5, "the perfect model has no error now"
assert seen["perfect"][2] == 0 and 0.5 < seen["by lot"][2] < 0.8 and seen["turned round"][2] == 1
swapped = np.array([[1, 0, 0], [1, 1, 0]])
assert metrics.one_error(swapped, np.array([[0, 1, 0], [0, 1, 1]])) == 1, "one too much and one too few differ now"

level = lot + 0.3 * labels + np.arange(6)
seen = [metrics.micro_auc_score(labels, level)] + [roc_auc_score(labels, level, average=kind)
                                                   for kind in ("micro", "macro")]
print("area: micro_auc_score {:.3f}, by scikit-learn micro {:.3f}, macro {:.3f}".format(*seen))
assert abs(seen[0] - seen[2]) < 1e-9 and seen[0] > 0.7 and seen[1] < 0.35, "it is the micro average now"
constant = np.full(labels.shape, 0.5)
print("area of a constant:", metrics.micro_auc_score(labels, constant), "scikit-learn",
      roc_auc_score(labels, constant, average="micro"))
assert metrics.micro_auc_score(labels, constant) == 0 and roc_auc_score(labels, constant, average="micro") == 0.5

one = labels[:, 0]
for name, answers in (("perfect", one), ("all wrong", 1 - one)):
    print(f"number of mistakes, {name}: {metrics.zero_one_loss(one, answers, normalize=False)}, scikit-learn "
          f"{zero_one_loss(one, answers, normalize=False)}")
assert metrics.zero_one_loss(one, one, normalize=False) == 299 and zero_one_loss(one, one, normalize=False) == 0
PYTHON
echo "as seen"
