#!/usr/bin/env bash
# calikit 0.1.0: fit_isotonic does not put equal scores together, so that the answers with the best grade of a judge
# are right with the probability 1, and those with the worst with 0, whatever was observed.
#
# calikit makes honest probabilities of the scores of a classifier or of a model that judges, as of grades from 1 to 10
# (--rescale 1,10). Isotonic regression gives scores the observed shares of right answers, as steps that never fall.
# Answers with one score must get one share, so they have to be put together first. calikit sorts by score and then by
# label, and joins two neighbours only where the second is not better. Within one score the wrong answers come first
# and the right ones after them, which is no fall. So the wrong answers of the worst grade stay a step of their own
# with the share 0, and the right ones of the best a step with 1. In between the right answers of each grade are joined
# with the wrong ones of the next. With five grades whose answers are right in 40% to 60% of the cases, the best grade
# gets 1.00 in place of 0.60. The log loss rises from 0.83 to 4.8 on the very answers of the fit. Scores that are all
# different come out right, and so do most tests. No warning comes.
#
# Use scikit-learn's IsotonicRegression, or average the labels of each score first, as below. Seen in December 2026
# with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check calikit==0.1.0
"$folder/venv/bin/python" - <<'PYTHON'
import random
from collections import defaultdict
from fractions import Fraction
from importlib.metadata import version

from calikit import brier, fit_isotonic, fit_platt, log_loss

print("calikit", version("calikit"))
random.seed(0)


def right(scores, labels):
    """The least squares fit that never falls, with one share per score, by joining falling neighbours."""
    groups = defaultdict(list)
    for score, label in zip(scores, labels):
        groups[score].append(label)
    steps = []
    for score in sorted(groups):
        steps.append([sum(groups[score]), len(groups[score]), [score]])
        while len(steps) > 1 and Fraction(*steps[-2][:2]) >= Fraction(*steps[-1][:2]):
            total, size, members = steps.pop()
            steps[-1] = [steps[-1][0] + total, steps[-1][1] + size, steps[-1][2] + members]
    return {score: total / size for total, size, members in steps for score in members}


def cost(mapping, scores, labels):
    return sum((mapping(score) - label) ** 2 for score, label in zip(scores, labels)) / len(scores)


for name, shares, size in (("five grades", (0.4, 0.45, 0.5, 0.55, 0.6), 400), ("ten grades", [0.05 + g / 11 for g in
                           range(10)], 200), ("one grade", (0.5,), 100)):
    grades = len(shares)
    scores = [(g + 0.5) / grades for g in range(grades) for _ in range(size)]
    labels = [int(place < share * size) for share in shares for place in range(size)]
    order = random.sample(range(len(scores)), len(scores))
    scores, labels = [scores[i] for i in order], [labels[i] for i in order]
    mapping, best = fit_isotonic(scores, labels), right(scores, labels)
    seen = [mapping.apply_one(score) for score in sorted(set(scores))]
    truth = [best[score] for score in sorted(set(scores))]
    losses = [log_loss(probs, labels) for probs in (scores, mapping.apply(scores), [best[s] for s in scores])]
    print(f"{name}: seen", [round(share, 2) for share in seen], "right", [round(share, 2) for share in truth])
    print("    log loss before, after, right:", [round(loss, 3) for loss in losses])
    assert cost(mapping.apply_one, scores, labels) > cost(best.get, scores, labels) + 0.0005
    assert all(abs(share - count) < 0.01 for share, count in zip(truth, shares))
    if grades > 1:
        assert seen[0] == 0 and seen[-1] == 1, "equal scores are put together now"
        platt = fit_platt(scores, labels).apply_one(max(scores))
        print(f"    the best grade: {truth[-1]:.0%} right, by Platt's curve {platt:.0%}, by the steps {seen[-1]:.0%}")
        assert abs(platt - truth[-1]) < 0.1 and losses[1] > 1.5 * losses[2]
    else:
        assert seen[0] in (0.0, 1.0) and truth[0] == 0.5, "a single score gets its share now"

scores = random.sample([place / 5000 for place in range(5000)], 2000)     # all different
labels = [int(random.random() < score) for score in scores]
mapping, best = fit_isotonic(scores, labels), right(scores, labels)
assert max(abs(mapping.apply_one(score) - best[score]) for score in scores) < 1e-9, "not right for different scores"
print(f"2000 different scores: Brier score {brier(mapping.apply(scores), labels):.4f}, as it should be")
PYTHON
echo "as seen"
