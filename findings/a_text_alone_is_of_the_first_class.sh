#!/usr/bin/env bash
# mapie 1.6.0: TopLabelCalibrator puts the probability of a text in the column of another class where a batch lacks a
# class, and that of a text alone in the first column always.
#
# The calibrator makes the score of a classifier's answer an honest probability, by a calibrator for each class.
# predict_proba gives a table with a column for each class, in which the predicted class has its probability and all
# others are NaN. The loop over the classes counts those that are predicted in this batch and takes the count for the
# number of the column. With all classes in a batch the two are the same. In service, where texts come one by one, each
# answer stands in column 0: of 300 texts of three classes numpy.nanargmax, which mapie's own notebook takes for the
# answer, is right for 104, and for all 300 as one batch. In batches of 8 texts 13 are wrong. top_label_ece gives a
# test set of two classes a calibration error of 0.45 in place of 0.05. predict itself is right. No warning comes.
#
# Take the class from predict and the number from numpy.nanmax. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mapie==1.6.0 scikit-learn==1.9.1 numpy==2.4.6 \
    scipy==1.17.1
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from mapie.calibration import TopLabelCalibrator
from mapie.metrics.calibration import top_label_ece
from sklearn.linear_model import LogisticRegression

print("mapie", version("mapie"), "numpy", np.__version__)
generator = np.random.default_rng(0)
vectors = generator.normal(size=(3000, 5))
labels = (vectors[:, :3] + generator.normal(size=(3000, 3))).argmax(axis=1)
classifier = LogisticRegression().fit(vectors[:1000], labels[:1000])
calibrated = TopLabelCalibrator(classifier, cv="prefit").fit(vectors[1000:2000], labels[1000:2000])
texts, gold = vectors[2000:2300], labels[2000:2300]
answers = calibrated.predict(texts)
whole = calibrated.predict_proba(texts)


def batches(size):
    return np.vstack([calibrated.predict_proba(texts[start:start + size]) for start in range(0, len(texts), size)])


agree = {}
for size in (len(texts), 8, 1):
    table = batches(size)
    assert np.allclose(np.nanmax(table, axis=1), np.nanmax(whole, axis=1)), "the numbers are others"
    agree[size] = int((np.nanargmax(table, axis=1) == answers).sum())
    print(f"batches of {size}: the column is that of the predicted class for {agree[size]} of {len(texts)} texts")
print("one text, of the predicted class", answers[1], ":", calibrated.predict_proba(texts[1:2]))
assert agree[len(texts)] == len(texts) and agree[1] == (answers == 0).sum() < 150, "a text alone is right now"
assert agree[8] < len(texts), "small batches are right now"

two = answers != 0
errors = [top_label_ece(gold[two], table, num_bins=10)
          for table in (calibrated.predict_proba(texts[two]), whole[two])]
print(f"calibration error of the texts with two answers: {errors[0]:.2f}, taken from the whole table: {errors[1]:.2f}")
assert errors[0] > 0.3 > 0.1 > errors[1]
PYTHON
echo "as seen"
