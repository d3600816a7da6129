#!/usr/bin/env bash
# rank-bm25 0.2.2: BM25Plus gives its bonus to passages without the word, too, so that delta changes no ranking, and
# BM25L counts each repetition of a word in full.
#
# BM25 punishes long texts so much that a long one with the word of a query may come behind one without it. Lv and Zhai
# mended that in 2011: BM25+ adds delta to the score of a word that a text holds, and BM25L raises the count of such a
# word by delta. BM25Plus of the package adds delta for each word of the query to all texts, so all rankings are those
# of delta=0, for any delta. Here a text of 300 words that holds both words of the query is behind one of 20 words with
# one of them, at delta 0, 1 and 100. With the bonus for words that occur it is first. BM25L multiplies the score by
# the number of occurrences on top, so that it grows without end: 30 repetitions count 57 times as much as one, and 1.9
# times by the formula. For BM25L this was mended in 2022 (pull request 20 of dorianbrown/rank_bm25), after the last
# release. No warning comes.
#
# Take bm25s with method="bm25+" or "bm25l". Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check rank-bm25==0.2.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from rank_bm25 import BM25L, BM25Plus

print("rank-bm25", version("rank-bm25"), "numpy", np.__version__)
filler = [f"word{number}" for number in range(400)]
texts = {"long with both": ["harbour", "lantern"] + filler[:298], "short with one": ["harbour"] + filler[100:119]}
texts |= {f"other {number}": filler[number * 10:number * 10 + 40] for number in range(30)}
texts |= {"lantern there": ["lantern"] + filler[300:339], "harbour there": ["harbour"] + filler[310:349]}
names, corpus = list(texts), list(texts.values())
query = ["harbour", "lantern"]


def plus(delta, everywhere):
    """BM25+ by its formula, with the bonus for words that occur or, as the package has it, everywhere."""
    model = BM25Plus(corpus, delta=0)
    scores = model.get_scores(query)
    for word in query:
        holds = np.array([everywhere or word in text for text in corpus])
        scores = scores + model.idf[word] * delta * holds
    return scores


def order(scores):
    return [names[number] for number in np.argsort(-scores, kind="stable")[:3]]


orders = {delta: order(BM25Plus(corpus, delta=delta).get_scores(query)) for delta in (0, 1, 100)}
for delta, first in orders.items():
    assert np.allclose(BM25Plus(corpus, delta=delta).get_scores(query), plus(delta, everywhere=True))
    print(f"delta {delta}: package {first}, by the formula {order(plus(delta, everywhere=False))}")
assert orders[0] == orders[1] == orders[100] and orders[1][0] == "short with one", "delta changes the ranking now"
assert order(plus(1, everywhere=False))[0] == "long with both"

generator = np.random.default_rng(0)
lengths = generator.integers(20, 300, 200)
many = [generator.choice(filler, length).tolist() for length in lengths]
same = sum((np.argsort(-BM25Plus(many, delta=0).get_scores(words), kind="stable")[:10]
            == np.argsort(-BM25Plus(many, delta=1).get_scores(words).round(9), kind="stable")[:10]).all()
           for words in generator.choice(filler, (100, 3)).tolist())
print(f"{same} of 100 queries on 200 texts have the same first ten with delta 0 and 1")
assert same > 95

once = [["harbour"] + filler[:49], ["harbour"] * 30 + filler[:20]]
once += [filler[number:number + 50] for number in range(20)]
scores = BM25L(once).get_scores(["harbour"])
counts = np.array([1, 30])
right = counts / (1 - 0.75 + 0.75 * 50 / 50) + 0.5
right = right / (1.5 + right)
print(f"BM25L: 30 repetitions count {scores[1] / scores[0]:.1f} times one, by the formula {right[1] / right[0]:.1f}")
assert scores[1] / scores[0] > 40 > 2 > right[1] / right[0], "repetitions are damped now"
PYTHON
echo "as seen"
