#!/usr/bin/env bash
# grain 0.2.18: with drop_remainder=False the shards of a DataLoader still lose examples, without the warning that
# drop_remainder=True gives.
#
# Each process reads a shard of the examples. If their number is no multiple of the processes, the first shards
# get one more; so it is documented for the default drop_remainder=False. IndexSampler does cut the shards so. But
# the DataLoader stops after the same number of examples in each process, that of the short shards, and the last
# example of each longer shard is read by nobody. Of 100 examples on 8 processes 4 are lost, at 12, 25, 38 and 51,
# each time the same ones. With True the lost ones are the last of the file, and a line is logged. An accuracy on
# a test set is that of another test set for each number of processes, and predictions joined from the shards are
# too few and shift against their texts. Over two epochs two examples of the longer shard here are read once, and
# all others twice.
#
# Take MapDataset.source(...)[index::count], which reads all. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check grain==0.2.18 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import logging

import grain

logged = []
logging.getLogger("absl").addFilter(lambda line: logged.append(line.getMessage()))
print("grain", grain.__version__)


def read(examples, shards, drop_remainder=False, epochs=1, shuffle=False):
    """The examples that each process reads."""
    return [[int(example) for example in grain.DataLoader(
        data_source=grain.sources.RangeDataSource(0, examples, 1), worker_count=0,
        sampler=grain.samplers.IndexSampler(
            examples, grain.sharding.ShardOptions(index, shards, drop_remainder), shuffle, epochs, seed=0))]
        for index in range(shards)]


def lost(parts, examples):
    return sorted(set(range(examples)) - set(sum(parts, [])))


parts = read(10, 3)
print("10 examples on 3 processes:", parts, "with True:", read(10, 3, drop_remainder=True))
assert parts == [[0, 1, 2], [4, 5, 6], [7, 8, 9]], "other examples than seen"
assert lost(read(10, 3, drop_remainder=True), 10) == [9] and any("Dropping 1" in line for line in logged)
logged.clear()
for examples, shards, seen in ((9, 3, []), (9, 2, [4]), (11, 3, [3, 7]), (100, 8, [12, 25, 38, 51])):
    missing = lost(read(examples, shards), examples)
    print(f"{examples} examples on {shards} processes: lost {missing}, logged {logged}")
    assert missing == seen and not logged, f"not {seen}"
    assert len(lost(read(examples, shards, shuffle=True), examples)) == len(seen), "shuffled it is otherwise"
print("2 epochs of 10 examples on 3 processes:", read(10, 3, epochs=2))
assert read(10, 3, epochs=2)[0] == [0, 1, 2, 3, 0, 1]

slices = [list(grain.MapDataset.range(100)[index::8]) for index in range(8)]
assert sorted(sum(slices, [])) == list(range(100)), "a slice loses examples too"
PYTHON
echo "as seen"
