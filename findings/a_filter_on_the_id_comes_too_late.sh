#!/usr/bin/env bash
# sqlite-vec 0.1.9: beside a search for the nearest vectors, some conditions find other rows than without it.
#
# A vec0 table takes conditions on its columns in the WHERE of a search, and most are applied before the k
# nearest are taken, as documented: with "lang = 'de'" the answer is the k nearest German rows. Three
# kinds are not, and the same condition in a plain SELECT is right. A range or one value of the primary key is
# applied after the k rows are taken: "id < 500" leaves 3 of 10 and "id = 7" none, and so does a list of one,
# "id in (7)", while "id in (7, 8)" is right. "in" on a partition key gives k rows for each value, here 20 for
# k = 10. A whole-number column that is compared with a fraction compares with the fraction cut off:
# "stars >= 2.1" returns rows with 2 stars, "stars < 3.5" none with 3, and "stars = 2.5" finds rows. Whoever
# searches the newest texts, several languages or the texts above an average gets too few passages, too many
# or wrong ones.
#
# Select the ids first and write "id in (select ...)", add LIMIT k, and round the number before. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sqlite-vec==0.1.9 apsw==3.54.1.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import apsw
import numpy as np
import sqlite_vec

database = apsw.Connection(":memory:")      # many builds of Python's sqlite3 cannot load extensions
database.enable_load_extension(True)
database.load_extension(sqlite_vec.loadable_path())
print("sqlite-vec", database.execute("select vec_version()").fetchone()[0], "SQLite", apsw.sqlite_lib_version())
database.execute("create virtual table texts using vec0(id integer primary key, lang text partition key, "
                 "stars integer, vector float[8])")
rng = np.random.default_rng(0)
query, vectors = rng.standard_normal(8).astype("float32"), rng.standard_normal((3000, 8)).astype("float32")
database.executemany("insert into texts values(?, ?, ?, ?)",
                     [(number, ("de", "en", "fr")[number % 3], number % 7, vector.tobytes())
                      for number, vector in enumerate(vectors)])
distances = ((vectors - query) ** 2).sum(1)


def search(condition):
    """Of the 10 nearest rows: how many were returned, are among the right ones, and fulfil the condition."""
    rows = {row for row, in database.execute(f"select id from texts where {condition}")}
    nearest = set(sorted(rows, key=lambda row: distances[row])[:10])
    answer = [row for row, in database.execute(
        f"select id from texts where vector match ? and k = 10 and {condition}", (query.tobytes(),))]
    result = len(answer), len(nearest & set(answer)), len(rows & set(answer))
    print(f"{condition:<43} of {len(nearest):>2}: returned {result[0]:>2}, right {result[1]:>2}, fulfil {result[2]:>2}")
    return result


for condition in ("lang = 'de'", "lang != 'de'", "stars = 2", "stars > 3", "lang = 'de' and stars in (2, 3)",
                  "stars >= 3.0", "id in (select id from texts where id < 500)", "id in (7, 8)", "id in (select 7)"):
    returned, right, fulfil = search(condition)
    assert returned == right == fulfil and returned in (1, 2, 10), "this one is wrong too"
for condition, seen in (("id < 500", (3, 3, 3)), ("id between 100 and 400", (1, 1, 1)), ("id = 7", (0, 0, 0)),
                        ("id in (7)", (0, 0, 0)), ("lang in ('de', 'fr')", (20, 10, 20)), ("stars >= 2.1", (10, 7, 7)),
                        ("stars < 3.5", (10, 7, 10)), ("stars = 2.5", (10, 0, 0))):
    assert search(condition) == seen, f"not {seen}"
PYTHON
echo "as seen"
