#!/usr/bin/env bash
# iaa-kit 0.1.2: weighted_kappa sorts the grades 1 to 10 by their text, so that 10 stands between 1 and 2, and ac2 is
# not Gwet's coefficient but this kappa.
#
# Weighted kappa is the measure of agreement for graded answers: being off by one grade costs little, by nine much.
# iaa-kit takes the places of two grades in the sorted list of those that occur, and sorts by repr, where "10" comes
# after "1" and before "2". So two annotators who are never further apart than one grade have a quadratic kappa of 0.72
# in place of 0.96, and ten texts with 1 by the one and 10 by the other cost next to nothing. Negative grades come in
# reverse: -1 before -2. Up to nine positive grades all is right, so tests with stars do not show it. "iaa-kit analyze"
# writes these numbers too. ac2 should be Gwet's AC2, which the README promises, for chance agreement that hardly
# depends on how frequent the grades are. It calls kappa: where 96 of 100 texts get the same grade from both and the
# rest differ by one, it is -0.02 where Gwet's is 0.96. No warning comes.
#
# Use scikit-learn's cohen_kappa_score with all grades in labels, and irrCAC for Gwet's. Seen in December 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check iaa-kit==0.1.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
from fractions import Fraction
from importlib.metadata import version

import numpy as np
from iaa_kit import ac1, ac2, cohen_kappa, weighted_kappa

print("iaa-kit", version("iaa-kit"))


def exact(a, b, grades, power, gwet=False):
    """Cohen's weighted kappa or Gwet's AC2 of two annotators, by their definitions."""
    size, width = len(a), max(grades) - min(grades)
    weight = {(g, h): 1 - Fraction(abs(g - h), width) ** power if power else Fraction(g == h)
              for g in grades for h in grades}
    share = [{g: Fraction(list(labels).count(g), size) for g in grades} for labels in (a, b)]
    observed = sum(weight[pair] for pair in zip(a, b)) / size
    if gwet:
        mean = [(share[0][g] + share[1][g]) / 2 for g in grades]
        chance = sum(weight.values()) * sum(p * (1 - p) for p in mean) / (len(grades) * (len(grades) - 1))
    else:
        chance = sum(weight[g, h] * share[0][g] * share[1][h] for g in grades for h in grades)
    return float((observed - chance) / (1 - chance))


def by_text(labels, grades):
    """The place of each grade if the grades are sorted by their text."""
    order = sorted(grades, key=repr)
    return [order.index(label) for label in labels]


rng = np.random.default_rng(0)
for low, high in ((1, 9), (1, 10), (0, 100), (-3, 3)):
    grades = range(low, high + 1)
    a = [int(grade) for grade in rng.integers(low, high + 1, 2000)] + list(grades)
    b = [min(max(grade + int(step), low), high) for grade, step in zip(a, rng.integers(-1, 2, len(a)))]
    for name, power in (("linear", 1), ("quadratic", 2)):
        seen, right = weighted_kappa(a, b, name), exact(a, b, grades, power)
        places = exact(by_text(a, grades), by_text(b, grades), range(len(grades)), power)
        print(f"grades {low} to {high}, off by one at most, {name}: {seen:.3f}, right {right:.3f}")
        assert abs(seen - places) < 1e-9, "the grades are sorted in another way now"
        assert abs(seen - right) < 1e-9 if (low, high) == (1, 9) else seen < right - 0.03
    assert abs(cohen_kappa(a, b) - exact(a, b, grades, 0)) < 1e-9, "the plain kappa is right"

base = list(range(1, 11)) * 10
costs = {}
for pair in ((1, 10), (9, 10), (1, 2)):
    a, b = base + [pair[0]] * 10, base + [pair[1]] * 10
    costs[pair] = weighted_kappa(a, b, "quadratic"), exact(a, b, range(1, 11), 2)
    print(f"ten times {pair[0]} against {pair[1]} among a hundred texts that agree: {costs[pair][0]:.3f}, right"
          f" {costs[pair][1]:.3f}")
assert costs[1, 10][0] > 0.99 > costs[1, 10][1] + 0.3 and costs[9, 10][0] < 0.75 < 0.99 < costs[9, 10][1]

a, b = [5] * 96 + [4, 4, 5, 5], [5] * 96 + [5, 5, 4, 4]
for power, name in ((1, "linear"), (2, "quadratic")):
    gwet = exact(a, b, range(4, 6), power, gwet=True)
    print(f"96 of 100 agree: ac2 {ac2(a, b, name):.3f}, Gwet's {gwet:.3f}, ac1 {ac1(a, b):.3f}")
    assert ac2(a, b, name) == weighted_kappa(a, b, name) < 0 < 0.95 < gwet
    assert abs(ac1(a, b) - exact(a, b, range(4, 6), 0, gwet=True)) < 1e-9, "ac1 is right"
PYTHON
echo "as seen"
