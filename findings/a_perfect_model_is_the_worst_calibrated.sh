#!/usr/bin/env bash
# hiclass 5.0.8: static_calibration_error and adaptive_calibration_error are the larger the better the model is, and
# 0.89 for one that gives the right class 100%.
#
# hiclass is for labels in levels, as Sport > Tennis, and offers the calibration errors of Nixon and others (2019) for
# each level. These look at all classes: where a model gives class k about 20%, about 20% of the texts should be of
# class k. The code sorts the texts into bins by the probability of class k, and then compares it with how often the
# model's answer is right, whichever class it gave. Texts that a good model knows not to be of class k, with 2% for it,
# are answered rightly nearly always, so they count as off by 98%. With nine classes and the probabilities 1 and 0, all
# right, the static error is 8/9; by the definition it is 0. A model with 88% right answers that is well calibrated has
# 0.77 in place of 0.01, and one that hardly learnt, with 39%, 0.28 in place of 0.02: whoever chooses a model or a
# calibration by these numbers takes the worse one. expected_calibration_error, which looks at the model's answer
# alone, is right.
# Another thing is the argument level of all these functions: for one level of the list of probabilities, level=0 is
# taken for none, so the first level gets the mean over all levels.
#
# Take expected_calibration_error, or the ten lines below. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check hiclass==5.0.8 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from hiclass import LocalClassifierPerParentNode, metrics
from sklearn.linear_model import LogisticRegression

print("hiclass", version("hiclass"), "numpy", np.__version__)
rng = np.random.default_rng(0)
first, second = rng.integers(0, 3, (2, 6000))
labels = np.array([["abc"[one], "abc"[one] + "xyz"[two]] for one, two in zip(first, second)])
middles = rng.normal(size=(3, 3, 20))[first, second]
noise = rng.normal(size=(6000, 20))


def by_definition(truth, names, chances):
    """The static calibration error: over classes, and ten bins of the probability of the class."""
    total = 0.0
    for number, name in enumerate(names):
        bins = np.minimum((chances[:, number] * 10).astype(int), 9)
        for one in np.unique(bins):
            chosen = bins == one
            gap = (truth[chosen] == name).mean() - chances[chosen, number].mean()
            total += chosen.mean() * abs(gap)
    return total / len(names)


seen = {}
for strength in (0.3, 1.0, 3.0):
    features = strength * middles + noise
    model = LocalClassifierPerParentNode(local_classifier=LogisticRegression(), return_all_probabilities=True)
    model.fit(features[:3000], labels[:3000])
    chances, answers, truth = model.predict_proba(features[3000:]), model.predict(features[3000:]), labels[3000:]
    names = [str(name).split(model.separator_)[-1] for name in model.classes_[1]]
    right = (answers[:, 1] == truth[:, 1]).mean()
    found = [f(model, truth, chances[1], answers, level=1) for f in (
        metrics.static_calibration_error, metrics.adaptive_calibration_error, metrics.expected_calibration_error)]
    seen[strength] = found + [by_definition(truth[:, 1], names, chances[1])]
    print("{:.0%} right: static {:.3f}, adaptive {:.3f}, expected {:.3f}; static by its definition {:.3f}".format(
        right, *seen[strength]))
perfect = (truth[:, 1:] == np.array(names)).astype(float)
found = [f(model, truth, perfect, truth, level=1) for f in (
    metrics.static_calibration_error, metrics.adaptive_calibration_error, metrics.expected_calibration_error)]
print("all right with 100%: static {:.3f}, adaptive {:.3f}, expected {:.3f}; static by its definition {:.3f}".format(
    *found, by_definition(truth[:, 1], names, perfect)))
assert found[0] > 0.88 and found[1] > 0.8, "the perfect model is calibrated now"
assert found[2] < 1e-9 and by_definition(truth[:, 1], names, perfect) == 0
for kind in (0, 1):
    assert 0.2 < seen[0.3][kind] < 0.4 and 0.7 < seen[1.0][kind] < 0.8 < seen[3.0][kind], "the better model is better"
assert max(row[3] for row in seen.values()) < 0.03

errors = metrics.expected_calibration_error(model, truth, chances, answers, agg=None)
zero = metrics.expected_calibration_error(model, truth, chances, answers, level=0)
print("expected error of the levels", np.round(errors, 5), "with level=0", round(zero, 5))
assert abs(zero - np.mean(errors)) < 1e-12 and abs(zero - errors[0]) > 1e-5, "level=0 is the first level now"
PYTHON
echo "as seen"
