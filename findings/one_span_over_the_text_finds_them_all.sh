#!/usr/bin/env bash
# nereval 0.2.5: one predicted span counts as right for each entity that it touches, so that a tagger which marks the
# whole text as one person gets an F1 of 0.91 where ten persons are named, with a precision of 500%.
#
# The package scores named entities as in MUC: a prediction has a point for the right text and one for the right type,
# which needs an overlap, out of two for each prediction and for each entity. For each true entity it looks for the
# first prediction that fits in text or type, and never crosses it off. So one long prediction has a point for each
# entity that it covers, while it counts as two in the divisor, and the better the more there are: the F1 is 0.67 for
# two, 0.91 for ten and 0.99 for a hundred, where it would be 0.33, 0.09 and 0.01 if each prediction counted once.
# Precision has no bound, and is hidden in the F1. Taggers that glue neighbours together, as they do where B- and I-
# tags are confused, are scored too high: persons in a list, joined three by three, have 0.75 in place of 0.25. And
# since the search ends at the first fit, an exact prediction behind a partial one of the same entity loses its point
# for the text: in this order the two have 0.33, in the other 0.67. The README describes the measure by Nadeau and
# Sekine (2007), whose precision is a share of the predictions. No warning comes.
#
# Cross predictions off, as below, or take another package. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nereval==0.2.5
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import nereval
from nereval import Entity

print("nereval", version("nereval"))


def mended(true, pred):
    """Points by pairing each entity with one prediction, those with most points first; the F1."""
    pairs = sorted(((nereval.correct_text(x, y) + nereval.correct_type(x, y), i, j)
                    for i, x in enumerate(true) for j, y in enumerate(pred)), reverse=True)
    points, used_true, used_pred = 0, set(), set()
    for point, i, j in pairs:
        if point and i not in used_true and j not in used_pred:
            points += point
            used_true.add(i)
            used_pred.add(j)
    return points / (len(true) + len(pred))                        # 2 pr / (p + r), with two points for each


def write(number):
    """A text that names so many persons, and where they are."""
    names = [f"Person{i:02d}" for i in range(number)]
    text = ", ".join(names)
    return text, [Entity(name, "PER", text.index(name)) for name in names]


for number in (2, 5, 10, 100):
    text, true = write(number)
    whole = [Entity(text, "PER", 0)]
    correct = sum(nereval.count_correct(true, whole))
    f1 = nereval.evaluate([true], [whole])
    print(f"{number} persons, one span over all: precision {nereval.precision(correct, 2):.0%}, F1 {f1:.2f}, and"
          f" {mended(true, whole):.2f} if it counts once")
    assert correct == number and abs(f1 - number / (number + 1)) < 1e-9 and mended(true, whole) == 1 / (number + 1)
    assert nereval.evaluate([true], [true]) == mended(true, true) == 1

text, true = write(30)
joined = [Entity(text[true[i].start: true[i + 2].start + 8], "PER", true[i].start) for i in range(0, 30, 3)]
print(f"persons joined three by three: {nereval.evaluate([true], [joined]):.2f}, and {mended(true, joined):.2f}")
assert nereval.evaluate([true], [joined]) == 0.75 and mended(true, joined) == 0.25

exact, part = Entity("Marie Curie", "PER", 0), Entity("Marie", "PER", 0)
scores = [nereval.evaluate([[exact]], [order]) for order in ([part, exact], [exact, part])]
print(f"an exact prediction behind a partial one: {scores[0]:.2f}, before it: {scores[1]:.2f}")
assert scores[0] < scores[1] and mended([exact], [part, exact]) == mended([exact], [exact, part])
PYTHON
echo "as seen"
