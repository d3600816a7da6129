#!/usr/bin/env bash
# voyager 2.2.3: get_distance of an InnerProduct index gives other distances than query, in another order.
#
# The distance is 1 minus the inner product, and query returns that. For its graph the index gives each vector one
# more number, the root of what its squared length lacks to that of the longest vector in the index. query leaves it
# out of the distance. get_distance does not: the result is too small by the product of the two numbers, which are
# cut to whole ones. So it depends on what the index holds: in an empty one it is right, as with vectors of length
# 1. Embeddings of dot-product models are not of one length. Whoever scores a query and a passage with get_distance,
# to rank candidates of another search, to compare with a threshold or to evaluate, favours short vectors: here the
# best of 200 comes out as the worst of the first 5. Cosine and Euclidean are right.
#
# Compute 1 - numpy.dot(a, b). Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check voyager==2.2.3 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from voyager import Index, Space

print("voyager", version("voyager"))
rng = np.random.default_rng(0)
vectors = rng.standard_normal((200, 32)) * rng.uniform(0.5, 1.5, (200, 1))
vectors, query = vectors.astype("float32"), rng.standard_normal(32).astype("float32")


def distances(space, vectors, query):
    """Of the nearest 5: the distances by query, by get_distance, and from NumPy for the inner product."""
    index = Index(space, num_dimensions=32)
    index.add_items(vectors)
    nearest, by_query = index.query(query, k=5, query_ef=200)
    single = np.array([index.get_distance(query, vectors[number]) for number in nearest])
    print(f"{space.name:<12} query {by_query.round(3)} get_distance {single.round(3)}")
    return by_query, single, 1 - vectors[nearest] @ query


by_query, single, right = distances(Space.InnerProduct, vectors, query)
assert np.allclose(by_query, right, atol=1e-5), "query gives another distance"
assert not np.isclose(single, right, atol=1).any(), "get_distance is right now"
rest = right - single
print("too small by", rest.round(3), "order", single.argsort())
nearest = (vectors @ query).argsort()[::-1][:5]
longest, lacks = (vectors ** 2).sum(1).max(), lambda vector: int((longest - vector @ vector) ** 0.5)
assert np.allclose(rest, [lacks(query) * lacks(vectors[number]) for number in nearest], atol=1e-3)
assert single.argmax() == 0, "the nearest is not the farthest for get_distance"

lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
for case in ((Space.InnerProduct, vectors / lengths, query), (Space.Cosine, vectors, query),
             (Space.Euclidean, vectors, query)):
    by_query, single, _ = distances(*case)
    assert np.allclose(by_query, single, atol=1e-4), "this one is wrong too"
empty = Index(Space.InnerProduct, num_dimensions=32).get_distance(query, vectors[0])
print("in an empty index", round(empty, 3), "NumPy", 1 - vectors[0] @ query)
assert np.isclose(empty, 1 - vectors[0] @ query, atol=1e-4), "an empty index is wrong too"
PYTHON
echo "as seen"
