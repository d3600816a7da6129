#!/usr/bin/env bash
# small-text 1.4.1: GreedyCoreset(distance_metric="cosine") asks first for copies of texts that are labelled already, as
# their distance is NaN.
#
# The strategy chooses the text for labelling that is farthest from all labelled ones. The distance is the arc cosine of
# the inner product of two vectors of length 1. For equal texts this product is 1, and by rounding a little above 1 for
# up to half of all vectors, where the arc cosine is NaN. numpy's minimum of a row with NaN is NaN, and argmax takes the
# first NaN for the largest. So a text with a labelled copy is chosen before all others, though its distance is 0: here
# 450 texts are left, 100 of them copies of labelled ones, as greetings, spam or boilerplate have them, and of the 20
# chosen about half are copies. With distance_metric="euclidean", the default since 1.2.0, none is; nor is one if the
# product is cut at 1. Labels are paid for twice, and nothing is learnt from them. numpy's RuntimeWarning says "invalid
# value encountered in arccos", once.
#
# Take "euclidean", which orders vectors of length 1 as the cosine does. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check small-text==1.4.1 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
from small_text.query_strategies import coresets

print("small-text", version("small-text"), "numpy", np.__version__)


def chosen(distance, dtype, seed, count=20):
    """Which texts are chosen; 0 to 49 are labelled, those from 400 on are copies of them."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(400, 384)).astype(dtype)
    vectors = np.vstack([vectors, vectors[rng.integers(0, 50, 100)]])
    left = np.arange(50, 500)
    strategy = coresets.GreedyCoreset(distance_metric=distance)
    return vectors, left[strategy.sample(None, None, left, np.arange(50), None, count, vectors)]


def cut(first, second, normalized=False):
    """The distance of the package with the product cut at 1."""
    assert normalized
    return np.arccos(np.clip(first @ second.T, -1, 1)) / np.pi


own = coresets._cosine_distance
for dtype in (np.float32, np.float64):
    for seed in range(3):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("default")
            vectors, texts = chosen("cosine", dtype, seed)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        above = (np.einsum("ij,ij->i", unit, unit) > 1).mean()
        nearest = np.clip(unit[texts] @ unit[:50].T, -1, 1).max(1)
        euclidean = chosen("euclidean", dtype, seed)[1]
        coresets._cosine_distance = cut
        mended = chosen("cosine", dtype, seed)[1]
        coresets._cosine_distance = own
        print(f"{dtype.__name__} seed {seed}: of 20 chosen {(texts >= 400).sum()} are copies; euclidean "
              f"{(euclidean >= 400).sum()}, cut at 1 {(mended >= 400).sum()}; product above 1 for {above:.0%}")
        assert texts[0] >= 400 and nearest[0] > 0.999999, "the first one is no copy now"
        assert (texts >= 400).sum() >= 7, "copies are left out now"
        assert (euclidean >= 400).sum() == (mended >= 400).sum() == 0, "the others choose copies, too"
        assert 0.02 < above < 0.8 and [str(one.message) for one in heard if "arccos" in str(one.message)]
PYTHON
echo "as seen"
