#!/usr/bin/env bash
# s-dbw 0.4.0: the index S_Dbw in its original form depends on the unit of the vectors: of the same five clusters it
# finds five, seven or eight best, or none at all, as the vectors are multiplied by a number.
#
# S_Dbw (Halkidi and Vazirgiannis 2001) chooses the number of clusters, as those of embeddings below a topic model. It
# compares how many points lie around the middle between two centres with how many lie around the centres. "Around"
# means within the mean deviation: the root of the sum of the norms of the clusters' variances, divided by their
# number. The code, with method="Halkidi", takes standard deviations for the variances, and then the root of these too.
# The radius is the root of a length, and grows tenfold where the vectors grow a hundredfold. Of short vectors all
# points lie around everything; of vectors a hundred times as long none lies around its centre, and the function raises
# "The density for two or more clusters to equal zero". With variances, as in the paper, the factor changes nothing, and
# the five clusters are found. The other part of the index, the scatter within clusters against that of all, has
# deviations for variances too, here and in SD: with five clusters 0.24 for 0.06.
#
# The index of the paper is 15 lines of NumPy: see below. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check s-dbw==0.4.0 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from s_dbw import S_Dbw
from s_dbw.s_dbw import Scat
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

print("s-dbw", version("s-dbw"), "numpy", np.__version__)


def own(vectors, labels):
    try:
        return S_Dbw(vectors, labels, method="Halkidi", nearest_centr=False)
    except ValueError as error:
        assert "density" in str(error)
        return np.nan


def paper(vectors, labels):
    names = np.unique(labels)
    groups = [vectors[labels == name] for name in names]
    centres = [group.mean(0) for group in groups]
    norms = [np.linalg.norm(group.var(0)) for group in groups]
    scatter = np.mean(norms) / np.linalg.norm(vectors.var(0))
    radius = np.sqrt(sum(norms)) / len(names)

    def density(centre, *members):
        return sum(int((np.linalg.norm(group - centre, axis=1) <= radius).sum()) for group in members)

    own_densities = [density(centre, group) for centre, group in zip(centres, groups)]
    shares = [density((centres[i] + centres[j]) / 2, groups[i], groups[j]) / max(own_densities[i], own_densities[j], 1)
              for i in range(len(names)) for j in range(len(names)) if i != j]
    return scatter + np.mean(shares)


vectors = make_blobs(600, 2, centers=5, random_state=1, cluster_std=1.0)[0]
partitions = {k: KMeans(k, n_init=5, random_state=0).fit_predict(vectors) for k in range(2, 9)}
paper_values = {k: paper(vectors, labels) for k, labels in partitions.items()}
choices = {}
for factor in (0.01, 0.03, 0.1, 0.3, 1, 10, 100):
    values = {k: own(factor * vectors, labels) for k, labels in partitions.items()}
    right = {k: paper(factor * vectors, labels) for k, labels in partitions.items()}
    known = {k: value for k, value in values.items() if not np.isnan(value)}
    assert min(right, key=right.get) == 5 and np.allclose(list(right.values()), list(paper_values.values()))
    choices[factor] = min(known, key=known.get) if known else None
    print(f"vectors times {factor}: best number {choices[factor]}, by the paper {min(right, key=right.get)};",
          [round(float(value), 2) for value in values.values()], [round(float(v), 2) for v in right.values()])
assert choices == {0.01: 7, 0.03: 8, 0.1: 8, 0.3: 5, 1: 8, 10: 7, 100: None}, choices
labels = partitions[5]
groups = [vectors[labels == name] for name in range(5)]
scatter = Scat(vectors, np.arange(5), labels, "Halkidi")
right = np.mean([np.linalg.norm(group.var(0)) for group in groups]) / np.linalg.norm(vectors.var(0))
print(f"scatter of the five clusters {scatter:.2f}, by the paper {right:.2f}")
assert scatter > 3 * right
PYTHON
echo "as seen"
