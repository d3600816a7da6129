#!/usr/bin/env bash
# crowd-kit 1.4.2: MMSR, which finds out the annotators who lie, takes their label wherever they are the majority.
#
# crowd-kit makes one label of those of several annotators. MMSR is for crowds in which some answer wrongly on purpose,
# or misread the question. It estimates a weight for each of them, the log of the odds of being right, which is
# negative for those who are wrong more often than chance, and adds up the weights for each label. Before the
# largest sum is taken, the sums of a text are divided by their own total, to look like probabilities. Where the liars
# weigh more the total is negative, and the division turns the order round: the label of the liars has the
# largest number, here 1.8 and -0.8. Where all of five agree on a label and are known to lie it is taken too. The
# weights are right: with them and no division 98 of 100 texts get the right label here, and MMSR has 68, hardly more
# than a majority vote without weights. MajorityVote does the same with negative skills that are passed to fit. Without
# liars nothing is to be seen. No warning comes.
#
# Add up skills_ for each label and take the largest. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check crowd-kit==1.4.2 numpy==2.4.6 pandas==3.1.1 \
    scipy==1.17.1 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from crowdkit.aggregation import MMSR, DawidSkene, MajorityVote

print("crowd-kit", version("crowd-kit"))
table = pd.DataFrame([("text", "honest", "right"), ("text", "liar 1", "wrong"), ("text", "liar 2", "wrong")],
                     columns=["task", "worker", "label"])
skills = pd.Series({"honest": 1.0, "liar 1": -1.5, "liar 2": -0.75})
vote = MajorityVote().fit(table, skills)
print("sums of weights: right 1.0, wrong -2.25; probabilities", vote.probas_.iloc[0].round(2).to_dict(),
      "label", vote.labels_["text"])
assert vote.labels_["text"] == "wrong", "the largest sum of weights is taken"


def crowd(classes, share, seed, texts=400, annotators=40):
    """The right labels, the table of five labels for each text and who lies: 9 of 10 honest labels are right."""
    rng = np.random.default_rng(seed)
    gold, rows = rng.integers(0, classes, texts), []
    for text in range(texts):
        for annotator in rng.choice(annotators, 5, replace=False):
            right = rng.random() < (0.1 if annotator < share * annotators else 0.9)
            rows.append((text, annotator, gold[text] if right else (gold[text] + rng.integers(1, classes)) % classes))
    return gold, pd.DataFrame(rows, columns=["task", "worker", "label"])


for classes in (2, 4):
    for share in (0.0, 0.2, 0.4):
        gold, table = crowd(classes, share, seed=0)
        method = MMSR().fit(table)
        weights = table.worker.map(method.skills_)
        sums = weights.groupby([table.task, table.label]).sum().unstack(fill_value=0.0)
        right = {"MMSR": method.predict(table), "its weights": sums.idxmax(axis=1),
                 "majority": MajorityVote().fit_predict(table), "Dawid-Skene": DawidSkene(50).fit_predict(table)}
        right = {name: float((labels.reindex(range(len(gold))) == gold).mean()) for name, labels in right.items()}
        negative = sums.sum(axis=1) < 0
        print(f"{classes} labels, {share:.0%} lie: right are", {name: round(value, 3) for name, value in right.items()},
              f"; {negative.mean():.2f} of the texts have a negative total")
        known = method.skills_[method.skills_.index < share * 40]
        assert (known < 0).mean() >= 0.9 if share else True, "the liars are not known"
        assert right["its weights"] > 0.93, "the weights are wrong"
        if share == 0.0:
            assert right["MMSR"] == right["its weights"], "it differs without liars too"
        if share == 0.4:
            assert right["MMSR"] < right["its weights"] - 0.1, "the liars don't win"
        predicted = method.predict(table)
        turned = predicted[negative.index[negative]] == sums[negative].idxmin(axis=1)
        assert not negative.any() or turned.mean() > 0.9, "the order is not turned round"
PYTHON
echo "as seen"
