#!/usr/bin/env bash
# deepsig 1.2.8: aso with num_comparisons is the less strict the more comparisons there are, and multi_aso of two models
# by default finds none better.
#
# Almost stochastic order is a test for scores of neural models, as the F1 of several runs: aso gives a bound below
# which one counts as better, which holds with a confidence of 0.95. With several comparisons the README divides 0.05
# by their number, "which corresponds to the Bonferroni correction". The code adds 0.05 / n to 0.95. That is right for
# two comparisons, 0.975. For ten it is 0.955 in place of 0.995, and for 1,000 it is 0.95005: no correction at all. So
# the bound falls with n, where it has to rise. multi_aso compares a list of models with each other and corrects by
# default. Two models are one comparison, for which 0.95 + 0.05 is 1: the bound that always holds is 1.0, the mark of
# "not better", in both directions. Models with scores around 0.80 and 0.78 are told apart by aso and not by multi_aso,
# and with a third model by both.
#
# Pass confidence_level=1 - 0.05 / n to aso, and the same with use_bonferroni=False to multi_aso. Seen in November 2026
# with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check deepsig==1.2.8 numpy==2.4.6 scipy==1.17.1 \
    pandas==3.1.1
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from deepsig import aso, multi_aso

print("deepsig", version("deepsig"), "numpy", np.__version__)
settings = {"seed": 1, "num_bootstrap_iterations": 300, "show_progress": False}
generator = np.random.default_rng(0)
a, b = generator.normal(0.80, 0.02, 20), generator.normal(0.79, 0.02, 20)
bounds = {}
for count in (1, 2, 5, 10, 100, 1000):
    bounds[count] = aso(a, b, num_comparisons=count, **settings)
    right = aso(a, b, confidence_level=1 - 0.05 / count, **settings)
    print(f"{count} comparisons: bound {bounds[count]:.3f}, with the confidence 1 - 0.05 / {count} {right:.3f}")
    if count <= 2:
        assert abs(bounds[count] - right) < 1e-9, "not right for one and two"
assert bounds[2] > bounds[5] > bounds[10] > bounds[100] > bounds[1000], "the bound does not fall with n now"
assert bounds[1000] - bounds[1] < 1e-3 and right > bounds[1000] + 0.05

models = {"good": generator.normal(0.80, 0.02, 10).tolist(), "poor": generator.normal(0.78, 0.02, 10).tolist()}
single = aso(models["good"], models["poor"], **settings)
pair = multi_aso(models, **settings)
plain = multi_aso(models, use_bonferroni=False, **settings)
three = multi_aso({**models, "poorest": generator.normal(0.70, 0.01, 10).tolist()}, **settings)
print("good against poor:", single, "by aso,", pair[0, 1], "by multi_aso,", plain[0, 1], "without the correction,",
      three[0, 1], "beside a third model")
assert pair[0, 1] == pair[1, 0] == 1, "two models are told apart now"
assert max(single, plain[0, 1], three[0, 1]) < 0.2
PYTHON
echo "as seen"
