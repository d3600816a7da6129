#!/usr/bin/env bash
# distilabel 1.5.3: EmbeddingDedup drops all near copies of a text, the first one too, so that a text which is there
# twice is lost.
#
# The step takes the nearest neighbours that FaissNearestNeighbour has found for each text, and sets
# keep_row_after_embedding_filtering to False for the neighbours that are nearer than the threshold. It does so for
# each text, whether that one is dropped already or not; as each of two copies is the other's neighbour, each drops the
# other. Of 130 rows with 100 texts, 30 of which come a second time with a little change, 70 rows are left, and the 30
# texts that someone wrote twice are gone; a filter should leave 100. With three or four copies it is the same. With
# exact copies it comes out right by chance: the search puts one copy first for both, and FaissNearestNeighbour takes
# what comes first for the text itself. So a test with exact copies shows nothing. No warning comes.
#
# Go through the rows in order and drop a row only if a neighbour was kept, as below. Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check distilabel==1.5.3 faiss-cpu==1.15.1 datasets==5.2.0 \
    requests==2.34.2 numpy==2.4.6 scipy==1.17.1
export HF_HUB_OFFLINE=1 HOME="$folder"
"$folder/venv/bin/python" - 2> "$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import faiss
import numpy as np
from distilabel.steps import EmbeddingDedup, FaissNearestNeighbour

print("distilabel", version("distilabel"), "faiss", version("faiss-cpu"))
generator = np.random.default_rng(0)
vectors = generator.normal(size=(100, 32))


def neighbours(copies, change):
    rows = []
    for text, vector in enumerate(vectors):
        for copy in range(copies if text < 30 else 1):
            copied = vector + change * copy * generator.normal(size=32)
            embedding = (copied / np.linalg.norm(copied)).astype("float32").tolist()
            rows.append({"text": f"Text {text}, version {copy}.", "number": text, "embedding": embedding})
    generator.shuffle(rows)
    step = FaissNearestNeighbour(k=5, metric_type=faiss.METRIC_INNER_PRODUCT, search_batch_size=50)
    step.load()
    return next(step.process(rows))


def in_order(rows, threshold):
    kept = set()
    for index, row in enumerate(rows):
        near = {other for other, score in zip(row["nn_indices"], row["nn_scores"]) if score > threshold}
        if not near & kept - {index}:
            kept.add(index)
    return [rows[index] for index in sorted(kept)]


def show(name, rows):
    step = EmbeddingDedup(threshold=0.95)
    step.load()
    kept = [row for row in next(step.process(rows)) if row["keep_row_after_embedding_filtering"]]
    texts = len({row["number"] for row in kept})
    ordered = in_order(rows, 0.95)
    print(f"{name}: of {len(rows)} rows {len(kept)} are left with {texts} of 100 texts,"
          f" in order {len(ordered)} with {len({row['number'] for row in ordered})}")
    assert len(ordered) == len({row["number"] for row in ordered}) == 100
    return len(kept), texts


assert show("two copies", neighbours(2, 0.03)) == (70, 70), "one copy is kept now"
assert show("four copies", neighbours(4, 0.03)) == (70, 70), "one copy is kept now"
assert show("two exact copies", neighbours(2, 0)) == (100, 100)
PYTHON
echo "as seen"
