#!/usr/bin/env bash
# calzone-tool 0.1.0: Cox' calibration slope is always that of class 1, whatever class is asked for, so that a class
# that is far too sure gets the slope 1.
#
# Cox' regression explains the labels by the logit of the probability that a model gave: a slope of 1 and an intercept
# of 0 mean calibrated, a slope below 1 means too sure. CalibrationMetrics(class_to_calculate=2) computes all other
# measures for class 2. cox_regression_analysis takes the second column of the probabilities whatever the class, and
# CalibrationMetrics does not hand the class on. So the slope, the intercept and both intervals are those of class 1,
# and the calibration index made of them puts the probabilities of class 2 through the curve of class 1. Here class 1 is
# calibrated, and the classes 0 and 2 are twice as sure as they should be: all three get the slope 1.01, which for class
# 2 is 0.66. The function itself, with class_to_calculate=2, sets the labels of class 2 against the probabilities of
# class 1, and finds a slope below zero for a model that is calibrated in all classes. With two classes it gives -1 for
# class 0. The documentation says "the function converts the problem to binary classification based on the specified
# class_to_calculate". Nothing is said.
#
# Give two columns, 1 - p and p of the class, and labels 0 and 1, with the default class_to_calculate=1. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check calzone-tool==0.1.0 numpy==2.4.6 scipy==1.17.1 \
    statsmodels==0.15.0 scikit-learn==1.9.1 pandas==3.1.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from calzone.metrics import CalibrationMetrics, cox_regression_analysis
from scipy.special import expit, logit, softmax
from sklearn.linear_model import LogisticRegression

print("calzone-tool", version("calzone-tool"))
rng = np.random.default_rng(0)
right = softmax(rng.normal(0, 1.5, (5000, 3)), axis=1)
labels = (rng.uniform(size=(5000, 1)) > right.cumsum(1)).sum(1)
sure = right.copy()                                         # class 1 stays, 0 and 2 share the rest too surely
sure[:, 2] = (1 - right[:, 1]) * expit(2 * logit(right[:, 2] / (right[:, 0] + right[:, 2])))
sure[:, 0] = 1 - sure[:, 1] - sure[:, 2]


def slope(probabilities, number):
    """The slope and intercept of the labels on the logit of a class, by scikit-learn."""
    model = LogisticRegression(C=np.inf).fit(logit(probabilities[:, [number]]), labels == number)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


for name, probabilities in (("calibrated", right), ("0 and 2 too sure", sure)):
    for number in range(3):
        seen = CalibrationMetrics(class_to_calculate=number).calculate_metrics(labels, probabilities, ["COX", "ECE-H"])
        direct = cox_regression_analysis(labels, probabilities, class_to_calculate=number)
        column = probabilities[:, number]
        by_hand = cox_regression_analysis(labels == number, np.column_stack([1 - column, column]))
        expected = slope(probabilities, number)
        print(f"{name}, class {number}: slope {seen['COX coef']:.3f}, by the function {direct[0]:.3f}, right is",
              f"{expected[0]:.3f}; index {seen['COX ICI']:.3f}, ECE {seen['ECE-H']:.3f}")
        assert np.allclose(by_hand[:2], expected, atol=1e-2), "two columns give another slope"
        assert np.allclose([seen["COX coef"], seen["COX intercept"]], slope(probabilities, 1), atol=1e-2), "not 1's"
        if number != 1:
            assert direct[0] < -0.2, "the function takes the column of the class now"
        if name == "calibrated":
            assert 0.9 < expected[0] < 1.1
        elif number != 1:
            assert expected[0] < 0.7 and seen["ECE-H"] > 0.04 and 0.95 < seen["COX coef"] < 1.05
            assert seen["COX ICI"] < 0.01, "the index sees the class now"
pair, binary = np.column_stack([1 - right[:, 1], right[:, 1]]), (labels == 1).astype(int)
slopes = [cox_regression_analysis(binary, pair, class_to_calculate=number)[0] for number in (0, 1)]
print("two classes, calibrated: slopes", np.round(slopes, 3))
assert np.isclose(slopes[0], -slopes[1]) and slopes[1] > 0.9
PYTHON
echo "as seen"
