#!/usr/bin/env bash
# cleanlab 2.9.0: where an annotator skipped a text, the labels of all are counted for the first classes, so a text
# that all labelled 2 gets the consensus 0.
#
# cleanlab.multiannotator makes one label of those of several annotators. Texts that somebody did not label have NaN,
# as documented, so the table holds decimal numbers. For these, the counts of a text's labels are put in the first
# places, in the order of the labels that occur: three times 2 counts as three times 0. With quality_method
# ="agreement", the fraction that agrees, all texts with one label get the consensus 0, with an agreement of 0.0,
# under the default consensus_method; here 15 of 100 come out right if class 2 is the common one, and majority vote
# has 99. The temperature of calibrate_probs=True and of get_active_learning_scores is fitted to the same counts: if
# the classes are only numbered otherwise, the qualities are 0.67 in place of 0.75, and other texts are to be labelled
# next. A full table of whole numbers is right. Nothing is said but that classes are missing, if one of them is.
#
# Take consensus_method="majority_vote", calibrate_probs=False. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check cleanlab==2.9.0 numpy==2.4.6 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from cleanlab.multiannotator import get_active_learning_scores, get_label_quality_multiannotator

print("cleanlab", version("cleanlab"))


def consensus(labels, probabilities, **options):
    """The consensus labels and the quality scores of them."""
    result = get_label_quality_multiannotator(labels, probabilities, verbose=False, **options)["label_quality"]
    return result["consensus_label"].to_numpy(), result["consensus_quality_score"].to_numpy()


small = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2], [1, 1, 0], [2, 2, np.nan], [0, np.nan, 0]])
majority = np.array([0, 1, 2, 1, 2, 0])
model = np.full((6, 3), 0.05)
model[np.arange(6), majority] = 0.9
labels, qualities = consensus(small, model, quality_method="agreement")
print("labels   ", small.tolist())
print("consensus", labels.tolist(), "agreement", qualities.round(2).tolist())
assert labels.tolist() == [0, 0, 0, 1, 0, 0] and qualities[1] == qualities[2] == 0, "the consensus is another one"
full = consensus(small[:4].astype(int), model[:4], quality_method="agreement")[0]
assert full.tolist() == majority[:4].tolist(), "a full table is wrong too"

rng = np.random.default_rng(0)
gold = rng.choice(3, 300, p=[0.8, 0.1, 0.1])
model = np.full((300, 3), 0.025)
model[np.arange(300), np.where(rng.random(300) < 0.9, gold, rng.integers(0, 3, 300))] = 0.95
table = np.where(rng.random((300, 5)) < 0.9, gold[:, None], rng.integers(0, 3, (300, 5))).astype(float)
table[rng.random((300, 5)) > 0.7] = np.nan
some = ~np.isnan(table).all(1)
gold, model, table = gold[some], model[some], table[some]
seen = []
for order in ([0, 1, 2], [1, 0, 2], [2, 0, 1]):
    order = np.array(order)                    # the new number of each class
    renumbered = np.where(np.isnan(table), np.nan, order[np.nan_to_num(table).astype(int)])
    probabilities = model[:, np.argsort(order)]
    right = {}
    for name, options in (("agreement", {"quality_method": "agreement"}),
                          ("majority", {"quality_method": "agreement", "consensus_method": "majority_vote"}),
                          ("crowdlab", {}), ("calibrated", {"calibrate_probs": True})):
        labels, qualities = consensus(renumbered, probabilities, **options)
        right[name] = (labels == order[gold]).mean(), qualities.mean()
    scores = get_active_learning_scores(renumbered, probabilities)[0]
    seen.append((right, np.argsort(scores, kind="stable")[:5].tolist()))
    print(f"the common class is {order[0]}; next texts to label: {seen[-1][1]}")
    for name, (share, quality) in right.items():
        print(f"  {name:<10} {share:.3f} right, mean quality {quality:.3f}")
assert seen[0][0]["agreement"][0] > 0.7 and seen[2][0]["agreement"][0] < 0.2, "agreement is otherwise"
assert all(right["majority"][0] > 0.95 for right, _ in seen), "majority vote is wrong too"
assert np.ptp([right["crowdlab"][1] for right, _ in seen]) < 1e-9, "crowdlab depends on the numbers too"
assert seen[0][0]["calibrated"][1] - seen[2][0]["calibrated"][1] > 0.05, "calibration does not depend on the numbers"
assert seen[0][1] != seen[2][1], "the next texts do not depend on the numbers"
PYTHON
echo "as seen"
