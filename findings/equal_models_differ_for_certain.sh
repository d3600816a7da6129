#!/usr/bin/env bash
# mlxtend 0.23.4 and statsmodels 0.15.0: McNemar's test of two models that are right on the same texts gives p = 0.
#
# The test compares two classifiers on one test set by the texts that only one of them gets right. A quantised or
# converted model often has no such text beside its original. Then nothing speaks for a difference and p is 1, as the
# exact test of both libraries says. The test with chi-squared takes 1 from the difference of the two counts, for the
# continuity, also where there is no difference, and squares it: (0 - 1)**2 / 0 is infinite and p is 0.0, the surest
# difference there is. mlxtend does so by default, statsmodels with exact=False. Whoever asks "p < 0.05?" in a script
# is told that the copy differs. With equal counts above 0 the statistic is too large in the same way: 4 texts won
# and 4 lost give p = 0.72 in place of 1. NumPy's warning of a division by zero is all that can be seen.
#
# Pass exact=True, for any table with less than 25 such texts. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mlxtend==0.23.4 statsmodels==0.15.0 numpy==2.4.6 \
    scipy==1.17.1 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from mlxtend.evaluate import mcnemar, mcnemar_table
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of_statsmodels

print("mlxtend", version("mlxtend"), "statsmodels", version("statsmodels"))
gold = np.arange(1000) % 2
original = np.where(np.arange(1000) < 900, gold, 1 - gold)
four_won_four_lost = original.copy()
four_won_four_lost[:4] = 1 - gold[:4]
four_won_four_lost[-4:] = gold[-4:]
p = {}
for name, copy in (("the same answers", original.copy()), ("4 won, 4 lost", four_won_four_lost)):
    table = mcnemar_table(gold, original, copy)
    p[name] = [mcnemar(table)[1], mcnemar_of_statsmodels(table, exact=False).pvalue,
               mcnemar(table, exact=True)[1], mcnemar_of_statsmodels(table, exact=True).pvalue]
    print(f"{name:<17} table {table.tolist()}, p by chi-squared: mlxtend {p[name][0]:.3f}, statsmodels "
          f"{p[name][1]:.3f}; exact: {p[name][2]:.3f}, {p[name][3]:.3f}")
assert p["the same answers"][:2] == [0, 0], "equal models do not differ now"
assert p["the same answers"][2:] == p["4 won, 4 lost"][2:] == [1, 1], "the exact test is wrong too"
assert all(abs(value - 0.7237) < 1e-4 for value in p["4 won, 4 lost"][:2]), "equal counts do not differ now"
PYTHON
echo "as seen"
