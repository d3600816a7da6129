#!/usr/bin/env bash
# permute 0.2: with stat="mean_within_strata" the one-sided test finds a worse model better, with p = 0.002, and of
# three conditions in two strata the third is not looked at.
#
# stratified_two_sample compares two conditions, as two models, within strata, as languages, by permuting them in each
# stratum. For "mean_within_strata" the documentation promises "the difference in means within each stratum, added
# across strata", and for alternative="greater" a test against "x comes from a population with mean greater than that
# of the population from which y comes". What is added is the absolute difference with two strata and the standard
# deviation of the means, half the absolute difference, with more. So "greater" rejects whenever the two differ, in
# either direction: a model that is worse in each language is "greater" with p = 0.002, and "less" gives it 0.998. Two
# strata with opposite differences add up instead of cancelling, so a model that is better in one language and worse in
# the other by the same amount is "greater" too.
#
# The same statistic serves stratified_permutationtest, where it should be a difference for two conditions and a
# standard deviation for more. It asks for the number of strata in place of that of conditions. With two strata and
# three conditions only the first two are compared, so that a third one, two standard deviations away, goes unnoticed.
#
# Take stat="mean", or a function of your own as stat, with the differences added with their signs. Seen in November
# 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check permute==0.2 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from permute.stratified import stratified_permutationtest, stratified_two_sample

print("permute", version("permute"))
rng = np.random.default_rng(0)


def test(scores, strata, models, stat, alternative):
    return float(stratified_two_sample(strata, models, scores, stat=stat, alternative=alternative, reps=400, seed=1)[0])


def signed(strata, models):
    """The documented statistic, for responses in the order of the sorted models, as the function hands them over."""
    order = models.argsort()
    strata, first = strata[order], models[order] == "a"
    return lambda scores: sum(scores[first & (strata == stratum)].mean() - scores[~first & (strata == stratum)].mean()
                              for stratum in np.unique(strata))


for number in (2, 4):
    strata, models = np.repeat(np.arange(number), 60), np.tile(np.array(["a", "b"]), number * 30)
    noise = rng.normal(size=len(strata))
    for name, effect in (("a is worse everywhere", -0.7), ("a is better everywhere", 0.7),
                         ("a is worse in one half, better in the other", np.where(strata < number / 2, -0.7, 0.7))):
        scores = strata + noise + effect * (models == "a")
        values = {}
        for stat in ("mean_within_strata", "documented"):
            function = signed(strata, models) if stat == "documented" else stat
            values[stat] = [test(scores, strata, models, function, side) for side in ("greater", "less")]
        print(f"{number} strata, {name}: p for greater and less {np.round(values['mean_within_strata'], 3)},",
              f"with the documented statistic {np.round(values['documented'], 3)}")
        assert values["mean_within_strata"][0] < 0.02 and values["mean_within_strata"][1] > 0.98, "the sign counts now"
        greater, less = values["documented"]
        if "half" in name:
            assert greater > 0.05 and less > 0.05
        else:
            assert (greater > 0.98, less < 0.02) == ((True, True) if "worse" in name else (False, False))

for number in (2, 3):
    strata, conditions = np.repeat(np.arange(number), 90), np.tile(np.array(["a", "b", "c"]), number * 30)
    scores = rng.normal(size=len(strata)) + 2 * (conditions == "c")
    value, statistic, _ = stratified_permutationtest(strata, conditions, scores, reps=400, seed=1)
    means = np.array([[scores[(strata == stratum) & (conditions == name)].mean() for name in "abc"]
                      for stratum in range(number)])
    print(f"{number} strata, three conditions, the third is 2 away: p = {value:.3f}, statistic {statistic:.3f},",
          f"standard deviations {means.std(1).sum():.3f}, first two {np.abs(means[:, 0] - means[:, 1]).sum():.3f}")
    if number == 2:
        assert value > 0.05 and np.isclose(statistic, np.abs(means[:, 0] - means[:, 1]).sum()), "the third is seen now"
    else:
        assert value < 0.01 and np.isclose(statistic, means.std(1).sum())
PYTHON
echo "as seen"
