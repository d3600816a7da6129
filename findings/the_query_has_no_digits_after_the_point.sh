#!/usr/bin/env bash
# faiss-cpu 1.15.1: an index of int8 vectors cuts the query to whole numbers where the vectors have 64, 384, 768 or
# 1024 numbers, so a query of length 1 finds nothing.
#
# Embeddings that are stored as int8 go into an index with QT_8bit_direct_signed, which keeps the bytes as they
# are. search takes the query in float32, and the inner product of int8 passages with a float query is the usual
# way, as the query costs no memory. Normalised queries are between -1 and 1, so all their numbers become 0. All
# scores are 0, and the rows that come back have nothing to do with the query. It depends on the size of the
# vectors and on the processor: with AVX2 each multiple of 16 is cut, with AVX512 each multiple of 32, without
# them none. So an index of 60 or 1000 numbers works, and a test with FAISS_SIMD_LEVEL=NONE or on another
# processor too. HNSW and IVF indexes with this type do the same. QT_8bit_direct, for bytes from 0 to 255, and
# distances (L2) are cut too. No warning comes.
#
# Multiply the query by the factor of the passages before, so that its numbers reach to 127; cutting the rest costs
# little then. Seen in November 2026 with Python 3.11 on an x86 processor. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check faiss-cpu==1.15.1 numpy==2.4.6
cat > "$folder/search.py" <<'PYTHON'
import faiss
import numpy as np

level = faiss.SIMDConfig.get_level_name()
print("faiss", faiss.__version__, "level", level)
rng = np.random.default_rng(0)
INT8 = faiss.ScalarQuantizer.QT_8bit_direct_signed


def search(size, scaled=False, kind="flat"):
    """The share of 20 queries, which are passages themselves, that find their passage, and the best score of all."""
    vectors = rng.standard_normal((300, size)).astype("float32")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    factor = 127 / np.abs(vectors).max()
    passages, queries = (vectors * factor).round(), vectors[:20] * (factor if scaled else 1)
    metric = faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexScalarQuantizer(size, INT8, metric) if kind == "flat" \
        else faiss.IndexHNSWSQ(size, INT8, 16, metric)
    index.train(passages)
    index.add(passages)
    assert np.array_equal(index.reconstruct_n(0, 300), passages), "the index does not hold the bytes"
    scores, rows = index.search(queries, 1)
    right = (queries @ passages.T).max()
    share = float((rows[:, 0] == np.arange(20)).mean())
    print(f"{size:>5} numbers, {kind}{', query scaled' if scaled else ''}: found {share:.0%},",
          f"best score {scores.max():.1f}, from NumPy {right:.1f}")
    assert share < 0.2 and scores.max() == 0 or share > 0.9 and abs(scores.max() / right - 1) < 0.05, "otherwise"
    return share > 0.9


step = {"NONE": None, "AVX2": 16}.get(level, 32)
for size in (48, 60, 64, 384, 768, 1000, 1024):
    assert search(size) == (step is None or size % step > 0), "not as seen"
assert search(768, scaled=True), "scaling does not help"
assert search(768, kind="HNSW") == (step is None), "not as seen in HNSW"
PYTHON
for level in NONE AVX2; do
    FAISS_SIMD_LEVEL=$level "$folder/venv/bin/python" "$folder/search.py"
done
"$folder/venv/bin/python" "$folder/search.py"
echo "as seen"
