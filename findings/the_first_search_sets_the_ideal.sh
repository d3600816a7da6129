#!/usr/bin/env bash
# pyltr 0.2.6: NDCG keeps the ideal ranking of each query number that it saw first, so that the test queries are divided
# by the ideal of the training queries with the same numbers: 0.22 in place of 0.54, or 4e15.
#
# A metric of pyltr is made once and given to the model, to the monitor of the validation set, and to the evaluation of
# the test set, as in the README: metric.calc_mean(Eqids, Ey, Epred). NDCG stores the DCG of the best order under the
# number of the query, for the whole life of the object, and looks it up before it looks at the labels. Where each file
# numbers its queries from 0 or 1, as one's own splits mostly do, query 7 of the test set gets the ideal of query 7 of
# the training set. Where that one had more relevant passages the NDCG is too small, and where it had less it goes
# beyond 1; where it had none the divisor is 2e-16, and the mean over the queries 4e15. LambdaMART trains and stops
# early by these numbers too. The LETOR files of the README number queries across all parts, where it is right. A
# docstring of the base class says that two lists of the same number have the same labels, that of calc_mean only that
# queries must be contiguous, and the README nothing. No warning comes.
#
# Make a new NDCG for each data set. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyltr==0.2.6 scikit-learn==1.9.1 scipy==1.17.1 \
    pandas==3.1.1 numpy==2.4.6 six
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
from pyltr.metrics import NDCG
from sklearn.metrics import ndcg_score

print("pyltr", version("pyltr"), "scikit-learn", version("scikit-learn"))
QUERIES, PASSAGES = 100, 20
rng = np.random.default_rng(0)


def draw(share):
    """Query numbers from 0, grades of which this share is above 0, and scores that follow them with noise."""
    grades = (rng.random(QUERIES * PASSAGES) < share) * rng.integers(1, 4, QUERIES * PASSAGES)
    return np.repeat(np.arange(QUERIES), PASSAGES), grades, grades + 2 * rng.normal(size=len(grades))


def reference(numbers, grades, scores):
    """The mean by scikit-learn, 0 for a query without a relevant passage."""
    lists = [(2.0 ** grades[numbers == i] - 1, scores[numbers == i]) for i in range(QUERIES)]
    return np.mean([ndcg_score([gains], [score], k=10) for gains, score in lists])


many, few = draw(0.5), draw(0.1)
right = {"many": reference(*many), "few": reference(*few)}
for name, data in (("many", many), ("few", few)):
    assert np.isclose(NDCG(k=10).calc_mean(*data), right[name])
for (first, trained), (second, tested) in ((("many", many), ("few", few)), (("few", few), ("many", many))):
    metric = NDCG(k=10)
    assert np.isclose(metric.calc_mean(*trained), right[first])
    seen = metric.calc_mean(*tested)
    print(f"trained with {first}, tested with {second} relevant passages: {seen:.4g}, by a new one {right[second]:.4f}")
    assert seen < right[second] / 2 if second == "few" else seen > 1e15

halves = draw(0.3), draw(0.3)                                        # alike, all queries with a relevant passage
metric = NDCG(k=10)
metric.calc_mean(*halves[0])
single = [metric.evaluate_preds(i, halves[1][1][halves[1][0] == i], halves[1][2][halves[1][0] == i])
          for i in range(QUERIES)]
beyond = np.mean(np.array(single) > 1)
print(f"parts of one kind: {np.mean(single):.3f} in place of {reference(*halves[1]):.3f}, with {beyond:.0%} of the"
      f" queries beyond 1, up to {max(single):.2f}")
assert beyond > 0.05 and max(single) > 1.5
PYTHON
echo "as seen"
