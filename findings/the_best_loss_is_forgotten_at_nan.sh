#!/usr/bin/env bash
# daft 0.7.26: the minimum and maximum of a group are those of the rows after its last NaN.
#
# groupby("run").agg(col("loss").min()) is the line that finds each run's best step in a table of losses or scores.
# A step that overflowed, or a measure without a positive example, leaves a NaN. One would expect the NaN to be left
# out, or to be the result. daft goes through the group and starts anew at each NaN: what came before is forgotten.
# Here the best loss of run "a" is 0.5 and its best accuracy 0.9, both before the NaN, and daft says 0.8 and 0.7.
# The same column without groupby has the minimum 0.5. If the NaN is last, the result is NaN,
# if it is first, all is right. So the result depends on the order of rows, is a number that is in the table, and the
# wrong checkpoint or learning rate is chosen. SQL through daft.sql does the same. No warning comes.
#
# Filter first: where(~col("loss").is_nan()). Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check daft==0.7.26 pyarrow==25.0.1
DO_NOT_TRACK=true DAFT_PROGRESS_BAR=0 "$folder/venv/bin/python" - <<'PYTHON'
import math

import daft
from daft import col

print("daft", daft.__version__)
NAN = math.nan
steps = daft.from_pydict({"run": ["a"] * 6 + ["b"] * 6,
                          "loss": [2.0, 0.5, NAN, 0.9, 0.8, 1.1] + [2.0, 0.5, 0.7, 0.9, 0.8, 1.1],
                          "accuracy": [0.1, 0.9, NAN, 0.6, 0.7, 0.2] + [0.1, 0.9, 0.5, 0.6, 0.7, 0.2]})
best = {"loss": col("loss").min(), "accuracy": col("accuracy").max()}
best = [expression.alias(name) for name, expression in best.items()]


def rows(frame):
    """The rows of a frame, sorted."""
    return sorted(zip(*frame.to_pydict().values()))


grouped = rows(steps.groupby("run").agg(*best))
filtered = rows(steps.where(~col("loss").is_nan()).groupby("run").agg(*best))
alone = rows(steps.where(col("run") == "a").agg(col("loss").min()))
by_sql = rows(daft.sql("select run, min(loss) as loss, max(accuracy) as accuracy from steps group by run"))
print("groupby:               ", grouped)
print("groupby without NaN:   ", filtered)
print("SQL:                   ", by_sql)
print("run a without groupby: ", alone)
assert grouped == by_sql == [("a", 0.8, 0.7), ("b", 0.5, 0.9)], "groups have another minimum or maximum"
assert filtered == [("a", 0.5, 0.9), ("b", 0.5, 0.9)], "it is not the NaN"
assert alone == [(0.5,)], "the minimum without groupby is wrong too"
for order in ([NAN, 2.0, 0.5, 0.9], [2.0, NAN, 0.5, 0.9], [2.0, 0.5, NAN, 0.9], [2.0, 0.5, 0.9, NAN]):
    frame = daft.from_pydict({"run": ["a"] * 4, "loss": order})
    (_, low, high), = rows(frame.groupby("run").agg(col("loss").min().alias("low"), col("loss").max().alias("high")))
    print(f"{order}: minimum {low}, maximum {high}")
    after = order[order.index(NAN) + 1:] or [NAN]
    assert str((low, high)) == str((min(after), max(after))), "this order has another result"
PYTHON
echo "as seen"
