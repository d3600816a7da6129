#!/usr/bin/env bash
# octis 1.14.0: WordEmbeddingsInvertedRBOCentroid gives twenty copies of one topic a diversity of 0.73, and by
# WordEmbeddingsRBOCentroid the similarity of a topic with itself is 0.27.
#
# Inverted rank-biased overlap says how different the topics of a model are: 0 for equal lists of words, 1 for lists
# without a common word. The overlap of two lists at depth d is the number of words that they share, and is divided by
# d. Two variants count alike words too, by word vectors. The one that matches words adds up d cosines and is 0 for
# equal topics, as is the plain one. The one with centroids takes one cosine of the means of the first d words, which is
# 1 at most, and divides it by d as well. So of two equal lists of ten words the share in common is 1 at depth 1, 1/2 at
# depth 2 and 1/10 at depth 10. With the default weight of 0.9 the diversity is never below 0.7297, and all topics have
# one between that and 1. A model that has found one topic twenty times looks nearly as diverse as one with twenty
# fields, which has 0.86. Longer lists make equal topics more diverse still: 0.74 with 50 words.
#
# Take WordEmbeddingsInvertedRBO or InvertedRBO, which give 0. Seen in November 2026 with Python 3.11. The script fails
# if this changes.
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
from octis.evaluation_metrics.diversity_metrics import (InvertedRBO, WordEmbeddingsInvertedRBO,
                                                        WordEmbeddingsInvertedRBOCentroid)
from octis.evaluation_metrics.similarity_metrics import WordEmbeddingsRBOCentroid

print("octis", version("octis"))
rng = np.random.default_rng(0)
path = os.path.join(os.environ["FOLDER"], "vectors.txt")
topics, vectors = [], []
for topic in range(20):
    topics.append([f"topic{topic}word{number}" for number in range(50)])
    centre = rng.normal(size=50)
    vectors += [centre + rng.normal(size=50) for _ in range(50)]
words = KeyedVectors(50)
words.add_vectors(sum(topics, []), np.array(vectors, dtype=np.float32))
words.save_word2vec_format(path, binary=False)


def formula(depth, weight=0.9):
    """1 minus the extrapolated overlap of equal lists, if the overlap is 1 at each depth."""
    depths = np.arange(1, depth + 1)
    return 1 - (1 - weight) / weight * (weight ** depths / depths).sum() - weight ** depth / depth


fields, copies = {"topics": [topic[:10] for topic in topics]}, {"topics": [topics[0][:10]] * 20}
seen = {}
for measure in (InvertedRBO(), WordEmbeddingsInvertedRBO(word2vec_path=path, binary=False),
                WordEmbeddingsInvertedRBOCentroid(word2vec_path=path, binary=False)):
    name = type(measure).__name__
    seen[name] = float(measure.score(copies)), float(measure.score(fields))
    print(f"{name:<34} twenty copies {seen[name][0]:.4f} twenty fields {seen[name][1]:.4f}")
assert abs(seen["InvertedRBO"][0]) < 1e-6 and abs(seen["InvertedRBO"][1] - 1) < 1e-6
assert abs(seen["WordEmbeddingsInvertedRBO"][0]) < 1e-3 < 0.4 < seen["WordEmbeddingsInvertedRBO"][1]
lowest, many = seen["WordEmbeddingsInvertedRBOCentroid"]
assert abs(lowest - formula(10)) < 1e-3 and abs(lowest - 0.7297) < 1e-3, "equal topics are equal now"
assert 0.84 < many < 0.9, "other topics have another diversity now"
similar = WordEmbeddingsRBOCentroid(word2vec_path=path, binary=False).score(copies)
print(f"similarity of a topic with itself {similar:.4f}")
assert abs(similar - (1 - formula(10))) < 1e-3, "a topic is like itself now"
lengths = {}
for depth in (1, 2, 10, 25, 50):
    measure = WordEmbeddingsInvertedRBOCentroid(word2vec_path=path, binary=False, topk=depth)
    lengths[depth] = float(measure.score({"topics": [topics[0][:depth]] * 2}))
    print(f"two equal topics of {depth:>2} words: {lengths[depth]:.4f}, by the formula {formula(depth):.4f}")
    assert abs(lengths[depth] - formula(depth)) < 1e-3, "equal topics are equal now"
assert lengths[1] < 1e-3 and lengths[2] > 0.4 and 0.735 < lengths[50] < 0.75
words.add_vectors(["plus", "minus"], np.array([np.ones(50), -np.ones(50)], dtype=np.float32))
words.save_word2vec_format(path, binary=False)
opposite = WordEmbeddingsInvertedRBOCentroid(word2vec_path=path, binary=False, topk=1).score(
    {"topics": [["plus"], ["minus"]]})
print(f"opposite words {opposite:.4f}")
assert abs(opposite - 1) < 1e-3
PYTHON
echo "as seen"
