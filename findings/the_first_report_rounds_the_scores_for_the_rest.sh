#!/usr/bin/env bash
# rexmex 0.1.3: a report on a ranker or classifier rounds the scores to 0 and 1 at its seventh measure, so that the
# area under the ROC curve and all others after it are of the rounded scores, and the caller's array is overwritten.
#
# A ScoreCard with the ClassificationMetricSet computes some thirty measures of one list of scores: recall, precision
# and accuracy need a decision, the areas and the average precision the scores themselves. Measures of the first kind
# are wrapped by binarize in utils.py, which sets what is below 0.5 to 0 and the rest to 1, in the array that it is
# given. The report hands the same array to one measure after the other. So every measure that comes after recall, the
# first of that kind, sees zeros and ones. A model that ranks nearly all pairs right, with scores below 0.5 as for a
# rare class, has an area of 0.57 in the report in place of 0.98: it looks as if it guessed. The rates before recall,
# as the sensitivity, are of the scores, and those after it of decisions. A numpy array of the caller is rounded after
# the call, so a second report, or whatever else is done with the scores, is of the rounded ones. No warning comes.
#
# Give each measure a copy of the scores. Seen in December 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==1.26.4 scipy==1.12.0 pandas==2.3.3 \
    scikit-learn==1.4.2 setuptools==66.1.1 wheel pytest-runner==6.0.1 six==1.17.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation rexmex==0.1.3
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from rexmex import ClassificationMetricSet, ScoreCard

print("rexmex", version("rexmex"), "pandas", pd.__version__, "numpy", np.__version__)
rng = np.random.default_rng(0)
labels = (rng.random(2000) < 0.1).astype(int)
scores = 1 / (1 + np.exp(-(rng.normal(size=2000) + 3.0 * labels - 4.0)))     # a rare class, so most scores are low


def area(labels, scores):
    """The share of pairs of both classes that are in the right order, ties as a half."""
    differences = scores[labels == 1][:, None] - scores[labels == 0]
    return ((differences > 0) + 0.5 * (differences == 0)).mean()


measures = ClassificationMetricSet()
names = list(measures)
report = ScoreCard(measures).get_performance_metrics(labels, scores.copy()).iloc[0]
alone = {name: float(measure(labels, scores.copy())) for name, measure in ClassificationMetricSet().items()}
rounded = (scores >= 0.5).astype(float)
after = {name: float(measure(labels, rounded.copy())) for name, measure in ClassificationMetricSet().items()}
first = names.index("recall")
print("before recall come", names[:first])
wrong = [name for name in names[first:] if abs(report[name] - alone[name]) > 1e-9]
print("after it are wrong:", {name: f"{report[name]:.3f} for {alone[name]:.3f}" for name in wrong})
for place, name in enumerate(names):
    expected = alone[name] if place <= first else after[name]
    assert np.isclose(report[name], expected, equal_nan=True), f"{name} is of other scores now"
assert abs(alone["roc_auc"] - area(labels, scores)) < 1e-9 and "roc_auc" in wrong and "average_precision" in wrong
assert abs(report["roc_auc"] - area(labels, rounded)) < 1e-9 and report["roc_auc"] < alone["roc_auc"] - 0.2
assert len(wrong) >= 5, "fewer measures are wrong now"

given = scores.copy()
ScoreCard(ClassificationMetricSet()).get_performance_metrics(labels, given)
print("distinct scores before", len(np.unique(scores)), "and after the report", len(np.unique(given)))
assert np.array_equal(given, rounded), "the scores are left alone now"

table = pd.DataFrame({"y_true": labels, "y_score": scores, "group": np.arange(2000) % 2})
for settings in ({}, {"grouping": ["group"]}):
    areas = ScoreCard(ClassificationMetricSet()).generate_report(table.copy(), **settings)["roc_auc"].tolist()
    print("generate_report", settings, "gives areas of", np.round(areas, 3))
    assert max(areas) < alone["roc_auc"] - 0.15
PYTHON
echo "as seen"
