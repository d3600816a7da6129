#!/usr/bin/env bash
# sklearn-crfsuite 0.5.0: sequence_accuracy_score counts tags in place of sentences where all sentences have one length,
# so that it is 12 for a perfect tagger of 12 tokens each, and 11 for one that gets no sentence right.
#
# The score is the share of sentences whose tags are all right: "match is counted only when two sequences are equal".
# Version 0.3.6 compared in a loop; now both lists are made arrays of objects and compared at once. NumPy makes a table
# of lists of one length, though they are objects, and compares tag by tag; only where lengths differ an element is a
# list. So for sentences that were cut or padded to one length, for windows, or for one sentence alone, the score is
# the number of right tags for each sentence: 12 at best, and 11 for a tagger with a mistake in each sentence, where 1
# and 0 are right. A single longer sentence turns it back to the share: 11.0 for a test set, 0.01 for the same with a
# longer sentence more, so that folds of a cross-validation may differ a thousandfold. flat_accuracy_score and the
# others are right. The documentation names no such case. No warning comes.
#
# Compare in a loop, as below. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sklearn-crfsuite==0.5.0 scikit-learn==1.9.1 \
    scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" -W error - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import random
from importlib.metadata import version

from sklearn_crfsuite import metrics

print("sklearn-crfsuite", version("sklearn-crfsuite"))
TAGS, LENGTH = ["O", "B-PER", "I-PER", "B-LOC"], 12
draw = random.Random(0)


def share(true, pred):
    """The share of sentences whose tags are all right."""
    return sum(a == b for a, b in zip(true, pred)) / len(true)


def spoil(sentence):
    """The same tags with one mistake."""
    place = draw.randrange(len(sentence))
    return [draw.choice([t for t in TAGS if t != tag]) if i == place else tag for i, tag in enumerate(sentence)]


true = [[draw.choice(TAGS) for _ in range(LENGTH)] for _ in range(100)]
longer = [[*true[0], "O"]]
for name, every, right in (("perfect", 0, 1), ("a mistake in each sentence", 1, 0), ("in every other", 2, 0.5)):
    pred = [spoil(s) if every and i % every == 0 else s for i, s in enumerate(true)]
    seen = metrics.sequence_accuracy_score(true, pred)
    other = metrics.sequence_accuracy_score(true + longer, pred + longer)
    print(f"{name}: {seen}, with one longer sentence more {other:.3f}; right is {share(true, pred)}")
    assert share(true, pred) == right and seen == LENGTH - (1 - right)
    assert other == share(true + longer, pred + longer) <= 1
    assert abs(metrics.flat_accuracy_score(true, pred) - seen / LENGTH) < 1e-12
alone = metrics.sequence_accuracy_score([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])
print(f"one sentence alone, two of three tags right: {alone}")
assert alone == 2.0
PYTHON
echo "as seen"
