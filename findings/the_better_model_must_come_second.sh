#!/usr/bin/env bash
# mlxtend 0.23.4: proportion_difference gives p = 0.98 or 0.02 for the same two accuracies, by which comes first.
#
# The test asks whether two accuracies on test sets of n texts differ. Its page names the alternative "that the
# proportions are different", a threshold of 0.05, and calls a p below it a significant difference. The p returned is
# the normal distribution's share below z, and z is the first accuracy minus the second. So p is near 1 if the first
# one is larger: 0.95 and 0.70 of 100 texts give p = 0.9999996, and a real gain counts as noise. With the better
# model second p is half of what it should be, so 0.84 and 0.92 give 0.040 and "significant", as on the page, and
# 0.079 by the test for a difference. Two equal accuracies give 0.5 in place of 1. z itself is right. No warning
# comes, and no argument says which side is meant.
#
# Compute 2 * scipy.stats.norm.sf(abs(z)), or use a paired test on one test set. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mlxtend==0.23.4 statsmodels==0.15.0 numpy==2.4.6 \
    scipy==1.17.1 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import scipy.stats
from mlxtend.evaluate import proportion_difference
from statsmodels.stats.proportion import test_proportions_2indep

print("mlxtend", version("mlxtend"), "statsmodels", version("statsmodels"))
p = {}
for first, second in ((0.95, 0.70), (0.70, 0.95), (0.90, 0.80), (0.80, 0.90), (0.84, 0.92), (0.85, 0.85)):
    z, p[first, second] = proportion_difference(first, second, 100)
    of_statsmodels = test_proportions_2indep(first * 100, 100, second * 100, 100, method="wald", compare="diff")
    both_sides = 2 * scipy.stats.norm.sf(abs(z))
    print(f"{first:.2f} and {second:.2f} of 100: p = {p[first, second]:.7f}, for a difference {both_sides:.7f}, "
          f"statsmodels {of_statsmodels.pvalue:.7f}")
    assert abs(both_sides - of_statsmodels.pvalue) < 1e-6, "z is wrong, too"
assert p[0.95, 0.70] > 0.999 and p[0.70, 0.95] < 0.001, "the order does not matter now"
assert abs(p[0.90, 0.80] + p[0.80, 0.90] - 1) < 1e-9, "the order does not matter now"
assert 0.039 < p[0.84, 0.92] < 0.041 and p[0.85, 0.85] == 0.5, "p is another one"
PYTHON
echo "as seen"
