#!/usr/bin/env bash
# nanopq 0.2.2: OPQ(metric="dot") forgets its metric in fit and gives squared distances, so that the best passages by
# inner product come last.
#
# Product quantisation keeps a passage vector in a few bytes and finds the best passages by a table of the query's
# products (or distances) with the codewords. OPQ turns the vectors first, so that less is lost. Both classes take
# metric="dot", as PQ with it gives inner products, where the largest is the best. OPQ.fit makes a new PQ for each
# round of its training, with the default metric "l2", and keeps the last one. Before fit opq.pq.metric is "dot", after
# it "l2". The numbers of adist are squared distances from then on. Sorted from the largest, as inner products are,
# they put the farthest passages first: here none of the ten best passages is among the first hundred of 2,000, while
# PQ finds most of them. Also sorted from the smallest they are not the ranking by inner product, if vectors have
# several lengths. OPQ without training of a rotation has the same fault. Nothing is said.
#
# Set opq.pq.metric = "dot" after fit, which brings the right products. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nanopq==0.2.2 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from nanopq import OPQ, PQ

print("nanopq", version("nanopq"), "numpy", np.__version__)
rng = np.random.default_rng(0)
passages = rng.normal(size=(2000, 32)) * rng.uniform(0.5, 2.0, (2000, 1))
passages, queries = passages.astype(np.float32), rng.normal(size=(50, 32)).astype(np.float32)


def found(model, codes, direction):
    """The mean share of the ten best passages, by the true inner product, among the first hundred of the model."""
    shares = []
    for query in queries:
        best = np.argsort(-passages @ query)[:10]
        first = np.argsort(direction * model.dtable(query).adist(codes))[:100]
        shares.append(len(set(best) & set(first)) / 10)
    return float(np.mean(shares))


plain = PQ(M=8, Ks=64, metric="dot", verbose=False).fit(passages)
codes = plain.encode(passages)
products = np.array([plain.dtable(query).adist(codes) for query in queries])
assert np.allclose(products, queries @ plain.decode(codes).T, atol=1e-3), "PQ gives no inner products"
share = found(plain, codes, -1)
print(f"PQ: metric {plain.metric}, {share:.0%} of the best passages are among the first hundred")
assert plain.metric == "dot" and share > 0.9

for rounds in (1, 10):
    model = OPQ(M=8, Ks=64, metric="dot", verbose=False)
    assert model.pq.metric == "dot"
    model.fit(passages, rotation_iter=rounds)
    assert model.pq.metric == "l2", "the metric is kept now"
    codes = model.encode(passages)
    decoded = model.decode(codes)
    scores = np.array([model.dtable(query).adist(codes) for query in queries])
    distances = ((queries[:, None] - decoded[None]) ** 2).sum(-1)
    assert np.allclose(scores, distances, rtol=1e-3), "adist gives no squared distances"
    largest, smallest = found(model, codes, -1), found(model, codes, 1)
    print(f"OPQ with {rounds} rounds: metric {model.pq.metric} after fit, {largest:.1%} of the best passages among the",
          f"hundred with the largest numbers, {smallest:.0%} among those with the smallest")
    assert largest == 0 and smallest < 0.85, "the best passages are found now"
    model.pq.metric = "dot"
    scores = np.array([model.dtable(query).adist(codes) for query in queries])
    assert np.allclose(scores, queries @ decoded.T, atol=1e-3)
    mended = found(model, codes, -1)
    print(f"  with the metric set again: {mended:.0%}")
    assert mended > 0.9
PYTHON
echo "as seen"
