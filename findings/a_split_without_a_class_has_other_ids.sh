#!/usr/bin/env bash
# datasets 5.2.0: class_encode_column of a DatasetDict numbers the labels of each split anew, so a split
# that lacks a class has other ids than the training split, without a warning.
#
# load_dataset reads train.csv and test.csv, and class_encode_column("label") makes ids of the names, the
# way of the library before a Trainer. Each split sorts the labels that it holds itself. Here no test
# example is a "bill", which comes first in the alphabet: "ham" is 1 in train and 0 in test, and "spam" is
# 2 and 1. A model that knows every answer scores 0 on the test split. The ids are valid for the head, so
# nothing fails; a rare class missing in a small development set is enough. Numbers are sorted as texts,
# so a column 0, 1, ..., 11 gives 10 the id 2.
#
# Encode the training split, and cast the others: test.cast_column("label", train.features["label"]).
# Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check datasets==5.2.0 pandas==3.1.1 pyarrow==25.0.1
cd "$folder"
HF_HOME="$folder/home" HF_HUB_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1 "$folder/venv/bin/python" - <<'PYTHON'
import warnings

import datasets

warnings.simplefilter("error")
print("datasets", datasets.__version__)
datasets.disable_progress_bars()
with open("train.csv", "w") as file:
    file.write("text,label\npay now,bill\nsee you,ham\nyou won,spam\nyour bill,bill\nhello,ham\nwin,spam\n")
with open("test.csv", "w") as file:
    file.write("text,label\nbye,ham\ncheap,spam\nlunch?,ham\n")
read = datasets.load_dataset("csv", data_files={"train": "train.csv", "test": "test.csv"})
encoded = read.class_encode_column("label")
names = {split: encoded[split].features["label"].names for split in encoded}
print(names)
assert names == {"train": ["bill", "ham", "spam"], "test": ["ham", "spam"]}

ids = dict(zip(read["train"]["label"], encoded["train"]["label"]))
known = [ids[label] for label in read["test"]["label"]]       # the answers of a perfect model
print("right answers", known, "test ids", encoded["test"]["label"][:])
assert encoded["test"]["label"][:] == [0, 1, 0] and known == [1, 2, 1]

cast = read["test"].cast_column("label", encoded["train"].features["label"])
assert cast["label"][:] == known
numbers = datasets.Dataset.from_dict({"label": list(range(12))}).class_encode_column("label")
print("0 to 11 become", numbers["label"][:])
assert numbers["label"][:] == [0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3]
PYTHON
echo "as seen"
