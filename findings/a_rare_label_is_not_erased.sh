#!/usr/bin/env bash
# concept-erasure 0.2.4: LEACE leaves a label that few texts have as it is: where one text in 200 has it, a linear
# classifier tells it from the rest as well after the erasure as before, with an area under the ROC curve of 0.9.
#
# LEACE takes a concept out of vectors, as those of BERT, and "provably prevents all linear classifiers from detecting"
# it, says the package's page. The concept is found by the singular values of the whitened covariance of vectors and
# labels, and those below svd_tol=0.01 are cut off against noise. But these values measure the labels in their own
# unit, and are the smaller the rarer the label: with a share p of the texts they are at most the root of p (1 - p),
# times the correlation. The threshold stays where it is. At p = 0.5 all is erased; at p = 0.005, where the
# texts with the label are two standard deviations away from the others, nothing is, and the vectors come back as they
# went in, without a warning. The docstring says that higher values of svd_tol "may leave trace correlations". Labels
# of 0 and 100 in place of 0 and 1 are the same concept and are erased. With one-hot labels of several classes the
# frequent ones are erased and the rare ones stay, which are those that erasure is to protect.
#
# Give labels divided by their standard deviation (and one-hot labels column by column). Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1 concept-erasure==0.2.4
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import torch
from concept_erasure import LeaceEraser
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

print("concept-erasure", version("concept-erasure"), "torch", torch.__version__)
TEXTS, SIZE = 20000, 16
rng = np.random.default_rng(0)


def area(vectors, label):
    return roc_auc_score(label, LogisticRegression(C=100, max_iter=500).fit(vectors, label).decision_function(vectors))


def erase(vectors, labels):
    vectors = torch.tensor(vectors)
    return LeaceEraser.fit(vectors, torch.tensor(labels, dtype=torch.float64))(vectors).numpy()


for share in (0.5, 0.05, 0.02, 0.005, 0.002):
    label = rng.random(TEXTS) < share
    vectors = rng.normal(size=(TEXTS, SIZE))
    vectors[label, 0] += 2
    erased, scaled = erase(vectors, label), erase(vectors, label / label.std())
    before, after, right = area(vectors, label), area(erased, label), area(scaled, label)
    moved = abs(erased - vectors).max()
    print(f"label of {share:.1%} of the texts: area {before:.2f} before, {after:.2f} after, "
          f"{right:.2f} with labels of deviation 1; vectors moved by {moved:.2g}")
    assert before > 0.9 and abs(right - 0.5) < 0.03
    assert abs(after - 0.5) < 0.03 if share >= 0.02 else after > 0.88 and moved == 0
    assert share != 0.005 or abs(area(erase(vectors, 100 * label), label) - 0.5) < 0.03

groups = rng.choice(3, size=TEXTS, p=[0.6, 0.397, 0.003])
vectors = rng.normal(size=(TEXTS, SIZE))
vectors[np.arange(TEXTS), groups] += 2
one_hot = np.eye(3)[groups]
erased, scaled = erase(vectors, one_hot), erase(vectors, one_hot / one_hot.std(axis=0))
areas = [[area(own, groups == group) for group in range(3)] for own in (vectors, erased, scaled)]
for name, row in zip(("before", "erased", "erased with scaled labels"), areas):
    print(f"three groups of 60%, 39.7% and 0.3%, {name}:", [round(float(value), 2) for value in row])
assert min(areas[0]) > 0.85 and max(areas[1][:2]) < 0.55 and areas[1][2] > 0.8 and max(areas[2]) < 0.58
PYTHON
echo "as seen"
