#!/usr/bin/env bash
# mosaicml-streaming 0.13.0: shuffle_algo="py1br" leaves the end of an epoch in the order of the files, in the example
# up to 14% of the texts.
#
# py1br shuffles the order of the shards, then their samples in blocks of a random size, from three to five quarters of
# shuffle_block_size. The borders of the blocks are moved to the left by a random stagger of up to three quarters of a
# block, anew in each epoch. Blocks are made until their ends *before* this move reach the end of the data; after it
# they may end up to three quarters of a block too soon. The samples behind come as they stand in the files. With files
# that are sorted by class, source or length, as they often are, the last steps of such an epoch see one class at a
# time, and the model that is saved at the end of the epoch has seen little else lately. With one node the default
# block has 4 million samples, so up to 3 million samples of an epoch are not shuffled. Which epochs it hits depends on
# the seed. The function promises "the shuffled global ordering of samples for an epoch", with blocks "shuffled".
#
# Use py1e, the default, which shuffles all. Seen in November 2026 with Python 3.11. The script calls the
# function that StreamingDataset calls, without the packages for clouds. It fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.1.3
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps mosaicml-streaming==0.13.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import importlib
import sys
import types
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

root = Path(find_spec("streaming").origin).parent
for name in ("streaming", "streaming.base"):       # without their imports of boto3, azure and others
    package = types.ModuleType(name)
    package.__path__ = [str(root / "base" if name.endswith("base") else root)]
    sys.modules[name] = package
get_shuffle = importlib.import_module("streaming.base.shuffle").get_shuffle

print("mosaicml-streaming", version("mosaicml-streaming"), "numpy", np.__version__)
SAMPLES, SHARD, BATCH = 1_000_000, 10_000, 256
labels = np.arange(SAMPLES) * 4 // SAMPLES         # the files are sorted by class


def tail(ids):
    """How many samples at the end come in the order of a file, a shard's beginning apart."""
    follows = np.diff(ids) == 1
    follows |= ids[1:] % SHARD == 0
    return int(np.argmin(follows[::-1])) if not follows.all() else len(ids)


def epochs(algorithm, nodes, block=1 << 18):
    found, pure = [], []
    for epoch in range(20):
        ids = get_shuffle(algorithm, np.full(SAMPLES // SHARD, SHARD), nodes, 9176, epoch, block)
        assert np.array_equal(np.sort(ids), np.arange(SAMPLES))
        found.append(tail(ids))
        batches = labels[ids[-(20 * BATCH):]].reshape(-1, BATCH)
        pure.append(int((batches == batches[:, :1]).all(1).sum()))
    return np.array(found), np.array(pure)


for algorithm in ("py1br", "py1e"):
    found, pure = epochs(algorithm, 1)
    hit = found > 100
    print(f"{algorithm}: {hit.sum()} of 20 epochs end unshuffled, the longest end has {found.max()} of {SAMPLES}",
          f"texts; batches of one class among the last 20: {pure.max()} at most")
    if algorithm == "py1br":
        assert hit.sum() >= 4 and found.max() > 100_000 and pure.max() >= 18, "all blocks are shuffled now"
        assert found.max() < 0.75 * (1 << 18)
    else:
        assert hit.sum() == 0 and pure.max() == 0
found, pure = epochs("py1br", 1, 1 << 16)
print(f"py1br with blocks of {1 << 16}: the longest end has {found.max()} texts")
assert 10_000 < found.max() < 0.75 * (1 << 16)
PYTHON
echo "as seen"
