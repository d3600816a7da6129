#!/usr/bin/env bash
# polars 2.1.0: the numbers of a Categorical column depend on every other categorical column in memory.
#
# Casting the label column to Categorical and taking its physical numbers is a short way to class ids. Up
# to 1.31 each column counted its own values from 0. All columns of the type now share one list of
# the process. If a column of languages with four values was cast before, "ham" and "spam" are 4 and 5,
# for a head with two outputs. After reading the test file first, "spam" is 0. So the ids differ between
# a training script and a prediction script that read the same file, and even within one process, since the
# list empties when its last column is gone. Files keep the texts, so nothing else shows it.
#
# Cast to pl.Enum(names), whose ids are the places in the given list. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 1.31.0 2.1.0; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install --quiet --disable-pip-version-check polars==$version
    "$folder/$version/bin/python" -W ignore - <<'PYTHON'
import polars as pl

texts = {"language": ["de", "en", "fr", "it"], "label": ["ham", "spam", "ham", "spam"]}
train = pl.DataFrame(texts)
test = pl.DataFrame({"label": ["spam", "spam", "ham"]})


def ids(frame, kind=pl.Categorical):
    return frame["label"].cast(kind).to_physical().to_list()


alone = ids(train)
with_languages = ids(train.with_columns(pl.col("language").cast(pl.Categorical)))
language = train["language"].cast(pl.Categorical)       # stays in memory
after_languages = ids(train)
del language
first = test["label"].cast(pl.Categorical)
after_test = ids(train)
del first
enum = ids(train, pl.Enum(["ham", "spam"]))
print("polars", pl.__version__, "alone", alone, "beside a languages column", with_languages,
      "after one", after_languages, "after the test file", after_test, "Enum", enum)
assert alone == enum == [0, 1, 0, 1]
old = pl.__version__ == "1.31.0"
assert after_languages == ([0, 1, 0, 1] if old else [4, 5, 4, 5]), "another numbering"
assert after_test == ([0, 1, 0, 1] if old else [1, 0, 1, 0]), "another numbering after the test file"
PYTHON
done
echo "as seen"
