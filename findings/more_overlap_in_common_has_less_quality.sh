#!/usr/bin/env bash
# clusim 0.4: overlap_quality adds the joint entropy that it should take away, so that topics which overlap in the same
# texts get less than those which overlap by lot; onmi takes texts outside of two topics for those outside of both.
#
# The package compares clusterings that may overlap, as texts with several topics. overlap_quality (Ahn and others 2010)
# is the mutual information between the numbers of topics that a text has in the one and in the other clustering,
# H(X) + H(Y) - H(X, Y). The code has + H(X, Y). The value is the largest for numbers that have nothing to do with each
# other, and is not even bounded by the entropies: 3.67 for a random order of numbers that would have 2.75 with
# themselves; right are 0.00 and 0.92.
# onmi (Lancichinetti and others 2009) needs for each pair of topics the shares of texts in both, in one of them and in
# none, and counts a pair if h(both) + h(none) > h(first) + h(second). For the share of none the code has 1 minus that
# of both. It counts other pairs, and their entropies are of shares that sum up to more than 1. Two clusterings of which
# a fifth of the texts is moved have 0.58, 0.65 and 0.68 with 2, 4 and 10 topics; right are 0.54, 0.55 and 0.57, and
# with two topics that is the plain normalised mutual information, as it must be.
#
# Both are a few lines of NumPy: see below. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check clusim==0.4 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1 mpmath==1.3.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from clusim.clustering import Clustering
from clusim.sim import onmi, overlap_quality
from sklearn.metrics import mutual_info_score, normalized_mutual_info_score

print("clusim", version("clusim"), "numpy", np.__version__)
rng = np.random.default_rng(0)


def cluster(members):
    return Clustering(elm2clu_dict={text: np.flatnonzero(row).tolist() for text, row in enumerate(members)})


def h(share):
    return 0.0 if share == 0 else -share * np.log2(share)


def lacking(first, second):
    terms = []
    for x in first.T:
        best = [1.0]
        for y in second.T:
            both, none, one, other = (np.mean(part) for part in (x & y, ~x & ~y, x & ~y, ~x & y))
            if h(both) + h(none) > h(one) + h(other):
                rest = h(both) + h(none) + h(one) + h(other) - h(np.mean(y)) - h(np.mean(~y))
                best.append(rest / (h(np.mean(x)) + h(np.mean(~x))))
        terms.append(min(best))
    return np.mean(terms)


def by_paper(first, second):
    return 1 - (lacking(first, second) + lacking(second, first)) / 2


topics = np.eye(3, dtype=bool)[np.arange(30) % 3]
first = np.column_stack([topics, np.arange(30) < 10])
shuffled = np.column_stack([topics, rng.permutation(30) < 10])
for name, other in (("themselves", first), ("other texts", shuffled)):
    quality = overlap_quality(cluster(first), cluster(other))
    right = mutual_info_score(first.sum(1), other.sum(1)) / np.log(2)
    print(f"numbers of topics, with those of {name}: {quality:.2f}, mutual information {right:.2f}")
    assert abs(quality - (2.75 if other is first else 3.67)) < 0.01 and (right > 0.9) == (other is first)

for number, expected in ((2, (0.58, 0.54)), (4, (0.65, 0.55)), (10, (0.68, 0.57))):
    labels = rng.integers(0, number, 2000)
    others = np.where(rng.random(2000) < 0.8, labels, rng.integers(0, number, 2000))
    members = [np.eye(number, dtype=bool)[own] for own in (labels, others)]
    value, right = onmi(*map(cluster, members)), by_paper(*members)
    plain = normalized_mutual_info_score(labels, others)
    print(f"{number} topics, a fifth of the texts moved: {value:.2f}, by the paper {right:.2f}, plain {plain:.2f}")
    assert np.allclose((value, right), expected, atol=0.01) and (number > 2 or abs(right - plain) < 0.01)
    same = members[:1] * 2
    assert abs(onmi(*map(cluster, same)) - 1) < 1e-9 and abs(by_paper(*same) - 1) < 1e-9
PYTHON
echo "as seen"
