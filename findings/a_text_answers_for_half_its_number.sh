#!/usr/bin/env bash
# pycalib 0.1.0.dev6: with two classes ECE holds the probabilities of a text against the labels of others, so that a
# perfect model has the error 0.25 and one that always says 50% has 0.
#
# The package belongs to a tutorial on the calibration of classifiers. ECE(y_true, probs) takes by default all classes
# of all texts, flattened: text by text, class by class. The labels are made to such a table by label_binarize of
# scikit-learn, which gives one column for two classes, not two. The flat labels are then half as long as the flat
# probabilities, and zip, which joins them, stops at the shorter: the two probabilities of text 0 meet the labels of the
# texts 0 and 1, those of text 1 the labels of 2 and 3, and the probabilities of the second half of the texts none. So
# the number says little of the model: one that is right with 100% for all texts has 0.25 in place of 0, one that gives
# all texts the share of the classes, a tenth, has 0.20 in place of 0, a calibrated one 0.13 or, with its texts in
# another order, 0.17, and one that says 50% always is the best. MCE(mce_full=True) goes the same way, with 0.50 for the
# perfect model. With three classes and more, and in conf_ECE, binary_ECE and classwise_ECE, a label meets its own text.
#
# Take binary_ECE of the second column. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycalib==0.1.0.dev6 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1 pandas==3.1.1 matplotlib==3.11.2
MPLCONFIGDIR="$folder" "$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from pycalib.metrics import ECE, MCE, binary_ECE, classwise_ECE, conf_ECE

print("pycalib", version("pycalib"), "numpy", np.__version__)
rng = np.random.default_rng(0)
chance = rng.random(4000)
even = (rng.random(4000) < chance).astype(int)
rare = (rng.random(4000) < 0.1).astype(int)
half = (rng.random(4000) < 0.5).astype(int)
models = {"perfect": (even, even.astype(float)), "calibrated": (even, chance),
          "the share of the classes": (rare, np.full(4000, 0.1)), "50% always": (half, np.full(4000, 0.5))}
seen = {}
for name, (labels, positive) in models.items():
    table = np.stack([1 - positive, positive], axis=1)
    order = np.argsort(-positive, kind="stable")
    seen[name] = (ECE(labels, table), ECE(labels[order], table[order]), binary_ECE(labels, positive),
                  MCE(labels, table, mce_full=True))
    print("{}: ECE {:.2f}, in the order of the probabilities {:.2f}; binary_ECE {:.3f}; MCE {:.2f}".format(
        name, *seen[name]))
    met = table.ravel()[:4000]
    bins = np.ceil(met * 15 - 1e-9).clip(1, 15)
    gaps = [abs(labels[bins == one].sum() - met[bins == one].sum()) for one in np.unique(bins)]
    assert abs(sum(gaps) / 8000 - seen[name][0]) < 1e-3, "labels meet other probabilities now"
    assert seen[name][2] < 0.02

assert 0.2 < seen["perfect"][0] < 0.3 and seen["perfect"][3] > 0.45, "a label meets its own text now"
assert 0.1 < seen["calibrated"][0] < 0.16 and seen["calibrated"][1] > seen["calibrated"][0] + 0.02
assert seen["the share of the classes"][0] > 0.15 and seen["50% always"][0] < 0.01

three = rng.dirichlet(np.ones(3), 4000)
labels = np.array([rng.choice(3, p=row) for row in three])
print("three classes:", ECE(labels, three).round(3), classwise_ECE(np.eye(3)[labels], three).round(3))
assert ECE(labels, three) < 0.02 and ECE(labels, np.eye(3)[labels]) == 0
assert conf_ECE(even, np.eye(2)[even]) == 0
PYTHON
echo "as seen"
