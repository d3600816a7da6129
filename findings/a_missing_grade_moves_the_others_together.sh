#!/usr/bin/env bash
# scikit-learn 1.9.1: cohen_kappa_score with weights counts places in the list of labels that occur, so grades
# that nobody gave move the others together.
#
# Quadratically weighted kappa is the measure for graded essays, answers and relevance: being off by 6 counts
# 36 times as much as being off by 1. The labels are taken from the data and sorted, and the distance is the
# difference of their places, not of the grades. If the grades 7 to 11 don't occur, the prediction 6 for a 12
# is off by 1. Here the score is 0.91, and 0.55 by the formula. So it depends on the examples: a
# small development set misses grades, folds of one data set are measured with different rulers, and the
# choice of a checkpoint with it. Labels as texts are sorted by letters: "low" and "mid" are next to each
# other, and "high" is before both, next to "low". No warning comes.
#
# Pass all grades in order, as labels=range(2, 13). Seen in November 2026 with Python 3.11. The script fails
# if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W error - <<'PYTHON'
import numpy as np
import sklearn
from sklearn.metrics import cohen_kappa_score

print("scikit-learn", sklearn.__version__)


def formula(first, second):
    """1 - the mean squared difference of the pairs over that of all pairings."""
    first, second = np.array(first, float), np.array(second, float)
    return 1 - ((first - second) ** 2).mean() / ((first[:, None] - second) ** 2).mean()


gold = [2, 3, 4, 4, 5, 6, 12, 3]
for last in (6, 11):
    predicted = [2, 3, 4, 5, 5, 6, last, 4]
    scores = [cohen_kappa_score(gold, predicted, weights="quadratic"),
              cohen_kappa_score(gold, predicted, weights="quadratic", labels=range(2, 13)), formula(gold, predicted)]
    print(f"{last:>2} for 12: plain {scores[0]:.4f}, with all grades {scores[1]:.4f}, formula {scores[2]:.4f}")
    assert abs(scores[1] - scores[2]) < 1e-9, "the full list of grades gives another score"
    if last == 6:
        assert abs(scores[0] - 0.91045) < 1e-4 and abs(scores[2] - 0.55162) < 1e-4, "the plain score is another one"

gold, predicted = ["low", "mid", "high", "mid"], ["low", "mid", "high", "high"]
order = ["low", "mid", "high"]
texts = cohen_kappa_score(gold, predicted, weights="linear")
ordered = cohen_kappa_score(gold, predicted, weights="linear", labels=order)
numbers = cohen_kappa_score([order.index(x) for x in gold], [order.index(x) for x in predicted], weights="linear")
print(f"texts {texts:.4f}, texts in order {ordered:.4f}, their numbers {numbers:.4f}")
assert abs(texts - 0.5) < 1e-9 and abs(ordered - numbers) < 1e-9 and abs(numbers - 0.7143) < 1e-4
PYTHON
echo "as seen"
