#!/usr/bin/env bash
# deepsig 1.2.8: bonferroni_correction gives the corrected p-values to the wrong comparisons.
#
# deepsig tests whether one model is better than another over several runs and data sets, and offers
# bonferroni_correction for the p-values of several such tests. It sorts them, corrects each by its place and brings
# them back into their order. For the way back it takes the order of sorting once more instead of its inverse. The two
# are the same if values only change places in pairs, as with two p-values, and differ otherwise: three p-values
# 0.04, 0.001 and 0.03 become 0.06, 0.04 and 0.003 in place of 0.04, 0.003 and 0.06. So the surest result gets
# the number of another one. Of ten comparisons, here two or three of which are real, the one or the other is reported
# as significant at 0.05 by chance: of 1,000 experiments nearly all have a wrong list, and most name a comparison whose
# p-value is above 0.05 already before the correction, which no correction could do. All numbers are right, they only
# stand in the wrong places, and nothing is said.
#
# Take statsmodels.stats.multitest.multipletests(p, method="holm"). Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check deepsig==1.2.8 numpy==2.4.6 scipy==1.17.1 \
    pandas==3.1.1
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from deepsig import bonferroni_correction

print("deepsig", version("deepsig"), "numpy", np.__version__)


def right(values):
    """The same correction, n - place times the value, with each result in its own place."""
    values = np.asarray(values)
    order = np.argsort(values)
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(values[order] * np.arange(len(values), 0, -1), 1)
    return corrected


values = [0.04, 0.001, 0.03]
print(values, "->", bonferroni_correction(values), "in place of", right(values))
assert np.allclose(bonferroni_correction(values), [0.06, 0.04, 0.003]), "the order is another now"
assert np.allclose(right(values), [0.04, 0.003, 0.06])
for values in ([0.03, 0.01], [0.01, 0.02, 0.03], [0.03, 0.02, 0.01]):
    assert np.allclose(bonferroni_correction(values), right(values)), "not right in simple orders"

generator = np.random.default_rng(0)
wrong = impossible = 0
for _ in range(1000):
    values = generator.uniform(size=10)
    values[generator.choice(10, 3, replace=False)] = generator.uniform(0, 0.003, 3)
    corrected = bonferroni_correction(values)
    assert np.allclose(np.sort(corrected), np.sort(right(values)))
    wrong += set(np.flatnonzero(corrected < 0.05)) != set(np.flatnonzero(right(values) < 0.05))
    impossible += bool((values[corrected < 0.05] > 0.05).any())
print(f"of 1,000 experiments {wrong} have a wrong list, {impossible} name a comparison with p above 0.05")
assert wrong > 900 and impossible > 900, "the lists are right now"
PYTHON
echo "as seen"
