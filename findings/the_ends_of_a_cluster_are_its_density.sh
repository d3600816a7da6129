#!/usr/bin/env bash
# permetrics 2.1.0: the density-based index DBCV takes nearly the farthest text of a cluster for the nearest, and noise
# for a cluster, so that two rings are hardly better told apart by the right labels than cut into eight pieces.
#
# DBCV (Moulavi and others 2014) judges clusters of any shape, as those of HDBSCAN below a topic model. It measures how
# dense the neighbourhood of a point is by the mean of (1 / distance)^d over its cluster, to the power of -1 / d, where
# d is the number of features: near points decide. The code takes the mean of distance^d, to the power of 1 / d: the
# farthest decide, and the more features there are, the more so. All points of a cluster are then about as far from each
# other as its ends, which is what DBCV was made to avoid. Two rings, one in the other, have 0.18 with the right labels
# and 0.17 when k-means cuts them into eight pieces; by the index of the hdbscan package 0.49 and 0.05. Two half moons
# have 0.06, and there 0.53. (An issue of 2025, github.com/thieu1995/permetrics/issues/13, was about an older index of
# this name, which was none of density at all.)
# The function is made to ignore the label -1, noise "commonly labeled as -1 in density algorithms". Before, all labels
# are numbered anew from 0, so that noise is cluster 0 and 0 is cluster 1: with four tight groups and noise, the result
# holds five clusters, the first with -0.30, and the names of the others are moved by one.
#
# Take hdbscan.validity.validity_index. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check permetrics==2.1.0 hdbscan==0.8.44 numpy==2.4.6 \
    scipy==1.17.1 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from hdbscan.validity import validity_index
from permetrics import ClusteringMetric
from permetrics.utils.cluster_util import calculate_dbcv_score
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons

print("permetrics", version("permetrics"), "hdbscan", version("hdbscan"), "numpy", np.__version__)
rng = np.random.default_rng(0)


def ring(radius, number):
    angle = rng.uniform(0, 2 * np.pi, number)
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.normal(size=(number, 2))


def index(points, labels, **options):
    return ClusteringMetric(X=points, y_pred=labels).density_based_clustering_validation_index(**options)


def show(name, points, labels):
    own, other = index(points, labels), validity_index(points, labels)
    print(f"{name}: permetrics {own:.2f}, hdbscan {other:.2f}")
    return own, other


rings = np.concatenate([ring(1, 150), ring(3, 250)])
right = show("two rings", rings, np.repeat([0, 1], [150, 250]))
pieces = show("in eight pieces", rings, KMeans(8, random_state=0, n_init=5).fit_predict(rings))
moons = show("two half moons", *make_moons(400, noise=0.05, random_state=0))
assert right[0] < pieces[0] + 0.05 and right[1] > pieces[1] + 0.3, "near points decide now"
assert moons[0] < 0.15 and moons[1] > 0.4

centres = rng.uniform(-20, 20, (4, 5))
groups = np.concatenate([centre + rng.normal(size=(100, 5)) for centre in centres])
points = np.concatenate([groups, rng.uniform(-25, 25, (60, 5))])
labels = np.repeat([0, 1, 2, 3, -1], [100, 100, 100, 100, 60])
clusters = {int(name): float(value) for name, value in index(points, labels, return_type="per-cluster").items()}
direct = {int(name): float(value) for name, value in calculate_dbcv_score(points, labels)[1].items()}
print("four groups and noise:", {name: round(value, 2) for name, value in clusters.items()})
print("the function below it, without the new numbers:", {name: round(value, 2) for name, value in direct.items()})
assert len(clusters) == 5 and clusters[0] < 0 and sorted(direct) == [0, 1, 2, 3] and min(direct.values()) > 0.5
PYTHON
echo "as seen"
