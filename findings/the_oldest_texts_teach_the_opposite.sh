#!/usr/bin/env bash
# scikit-lego 0.9.10: DecayEstimator(decay_func="stepwise") gives the oldest texts negative weights, so that with 700
# texts in 365 steps a classifier is hardly better than by lot.
#
# The wrapper lets a model forget: texts are sorted by age, and the older they are, the less they weigh. "stepwise"
# goes from max_value=1 to min_value=0 in n_steps, each of which is "a decrease until the minimum value is reached", as
# the docstring has it. The length of a step is the number of texts divided by that of the steps, without the rest. The
# rest is not left over at the end: the texts go on into further steps, each as far down as those before, below
# min_value. 700 texts in 365 steps make 700 steps of one text; the oldest weigh -0.92, and 48% of all weigh less than
# nothing. 5,000 texts in 365 steps still have 5% with negative weights. scikit-learn's classifiers take these and
# learn to be wrong on such texts. Of a task that never changed, and of which a model with linear weights gets 95%
# right, 53% are left. With step_size the steps are counted from it and their length is computed anew from the count:
# of 100 texts with step_size=40 each step has 50.
#
# Give decay_func a function, as lambda X, y: np.linspace(0, 1, len(y)), or "linear". Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-lego==0.9.10 scikit-learn==1.9.1 \
    numpy==2.4.6 scipy==1.17.1 pandas==3.1.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklego.meta import DecayEstimator

print("scikit-lego", version("scikit-lego"), "scikit-learn", version("scikit-learn"))
rng = np.random.default_rng(0)
direction = rng.normal(size=10)


def draw(number):
    vectors = rng.normal(size=(number, 10))
    return vectors, (vectors @ direction + 0.3 * rng.normal(size=number) > 0).astype(int)


def fit(number, decay="stepwise", **options):
    vectors, labels = draw(number)
    model = DecayEstimator(LogisticRegression(), decay_func=decay, decay_kwargs=options).fit(vectors, labels)
    return model.weights_, float(np.mean(model.predict(test[0]) == test[1]))


test = draw(5000)
for number, steps in ((730, 365), (700, 365), (600, 365), (5000, 365), (100, 60), (1000, 12)):
    weights, accuracy = fit(number, n_steps=steps)
    print(f"{number} texts in {steps} steps: weights from {weights.min():.2f} to {weights.max():.2f}, "
          f"{np.mean(weights < -1e-9):.0%} below 0, {accuracy:.0%} right")
    length = number // steps
    assert np.allclose(weights, 1 - np.arange(number, 0, -1) // length / steps)
    expected = {(700, 365): 0.48, (5000, 365): 0.05, (100, 60): 0.4}.get((number, steps))
    assert expected is None or abs(np.mean(weights < -1e-9) - expected) < 0.015
    if (number, steps) in ((730, 365), (1000, 12)):
        assert weights.min() > -1e-9 and accuracy > 0.9
    if (number, steps) == (700, 365):
        assert weights.min() < -0.9 and accuracy < 0.55
weights, accuracy = fit(700, "linear")
print(f"linear: weights from {weights.min():.3f}, {accuracy:.0%} right")
assert weights.min() > 0 and accuracy > 0.9
above = fit(700, n_steps=365, min_value=0.5)[0]
print(f"with min_value=0.5: weights from {above.min():.2f}")
assert above.min() < 0.1
lengths = np.unique(fit(100, step_size=40)[0], return_counts=True)[1]
print("step_size=40 for 100 texts: steps of", lengths.tolist())
assert lengths.max() == 50
PYTHON
echo "as seen"
