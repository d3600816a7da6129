#!/usr/bin/env bash
# pyarrow 25.0.1: a filter on a Parquet file misses rows with NaN, which the same filter finds in memory.
#
# read_table(filters=...) compares the filter with the smallest and largest number of each row group
# before it reads the rows. Parquet's format has no NaN in these two, and says that a reader has to expect
# NaN beside them. pyarrow writes and reads them without this. A column of the losses or scores of a
# model shows it: where the other numbers are equal, is_nan finds no row, and counting the rows that are
# not NaN counts all of them. "not below 0.6" drops NaN wherever the numbers are below 0.6. The check
# "no loss is NaN" passes so. Whether a row is found depends on its neighbours in the row group.
# DuckDB 2.0.1 and isnan() find no NaN in these files either, unless read_parquet is told can_have_nan;
# polars 2.1.0 finds all.
#
# Read the column and filter the table, or write with write_statistics=False. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==25.0.1 duckdb==2.0.1 polars==2.1.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import duckdb
import polars
import pyarrow
from pyarrow import compute, dataset, parquet

print("pyarrow", pyarrow.__version__, "duckdb", duckdb.__version__, "polars", polars.__version__)
loss = compute.field("loss")
FILTERS = {"NaN": compute.is_nan(loss), "not NaN": ~compute.is_nan(loss), "not below 0.6": ~(loss < 0.6),
           "other than 0": loss != 0.0}
# the rows found in memory, read from the file, counted in the file
SEEN = {(0.0, 0.0, float("nan")): [(1, 0, 0), (2, 2, 3), (1, 0, 0), (1, 0, 0)],
        (0.1, 0.2, float("nan")): [(1, 1, 1), (2, 2, 2), (1, 0, 0), (3, 3, 3)]}
for losses, seen in SEEN.items():
    table = pyarrow.table({"loss": losses})
    for statistics in (True, False):
        parquet.write_table(table, "loss.parquet", write_statistics=statistics)
        counts = [(table.filter(rows).num_rows, parquet.read_table("loss.parquet", filters=rows).num_rows,
                   dataset.dataset("loss.parquet").count_rows(filter=rows)) for rows in FILTERS.values()]
        print(losses, "with statistics" if statistics else "without", dict(zip(FILTERS, counts)))
        assert counts == (seen if statistics else [(row[0],) * 3 for row in seen]), "other rows than seen"
    parquet.write_table(table, "loss.parquet")
    ducks = duckdb.sql("select count(*) from 'loss.parquet' where isnan(loss)").fetchall()[0][0]
    bears = polars.scan_parquet("loss.parquet").filter(polars.col("loss").is_nan()).collect().height
    print(losses, "NaN found by duckdb:", ducks, "by polars:", bears)
    assert (ducks, bears) == (0, 1), "another result than seen"
PYTHON
echo "as seen"
