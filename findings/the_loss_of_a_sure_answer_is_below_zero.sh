#!/usr/bin/env bash
# daft 0.7.26, vortex-data 0.93.0 and pyarrow 25.0.1: -0.0 is not 0.0, so rows are lost where a loss is zero.
#
# The loss of an answer that a model is sure of, -log(1.0), is -0.0 in NumPy and TensorFlow, and so is a
# rounded small negative score, or 0 times -1. By IEEE 754, and in Python, NumPy, polars and DuckDB, it equals 0.0.
# Filters of daft and of a Vortex file order numbers by their bits instead: "loss >= 0" drops these rows, "loss < 0"
# finds them and "loss == 0" misses them. A check that no loss is negative fails on good data, and a filter loses the
# surest examples, from which clean ones are selected. daft also makes two groups of the two zeros and joins only
# equal bits. pyarrow compares as IEEE 754 does, but is_in, unique, value_counts, group_by and join tell the two
# apart, and so do columns of pandas with an Arrow type. Lance and DataFusion had such filters and changed them
# this year as an error (lance-format/lance issue 5868, apache/datafusion issue 22490).
#
# Add 0.0 to the column before it is stored: -0.0 + 0.0 is 0.0. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check daft==0.7.26 vortex-data==0.93.0 pyarrow==25.0.1 \
    numpy==2.4.6
DO_NOT_TRACK=true DAFT_PROGRESS_BAR=0 "$folder/venv/bin/python" - "$folder/losses.vortex" <<'PYTHON'
import sys
from importlib.metadata import version

import daft
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import vortex
import vortex.expr

for name in ("daft", "vortex-data", "pyarrow", "numpy"):
    print(name, version(name), end="; ")
losses = np.append(-np.log(np.array([1.0, 0.5, 1.0, 0.9])), 0.0)
print("\nlosses", losses)
table = pa.table({"row": np.arange(5), "loss": losses})
frame = daft.from_pydict({"row": list(range(5)), "loss": losses.tolist()})
vortex.io.write(table, sys.argv[1])
file = vortex.open(sys.argv[1])
CONDITIONS = {"loss >= 0": lambda loss: loss >= 0.0, "loss < 0": lambda loss: loss < 0.0,
              "loss == 0": lambda loss: loss == 0.0}
answers = {}
for name, condition in CONDITIONS.items():
    scan = file.scan(["row"], expr=condition(vortex.expr.column("loss"))).read_all()
    answers[name] = (sorted(frame.where(condition(daft.col("loss"))).to_pydict()["row"]),
                     [row["row"] for row in scan.to_arrow_array().to_pylist()],
                     table.filter(condition(pc.field("loss")))["row"].to_pylist(),
                     np.flatnonzero(condition(losses)).tolist())
    print(f"rows with {name:<10} daft {answers[name][0]}, Vortex {answers[name][1]}, pyarrow {answers[name][2]}, "
          f"NumPy {answers[name][3]}")
for name, wrong in (("loss >= 0", [1, 3, 4]), ("loss < 0", [0, 2]), ("loss == 0", [4])):
    assert answers[name][0] == answers[name][1] == wrong, "other rows"
    assert answers[name][2] == answers[name][3] != wrong, "NumPy and pyarrow are wrong too"

zero = pa.table({"loss": [0.0]})
pyarrow_rows = {"is_in": table.filter(pc.is_in(table["loss"], zero["loss"].combine_chunks())).num_rows,
                "join": table.join(zero, "loss", join_type="inner").num_rows,
                "zeros in group_by": sum(not row["loss"] for row in table.group_by("loss").aggregate([]).to_pylist()),
                "zeros in unique": sum(not loss for loss in pc.unique(table["loss"]).to_pylist())}
daft_rows = {"join": frame.join(daft.from_pydict({"loss": [0.0]}), on="loss").count_rows(),
             "zeros in groupby": sum(not loss for loss in frame.groupby("loss").agg(
                 daft.col("row").count()).to_pydict()["loss"])}
print("pyarrow", pyarrow_rows)
print("daft   ", daft_rows)
assert pyarrow_rows == {"is_in": 1, "join": 1, "zeros in group_by": 2, "zeros in unique": 2}, "the zeros are equal now"
assert daft_rows == {"join": 1, "zeros in groupby": 2}, "the zeros are equal now"
stored = pa.table({"row": np.arange(5), "loss": losses + 0.0})
assert pc.unique(stored["loss"]).to_pylist().count(0.0) == 1, "adding 0.0 does not help"
PYTHON
echo "as seen"
