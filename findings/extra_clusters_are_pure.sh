#!/usr/bin/env bash
# permetrics 2.1.0: homogeneity_score counts no cluster beyond the number of classes, so that fifty clusters by lot are
# 92% homogeneous, and entropy_score adds up the clusters in place of averaging them.
#
# The package has more than a hundred measures for regression, classification and clustering, among them those that
# hold clusters of texts against known topics. Homogeneity is one minus the entropy of the topics within the clusters,
# divided by their entropy. compute_conditional_entropy goes through the numbers of the topics where it should go
# through those of the clusters: with 4 topics the clusters 4, 5 and so on add nothing to the entropy, as if each held a
# single topic. Of 2,000 texts in 4 topics, clusters by lot get 0.50, 0.80 and 0.92 with 8, 20 and 50 of them, where
# scikit-learn gives 0.00, 0.02 and 0.03. completeness_score is the same function with the two turned round, so it is
# wrong with fewer clusters than topics: 0.52 for two by lot. With as many clusters as topics all is right. The
# V-measure, the harmonic mean of the two, orders clusterings wrongly: four clusters with 62% of the texts right
# get 0.23; where the texts of each are dealt by lot to two halves, which tells nothing, 0.25 (scikit-learn 0.23, 0.18).
# entropy_score, "the lower the better", is the mean of the clusters' entropies, weighted by their size, in the formula
# of its page. The code adds up the terms of all clusters and multiplies the sum by the sum of the weights, which is 1:
# clusters by lot get 4, 16 and 97 bits with 2, 8 and 50 of them, where the most that 4 topics can have is 2 bits.
#
# Take scikit-learn's homogeneity_completeness_v_measure, and for the entropy the formula below. Seen in November 2026
# with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check permetrics==2.1.0 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from permetrics import ClusteringMetric
from sklearn.metrics import homogeneity_completeness_v_measure

print("permetrics", version("permetrics"), "numpy", np.__version__)
rng = np.random.default_rng(0)
topics = rng.integers(0, 4, 2000)


def entropy(clusters):
    """The mean entropy of the topics in a cluster, in bits, weighted by the size of the cluster."""
    total = 0.0
    for cluster in np.unique(clusters):
        shares = np.bincount(topics[clusters == cluster]) / (clusters == cluster).sum()
        shares = shares[shares > 0]
        total -= (clusters == cluster).mean() * (shares * np.log2(shares)).sum()
    return total


def compare(name, clusters):
    seen = ClusteringMetric(y_true=topics, y_pred=clusters)
    found = np.array([seen.homogeneity_score(), seen.completeness_score(), seen.v_measure_score()])
    right = np.array(homogeneity_completeness_v_measure(topics, clusters))
    print(f"{name}: homogeneity {found[0]:.2f} (scikit-learn {right[0]:.2f}), completeness {found[1]:.2f} "
          f"({right[1]:.2f}), V {found[2]:.2f} ({right[2]:.2f}), entropy {seen.entropy_score():.1f} (formula "
          f"{entropy(clusters):.1f})")
    return found, right, seen.entropy_score(), entropy(clusters)


lot = {number: compare(f"{number} clusters by lot", rng.integers(0, number, 2000)) for number in (2, 4, 8, 20, 50)}
assert np.allclose(lot[4][0], lot[4][1]), "as many clusters as topics are right"
for number, least in ((8, 0.45), (20, 0.75), (50, 0.9)):
    assert lot[number][0][0] > least and lot[number][1][0] < 0.04, "homogeneity counts all clusters now"
assert lot[2][0][1] > 0.5 and lot[2][1][1] < 0.01, "completeness counts all clusters now"
for number, (_, _, found, right) in lot.items():
    assert right <= 2 and abs(found - 2 * number) < 3.1, "the entropy is the mean now"

good = np.where(rng.random(2000) < 0.5, topics, rng.integers(0, 4, 2000))
whole = compare("four good clusters", good)
split = compare("each of them in two halves", good + 4 * rng.integers(0, 2, 2000))
assert whole[1][2] > split[1][2] + 0.03, "halves tell no more"
assert whole[0][2] < split[0][2], "the halves are no better now"
PYTHON
echo "as seen"
