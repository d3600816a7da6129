#!/usr/bin/env bash
# octis 1.14.0: WECoherencePairwise turns each word vector round whose numbers have a sum below 0, so a good topic gets
# the coherence of one drawn by lot, and WECoherenceCentroid returns a distance.
#
# Both say how well the words of a topic belong together, by the cosines of their vectors: the first for all pairs of
# words, the second for each word and the mean of all. Before, each vector is to be normalised, and is divided by the
# sum of its numbers in place of its length. The cosine doesn't depend on a vector's length, but a sum may be below 0,
# as it is for half of all word vectors, and then the vector points the other way. Alike words with sums on
# different sides count as opposites: two vectors with the cosine 0.99 have the coherence -0.99. Of 40 topics here, all
# with a mean cosine of 0.4 to 0.7, some get -0.05 like words drawn by lot, others what they should, by chance, so the
# order of the topics has little to do with the right one. If all sums are above 0 the measure is right. The second
# measure turns the mean round too, and returns 1 minus the cosine: there a perfect topic has 0, and a bad one more.
#
# Users have asked why the two go in opposite directions (MIND-Lab/OCTIS, issue 43, closed), and to leave the
# normalisation out as the score would be "identical" (issue 89, open). It is not identical.
#
# Take numpy, or gensim's vectors.similarity for all pairs. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gensim==4.4.0 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1 pandas==3.1.1 requests
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps octis==1.14.0     # without its models
FOLDER=$folder "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import os
from importlib.metadata import version

import numpy as np
from gensim.models import KeyedVectors
from octis.evaluation_metrics.coherence_metrics import WECoherenceCentroid, WECoherencePairwise
from scipy.stats import spearmanr

print("octis", version("octis"), "gensim", version("gensim"))


def measures(vectors):
    """The two measures of octis for these word vectors, and the right one for a topic."""
    path = os.path.join(os.environ["FOLDER"], "vectors.txt")
    words = KeyedVectors(len(next(iter(vectors.values()))))
    words.add_vectors(list(vectors), np.array(list(vectors.values()), dtype=np.float32))
    words.save_word2vec_format(path, binary=False)

    def pairwise(topic):
        return float(WECoherencePairwise(path, topk=len(topic)).score({"topics": [topic]}))

    def centroid(topic):
        return float(WECoherenceCentroid(word2vec_path=path, binary=False, topk=len(topic)).score({"topics": [topic]}))

    def right(topic):
        rows = np.array([[words.similarity(one, other) for one in topic] for other in topic])
        return (rows.sum() - len(topic)) / len(topic) / (len(topic) - 1)

    return pairwise, centroid, right


pairwise, centroid, right = measures({"film": [1, -0.9], "movie": [1, -1.1]})
print("two alike words: cosine", right(["film", "movie"]), "coherence", pairwise(["film", "movie"]))
assert right(["film", "movie"]) > 0.99 and pairwise(["film", "movie"]) < -0.99, "they are alike now"

rng = np.random.default_rng(0)
vectors, topics = {f"any{number}": rng.normal(size=50) for number in range(40)}, []
for topic in range(40):
    centre, spread = rng.normal(size=50), rng.uniform(0.7, 1.2)
    topics.append([f"topic{topic}word{number}" for number in range(10)])
    vectors.update({word: centre + spread * rng.normal(size=50) for word in topics[-1]})
print("sums below 0:", np.mean([sum(vector) < 0 for vector in vectors.values()]))
pairwise, centroid, right = measures(vectors)
good, seen = np.array([right(topic) for topic in topics]), np.array([pairwise(topic) for topic in topics])
lot = [pairwise([f"any{number}" for number in range(start, start + 10)]) for start in (0, 10, 20, 30)]
print(f"topics: right {good.min():.2f} to {good.max():.2f}, octis {seen.min():.2f} to {seen.max():.2f}, by lot {lot}")
order = spearmanr(good, seen)[0]
print(f"topics that have less than half of it: {(seen < good / 2).sum()}, rank correlation {order:.2f}")
assert good.min() > 0.35 and good.max() < 0.75 and max(map(abs, lot)) < 0.12, "the topics are others"
assert seen.min() < 0 and (seen < good / 2).sum() >= 15 and (seen > good - 0.05).any(), "the topics are good now"
assert order < 0.4, "the order is right now"

pairwise, centroid, right = measures({word: vector + 4 for word, vector in vectors.items()})     # all sums above 0
for topic in topics[:5]:
    assert abs(pairwise(topic) - right(topic)) < 1e-5, "not right with sums above 0"
tight = {f"word{number}": np.array([3.0, 1, 1]) * (number + 1) for number in range(10)}
pairwise, centroid, right = measures(tight)
print("ten words with one direction: pairwise", pairwise(list(tight)), "centroid", centroid(list(tight)))
assert abs(pairwise(list(tight)) - 1) < 1e-5 and abs(centroid(list(tight))) < 1e-5, "a similarity now"
loose = {f"word{number}": rng.uniform(size=50) ** 3 for number in range(10)}
pairwise, centroid, right = measures(loose)
rows = np.array(list(loose.values()))
mean = rows.mean(0)
cosine = (rows @ mean / np.linalg.norm(rows, axis=1) / np.linalg.norm(mean)).mean()
print("ten looser words: centroid", centroid(list(loose)), "one minus the cosine", 1 - cosine)
assert abs(centroid(list(loose)) - (1 - cosine)) < 1e-5 and cosine < 0.85, "another measure now"
PYTHON
echo "as seen"
