#!/usr/bin/env bash
# sentence-transformers 6.2.0: semantic_search_faiss with a corpus of uint8 finds a part of the nearest passages, while
# semantic_search_usearch finds nearly all of them in the same corpus of int8.
#
# quantize_embeddings makes a byte of each number of an embedding: from -128 to 127 for int8, and the same plus 128 for
# uint8. The page on quantisation names them together, with about 99.5% of the quality left. FAISS takes uint8 alone of
# the two. semantic_search_faiss looks for candidates by the inner product of query and passage in bytes. With
# uint8 all numbers are positive, so each product holds 128 times the sum of the passage's numbers, which has
# nothing to do with the query and is larger than what does. So the same passages come first for every query.
# The candidates, twice as many as asked for, are then put in order by the query in float32, which gives credible
# scores and can't bring back what is not among them. Here 1 to 5 of the 10 nearest are found, depending on the size
# of the embeddings. With 128 numbers the nearest one is missing in half of the answers.
#
# Take int8 and semantic_search_usearch. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sentence-transformers==6.2.0 \
    faiss-cpu==1.15.1 usearch==2.26.6 transformers==5.23.0 torch==2.13.0 numpy==2.4.6
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import sentence_transformers
from sentence_transformers.util.quantization import (
    quantize_embeddings, semantic_search_faiss, semantic_search_usearch)

print("sentence-transformers", sentence_transformers.__version__)
rng = np.random.default_rng(0)


def normalised(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("float32")


def search(size):
    """Which share of the 10 nearest passages each way finds, how often the nearest, and how many passages in all."""
    topics = rng.normal(size=(100, size))
    corpus = normalised(topics[rng.integers(0, 100, 5000)] + rng.normal(size=(5000, size)))
    queries = normalised(corpus[:200] + 0.7 * rng.normal(size=(200, size)) / size ** 0.5)
    nearest = np.argsort(-queries @ corpus.T, axis=1)[:, :10]
    shares = {}
    for name, find, precision, more in (
            ("faiss, float32", semantic_search_faiss, "float32", {"rescore": False}),
            ("faiss, uint8", semantic_search_faiss, "uint8", {}),
            ("usearch, int8", semantic_search_usearch, "int8", {}),
            ("faiss, uint8, 50 times the candidates", semantic_search_faiss, "uint8", {"rescore_multiplier": 50})):
        codes = corpus if precision == "float32" else quantize_embeddings(corpus, precision)
        hits, _ = find(queries, codes, corpus_precision=precision, calibration_embeddings=corpus, top_k=10, **more)
        hits = [[hit["corpus_id"] for hit in row] for row in hits]
        share = np.mean([len(set(row) & set(right)) / 10 for row, right in zip(hits, nearest.tolist())])
        first = np.mean([row[0] == right[0] for row, right in zip(hits, nearest.tolist())])
        shares[name] = float(share), float(first)
        print(f"{size} numbers, {name}: {share:.2f} of the nearest 10, the nearest in {first:.2f} of the queries,",
              f"{len(set(sum(hits, [])))} passages in the answers to 200 queries")
    return shares


for size, share, first in ((128, 0.2, 0.6), (384, 0.45, 1.0), (768, 0.6, 1.0)):
    shares = search(size)
    assert shares["faiss, float32"] == (1.0, 1.0), "the exact search is not exact"
    assert shares["usearch, int8"][0] > 0.95, "int8 is no better"
    assert shares["faiss, uint8"][0] < share and shares["faiss, uint8"][1] <= first, "uint8 finds more now"
PYTHON
echo "as seen"
