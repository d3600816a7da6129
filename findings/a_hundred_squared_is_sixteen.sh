#!/usr/bin/env bash
# vicinity 0.4.6: with metric="euclidean" the default backend finds no text among vectors of int8 or uint8, as it
# squares them in one byte, where 100 times 100 is 16.
#
# Embeddings are often stored as int8 or uint8, a quarter of the memory, as quantize_embeddings of
# sentence-transformers makes them. The backend "basic" computes the squared distance as the sum of both squared
# lengths less twice the inner product, with (vectors**2).sum and x @ vectors.T in the type of the vectors. NumPy keeps
# one byte for each square and each inner product, and wraps around without a word. So the distance is the square root
# of whatever is left, cut off at 0: of 1,000 vectors asked for themselves one is found, where the same numbers in
# float32 find all, and the distances of int8 end at 88 where they are 1,000 to 1,232. With the metric "cosine" the
# vectors are made float first, and all is right. The documentation names no types for this backend. No warning comes.
#
# Pass vectors.astype("float32"), and the queries too. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check vicinity==0.4.6 numpy==2.4.6
"$folder/venv/bin/python" -W error - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
from vicinity import Vicinity

print("vicinity", version("vicinity"), "numpy", np.__version__)
TEXTS = 1000
rng = np.random.default_rng(0)
unit = rng.normal(size=(TEXTS, 384)).astype(np.float32)
unit /= np.linalg.norm(unit, axis=1, keepdims=True)
low, high = unit.min(0), unit.max(0)
steps = np.floor((unit - low) / ((high - low) / 255))              # as quantize_embeddings does
kinds = {"int8": (steps - 128).astype(np.int8), "uint8": steps.astype(np.uint8)}


def ask(vectors, metric):
    """The share of the texts that find themselves, and the largest distance given."""
    answers = Vicinity.from_vectors_and_items(vectors, range(TEXTS), metric=metric).query(vectors, k=TEXTS)
    return np.mean([answer[0][0] == i for i, answer in enumerate(answers)]), max(answer[-1][1] for answer in answers)


for name, vectors in kinds.items():
    right = vectors.astype(np.float32)
    apart = np.linalg.norm(right[0] - right[1:], axis=1).min()
    seen, mended, cosine = ask(vectors, "euclidean"), ask(right, "euclidean"), ask(vectors, "cosine")
    print(f"{name}: euclidean finds {seen[0]:.1%}, distances up to {seen[1]:.0f}; as float32 {mended[0]:.1%}, up to"
          f" {mended[1]:.0f}; cosine {cosine[0]:.1%}; the nearest to the first text is {apart:.0f} away")
    assert seen[0] < 0.02 and mended[0] == cosine[0] == 1 and apart > 900
    assert seen[1] < 100 or name == "uint8"
assert (np.int8([100]) ** 2)[0] == 16
PYTHON
echo "as seen"
