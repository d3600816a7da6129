#!/usr/bin/env bash
# river 0.26.1: with pos_val=False, F1, Precision and Recall are those of the class True, and with pos_val="spam" they
# are 0 for every model.
#
# river's metrics are updated text by text, and pos_val is, by the documentation, the "value to treat as positive".
# BinaryMetric.update writes into the table whether label and prediction equal pos_val, as True or False. Precision,
# Recall, F1, FBeta, MCC, Jaccard and ROCAUC read the table by pos_val again. True and 1 are found there. "spam", 2 or
# "1" is not, so all counts are 0, and so is the score, for a perfect filter too. False and 0 are found, but mean "not
# the positive value" by then: who asks for the rare class False gets the numbers of True, here an F1 of 0.91 instead of
# 0.69, and a recall of 0.88 instead of 0.80. ROCAUC comes out as 0 for "spam" and below zero for False. A run of
# progressive_val_score goes on without an error, and a search by such a metric takes any model.
#
# Bring labels to booleans, with True for the class you mean: metric.update(y == "spam", p == "spam"). Or take the
# line of the class in ClassificationReport, which is right. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check river==0.26.1 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from river import evaluate, metrics
from river.dummy import PriorClassifier
from sklearn.metrics import f1_score, jaccard_score, precision_score, recall_score, roc_auc_score

print("river", version("river"))
rng = np.random.default_rng(0)
truth = rng.uniform(size=500) < 0.2
guess = np.where(rng.uniform(size=500) < 0.85, truth, ~truth)
kinds = {"F1": f1_score, "Precision": precision_score, "Recall": recall_score, "Jaccard": jaccard_score}


def score(kind, positive, other, predictions=guess):
    """river's value, and scikit-learn's for the positive class and for the other one."""
    metric = getattr(metrics, kind)(pos_val=positive)
    labels = [positive if number else other for number in truth]
    found = [positive if number else other for number in predictions]
    for label, prediction in zip(labels, found):
        metric.update(label, prediction)
    return metric.get(), *(kinds[kind](labels, found, pos_label=name) for name in (positive, other))


for positive, other in ((True, False), (1, 0), (False, True), (0, 1), ("spam", "ham"), (2, 1)):
    for kind in kinds:
        seen, right, wrong = score(kind, positive, other)
        print(f"pos_val={positive!r:<7}{kind:<10} river {seen:.3f}, scikit-learn {right:.3f},",
              f"of the other class {wrong:.3f}")
        if positive in ("spam", 2):
            assert seen == 0 < right and score(kind, positive, other, truth)[0] == 0, "pos_val is counted now"
        elif positive:
            assert np.isclose(seen, right)
        else:
            assert np.isclose(seen, wrong) and not np.isclose(seen, right), "not of the other class any more"

scores = np.clip(0.5 + 0.5 * (truth - 0.5) + rng.normal(0, 0.2, 500), 0, 1)
areas = {}
for positive, other in ((True, False), (False, True), ("spam", "ham")):
    metric = metrics.ROCAUC(n_thresholds=101, pos_val=positive)
    for number, value in zip(truth, scores):
        metric.update(positive if number else other, {positive: float(value), other: 1 - float(value)})
    areas[positive] = metric.get()
print("ROCAUC by pos_val:", {name: round(area, 3) for name, area in areas.items()}, "scikit-learn",
      round(roc_auc_score(truth, scores), 3))
assert abs(areas[True] - roc_auc_score(truth, scores)) < 0.01 and areas[False] < 0 and areas["spam"] == 0

report = metrics.ClassificationReport()
for number, found in zip(truth, guess):
    report.update("spam" if number else "ham", "spam" if found else "ham")
right = f1_score(truth, guess)
assert f"{right:.2%}" in [line for line in repr(report).splitlines() if line.strip().startswith("spam")][0]

data = [({"a": 1.0}, "spam" if number < 450 else "ham") for number in range(500)]
run = evaluate.progressive_val_score(data, PriorClassifier(), metrics.F1(pos_val="spam"))
print("a run whose right value is above 0.9:", run)
assert run.get() == 0
PYTHON
echo "as seen"
