#!/usr/bin/env bash
# litdata 0.2.76: CombinedStreamingDataset with batching_method="per_stream" never takes two batches in a row from one
# dataset, so the weights 0.9 and 0.1 are a half each.
#
# A corpus for pre-training is mixed of several by weights: most of it English, a tenth German. By default litdata draws
# each text from one of the datasets by its weight. batching_method="per_stream" makes each batch of texts of one
# dataset, "selected randomly", which is needed where they have several lengths or batch sizes. But the next dataset is
# drawn again and again until it is another one than the last. So two datasets take turns, whatever the weights are: the
# tenth makes up half of the batches, and each of its texts comes five times as often as planned. With the weights 0.8,
# 0.1 and 0.1 it is 0.47, 0.27 and 0.27. Nothing shows it but counting, and no warning comes.
#
# Draw the batches by yourself from a StreamingDataLoader for each dataset. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps litdata==0.2.76 lightning-utilities==0.15.3
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 \
    boto3==1.44.8 requests==2.34.2 filelock==4.3.1 tifffile==2026.3.3 obstore==0.12.1 packaging==26.4
DATA_OPTIMIZER_CACHE_FOLDER="$folder/cache" "$folder/venv/bin/python" - "$folder" <<'PYTHON'
import collections
import os
import sys
from importlib.metadata import version

from litdata import CombinedStreamingDataset, StreamingDataLoader, StreamingDataset
from litdata.streaming.writer import BinaryWriter

print("litdata", version("litdata"))
LANGUAGES, TEXTS, BATCH, BATCHES = ("en", "de", "fr"), 5000, 8, 600
FOLDERS = {language: os.path.join(sys.argv[1], language) for language in LANGUAGES}
for language, folder in FOLDERS.items():
    writer = BinaryWriter(folder, chunk_size=500)
    for number in range(TEXTS):
        writer[number] = {"language": language, "text": number}
    writer.done()
    writer.merge()


def shares(weights, method):
    """The share of each language among the texts of the first batches, and how many batches mix languages."""
    mixture = CombinedStreamingDataset(
        [StreamingDataset(FOLDERS[language]) for language in LANGUAGES[:len(weights)]], weights=weights,
        iterate_over_all=False, batching_method=method)
    counts, mixed, repeated, last = collections.Counter(), 0, 0, None
    for number, batch in enumerate(StreamingDataLoader(mixture, batch_size=BATCH)):
        counts.update(batch["language"])
        mixed += len(set(batch["language"])) > 1
        repeated += set(batch["language"]) == last
        last = set(batch["language"])
        if number + 1 == BATCHES:
            break
    assert number + 1 == BATCHES
    found = [round(counts[language] / counts.total(), 2) for language in LANGUAGES[:len(weights)]]
    print(method, weights, "->", found, f"{mixed} batches are mixed, {repeated} are of the language of the one before")
    return found, mixed, repeated


for weights, seen in (([0.9, 0.1], [0.5, 0.5]), ([0.5, 0.5], [0.5, 0.5]), ([0.8, 0.1, 0.1], [0.47, 0.27, 0.27])):
    found, mixed, _ = shares(weights, "stratified")
    assert mixed and all(abs(a - b) < 0.02 for a, b in zip(found, weights)), "text by text it is wrong too"
    found, mixed, repeated = shares(weights, "per_stream")
    assert mixed == repeated == 0 and all(abs(a - b) < 0.04 for a, b in zip(found, seen)), "other shares than seen"
PYTHON
echo "as seen"
