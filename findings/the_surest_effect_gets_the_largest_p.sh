#!/usr/bin/env bash
# permute 0.2: fwer_minp gives the adjusted p-values to the wrong hypotheses, unless these come in a lucky order, and
# by its default it finds a false effect in many more experiments than the 5% it is to hold.
#
# The function is for many measures of one experiment, as the scores of two models on several tasks: it adjusts their
# p-values so that any false discovery is as rare as alpha. It sorts the p-values, adjusts them from the smallest on,
# and brings them back by [np.argsort(pvalues)], the order that sorts, in place of its inverse. Both are the same only
# where the sorting swaps pairs. Of four p-values 0.321, 0.001, 0.109 and 0.023 the second, the only sure one, gets
# 0.321, and the last, 0.023, gets 0.001.
# An adjusted p-value is "the maximum of all p-values for tests including H_i". The shortcut that looks at the sorted
# rest alone finds this maximum for the smallest p-value as combining function, "tippett", which the name minP means.
# The default is combine="fisher", which adds up all of them: several weak effects that nobody could claim by themselves
# make the rest significant, and the hypothesis with the smallest p-value is taken for true, whichever it is. With
# 8 weak effects and 8 measures without any, a false one is found in a third of the experiments, with "tippett" in 3%.
#
# Sort p-values and columns of distr before, and give combine="tippett". Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check permute==0.2 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version
from itertools import combinations

import numpy as np
from permute.npc import fwer_minp, npc

print("permute", version("permute"), "numpy", np.__version__)
rng = np.random.default_rng(0)


def raw(found, shuffled):
    return (1 + (shuffled >= found).sum(0)) / (len(shuffled) + 1)


def closed(values, shuffled, place):
    """The largest p-value of all combinations of hypotheses that hold this one."""
    sets = [chosen for size in range(2, len(values) + 1) for chosen in combinations(range(len(values)), size)
            if place in chosen]
    return max([values[place], *(npc(values[list(chosen)], shuffled[:, chosen], combine="tippett") for chosen in sets)])


shuffled = rng.normal(size=(999, 4))
values = raw(np.array([0.5, 3.5, 1.2, 2.2]), shuffled)
right = np.array([closed(values, shuffled, place) for place in range(4)])
for order in ([0, 1, 2, 3], [1, 3, 2, 0], [1, 2, 3, 0]):
    given = fwer_minp(values[order], shuffled[:, order], combine="tippett")
    print(f"p-values {values[order]}: adjusted {given.round(3)}, by all combinations {right[order].round(3)}")
    assert np.allclose(np.sort(given), np.sort(right)) and np.allclose(given, right[order]) == (order[0] == 1)
assert fwer_minp(values, shuffled, combine="tippett").argmax() == values.argmin()


def false_discoveries(combine, effects, runs=60, draws=150):
    wrong = 0
    for _ in range(runs):
        shuffled = rng.normal(size=(draws, len(effects)))
        values = raw(effects + rng.normal(size=len(effects)), shuffled)
        order = np.argsort(values, kind="stable")
        adjusted = fwer_minp(values[order], shuffled[:, order], combine=combine)
        wrong += bool((effects[order][adjusted <= 0.05] == 0).any())
    return wrong / runs


weak = np.repeat([0.0, 1.2], 8)
rates = {combine: false_discoveries(combine, weak) for combine in ("fisher", "tippett")}
print("experiments with a false discovery at 5%:", {combine: f"{rate:.0%}" for combine, rate in rates.items()})
assert rates["fisher"] > 0.2 and rates["tippett"] < 0.1
PYTHON
echo "as seen"
