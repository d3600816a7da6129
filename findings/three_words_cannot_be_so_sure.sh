#!/usr/bin/env bash
# wefe 1.0.1: the permutation test of WEAT draws words with replacement, so that two sets of three words get p = 0.006,
# where no permutation can give less than 0.05.
#
# WEAT says whether two sets of words, as names of women and men, lie nearer to one set of attributes than to another,
# and calculate_p_value=True how often a random partition of the words would differ as much. Its page defines it over
# "all the partitions of T1 and T2 into two sets of equal size". The code draws each of the words by rng.choice, whose
# default is to draw with replacement: one word may come four times, on both sides, and others not at all. Words that
# are well apart give the best partition of all, which has the p-value 1 / 20 for three and three words, and 1 / 70 for
# four and four. Drawn with replacement, whole sets from one side are rarer: 0.006 and 0.003, so that what can't be
# significant at 1% is. The number of draws is limited by that of the orders, (2n)!, as if they were permutations.
# The more words there are, the less it matters. method="exact" isn't implemented.
#
# Count the partitions, as below: with six and six words there are 924. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check wefe==1.0.1 gensim==4.4.0 numpy==1.26.4 \
    scipy==1.12.0 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import itertools
from importlib.metadata import version

import numpy as np
from gensim.models import KeyedVectors
from wefe.metrics import WEAT
from wefe.query import Query
from wefe.word_embedding_model import WordEmbeddingModel

print("wefe", version("wefe"), "numpy", np.__version__)
rng = np.random.default_rng(0)
first, second = rng.normal(size=(2, 50))
names = {side: [f"{side}{number}" for number in range(4)] for side in ("one", "two", "left", "right")}
middles = {"one": 0.3 * (first - second), "two": 0.3 * (second - first), "left": first, "right": second}
spread = {"one": 1.0, "two": 1.0, "left": 0.5, "right": 0.5}
table = KeyedVectors(50)
for side, words in names.items():
    table.add_vectors(words, (middles[side] + spread[side] * rng.normal(size=(4, 50))).astype(np.float32))


def association(word):
    near = [np.mean([table.similarity(word, other) for other in names[side]]) for side in ("left", "right")]
    return near[0] - near[1]


def exact(size):
    """The share of all partitions that differ as much as the sets themselves."""
    found = np.array([association(word) for side in ("one", "two") for word in names[side][:size]])
    sums = [2 * found[list(chosen)].sum() - found.sum() for chosen in itertools.combinations(range(2 * size), size)]
    return np.mean(np.array(sums) >= sums[0] - 1e-9)


for size, least, most in ((3, 0.002, 0.02), (4, 0.0005, 0.007)):
    query = Query([names["one"][:size], names["two"][:size]], [names["left"], names["right"]])
    p = WEAT().run_query(query, WordEmbeddingModel(table, "words"), calculate_p_value=True,
                         p_value_iterations=1500)["p_value"]
    print(f"{size} and {size} words: p {p:.4f}, over all partitions {exact(size):.4f}")
    assert least < p < most, "words are drawn without replacement now"
    assert abs(exact(size) - {3: 1 / 20, 4: 1 / 70}[size]) < 1e-9
PYTHON
echo "as seen"
