#!/usr/bin/env bash
# unitxt 1.26.10: SliceSplit takes the end of a slice for its length, so that all test texts of "train[900:1000]" are in
# the validation split of "train[800:900]" too.
#
# SliceSplit cuts the splits of a dataset card out of one: slices={"train": "train[:800]", "validation":
# "train[800:900]", "test": "train[900:1000]"}. split_utils.slice_stream drops the first start texts of the stream and
# then takes end texts of the rest in place of end - start. Slices that begin at the beginning or go on to the end are
# right, all others run on: of 1000 texts validation has the 200 from 800 on, with all 100 test texts among them, so
# that a model chosen by validation has been chosen on the test set. With the test texts first, "train[:100]", then
# "train[100:200]" for validation and "train[200:]", 100 of 200 validation texts are trained on. With "train[100:900]"
# for training all 100 test texts are. The notation is that of datasets, which takes "train[800:900]" for 100 texts.
# SeparateSplit goes through the same function with lengths and is right. No warning comes.
#
# Use SeparateSplit, or write the length after the colon. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check unitxt==1.26.10 datasets==5.2.0 scipy==1.17.1 \
    pandas==3.1.1 numpy==2.4.6
HF_HUB_OFFLINE=1 HF_HOME="$folder/home" "$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from unitxt.splitters import SeparateSplit, SliceSplit
from unitxt.stream import MultiStream

print("unitxt", version("unitxt"))
texts = [{"number": number, "text": f"This is text number {number}."} for number in range(1000)]


def show(splitter):
    splits = splitter(MultiStream.from_iterables({"train": texts}))
    numbers = {name: {row["number"] for row in splits[name]} for name in splits}
    for name, members in numbers.items():
        print(f"  {name}: {len(members)} texts, {min(members)} to {max(members)}")
    return numbers


print("test at the end")
last = show(SliceSplit(slices={"train": "train[:800]", "validation": "train[800:900]", "test": "train[900:1000]"}))
shared = last["validation"] & last["test"]
print(f"  in validation and test: {len(shared)}")
print("test at the beginning")
first = show(SliceSplit(slices={"test": "train[:100]", "validation": "train[100:200]", "train": "train[200:]"}))
trained = first["validation"] & first["train"]
print(f"  in validation and train: {len(trained)}")
print("train in the middle")
middle = show(SliceSplit(slices={"validation": "train[:100]", "train": "train[100:900]", "test": "train[900:]"}))
known = middle["train"] & middle["test"]
print(f"  in train and test: {len(known)}")
print("SeparateSplit")
right = show(SeparateSplit(from_split="train", to_split_names=["train", "validation", "test"],
                           to_split_sizes=[800, 100, 100]))
assert shared == last["test"] and len(trained) == 100, "the end of a slice is its end now"
assert known, "the end of a slice is its end now"
assert not right["validation"] & right["test"] and len(right["validation"]) == 100
PYTHON
echo "as seen"
