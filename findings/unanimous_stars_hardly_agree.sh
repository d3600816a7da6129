#!/usr/bin/env bash
# kendall-w 1.0.0: compute_w takes the ratings for ranks, so that annotators who give the same stars to 20 texts have
# an agreement of 0.06 in place of 1, and those who give the same percentages 25.
#
# Kendall's W says how far annotators put items in the same order. compute_w is documented as "computes kendall's W
# from a list of rating lists. 0 indicates no agreement and 1 indicates unanimous agreement". W is a formula of ranks:
# the sums of the ranks of each item are compared with the largest spread that they can have, (n^3 - n) m^2 / 12. The
# code puts the ratings in, as they are, and compares their spread with that of the ranks 1 to n. Stars from 1 to 5 have
# a spread that doesn't grow with the number of texts, so the more texts there are, the less the annotators agree: 0.06
# for 20 texts and 0.002 for 100, if all give the same stars. With percentages it is above 1, and a hundred times as
# large in tenths of them. Nothing checks that the numbers are ranks, and no warning comes. Two sets of annotators
# change places: four who agree fully in stars have 0.06, and four who give each text a number between 1 and 20 by lot
# 0.36. With ranks from 1 to n without ties the function is right. Users found it in 2023 and 2024
# (github.com/ugolbck/kendall-w/issues/1 and /2), and a change is open since May 2026 (/pull/3); the page is the same.
#
# Take the W of Friedman's statistic, chi2 / (m (n - 1)), by scipy's friedmanchisquare, which ranks and corrects for
# ties. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kendall-w==1.0.0 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from kendall_w import kendall_w
from scipy.stats import friedmanchisquare

print("kendall-w", version("kendall-w"), "numpy", np.__version__)
rng = np.random.default_rng(0)


def by_friedman(ratings):
    """Kendall's W with the correction for ties; a row for each item, a column for each annotator."""
    items, annotators = ratings.shape
    return friedmanchisquare(*ratings).statistic / (annotators * (items - 1))


def show(name, ratings):
    found, right = kendall_w.compute_w(ratings.tolist()), by_friedman(ratings)
    print(f"{name}: compute_w {found:.3f}, by Friedman's statistic {right:.3f}")
    return found, right


stars = np.repeat(np.tile(np.arange(1, 6), 4)[:, None], 4, axis=1)
same = show("20 texts, four annotators, the same stars", stars)
more = show("100 texts, the same stars", np.repeat(stars, 5, axis=0))
percent = show("20 texts, the same percentages", np.repeat(np.arange(0, 100, 5)[:, None], 4, axis=1))
scale = show("the same in tenths", np.repeat(np.arange(0, 1000, 50)[:, None], 4, axis=1))
lot = show("20 texts, a number from 1 to 20 by lot", rng.integers(1, 21, (20, 4)))
ranks = np.stack([rng.permutation(20) + 1 for _ in range(4)], axis=1)
order = show("20 texts, ranks by lot", ranks)
full = show("20 texts, the same ranks", np.repeat(np.arange(1, 21)[:, None], 4, axis=1))
assert all(abs(pair[1] - 1) < 1e-9 for pair in (same, more, percent, scale, full))
assert same[0] < 0.07 and more[0] < 0.003, "ratings are ranked now"
assert percent[0] > 1 and abs(scale[0] / percent[0] - 100) < 1e-6, "ratings are ranked now"
assert lot[0] > 2 * same[0] and lot[1] < 0.5
assert abs(order[0] - order[1]) < 1e-9 and abs(full[0] - 1) < 1e-9, "ranks are right"
PYTHON
echo "as seen"
