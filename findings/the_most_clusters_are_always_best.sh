#!/usr/bin/env bash
# clusteval 2.2.7: the Davies-Bouldin index is divided by the number of clusters, so that evaluate="dbindex" finds as
# many clusters as it may try: 24 where there are two, three, four, five or six.
#
# The index (Davies and Bouldin, 1979) compares for each cluster the scatter of it and another one with the distance of
# their centres, takes the worst other one, and is the mean of that over the clusters; lower is better, so the number of
# clusters with the lowest index is chosen. clusteval takes the one worst pair of all clusters, and divides it by their
# number, as if it had added one for each. So each further cut makes the index smaller, unless it makes the worst pair
# much worse. By default 2 to 24 numbers are tried, and for 300 points in 10 dimensions around two to six centres it
# chooses 24 in all of 25 draws. On the same cuts of the same tree scikit-learn's davies_bouldin_score is lowest at the
# right number in 19 of them, and the package's own silhouette is highest there in 22. With eight centres far apart it
# may be right, and the package's examples have five or six. The documentation calls it the Davies-Bouldin index. No
# warning comes.
#
# Compute davies_bouldin_score of the labels, or take evaluate="silhouette". Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check clusteval==2.2.7 scikit-learn==1.9.1 scipy==1.17.1 \
    pandas==3.1.1 numpy==2.4.6
export MPLBACKEND=Agg
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
from clusteval import clusteval, dbindex
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.datasets import make_blobs
from sklearn.metrics import davies_bouldin_score, pairwise_distances

print("clusteval", version("clusteval"), "scikit-learn", version("scikit-learn"))


def by_definition(X, labels):
    """The largest ratio of each cluster, as a list: the index is its mean."""
    parts = [X[labels == label] for label in np.unique(labels)]
    centres = np.array([part.mean(0) for part in parts])
    scatter = np.array([np.linalg.norm(part - centre, axis=1).mean() for part, centre in zip(parts, centres)])
    distances = pairwise_distances(centres)
    np.fill_diagonal(distances, np.inf)
    return ((scatter[:, None] + scatter) / distances).max(1)


right, tried = {"dbindex": 0, "silhouette": 0, "scikit-learn": 0}, list(range(2, 25))
for centres in range(2, 7):
    for seed in range(5):
        X, _ = make_blobs(n_samples=300, centers=centres, n_features=10, cluster_std=2.0, random_state=seed)
        cuts = [fcluster(linkage(X, "ward"), number, "maxclust") for number in tried]
        scores = dbindex.fit(X)["score"]
        ratios = [by_definition(X, labels) for labels in cuts]
        assert list(scores["clusters"]) == tried
        assert np.allclose([ratio.mean() for ratio in ratios], [davies_bouldin_score(X, labels) for labels in cuts])
        assert np.allclose(scores["score"], [ratio.max() / len(ratio) for ratio in ratios])
        found = {name: len(set(clusteval(evaluate=name).fit(X)["labx"])) for name in ("dbindex", "silhouette")}
        found["scikit-learn"] = tried[np.argmin([ratio.mean() for ratio in ratios])]
        assert found["dbindex"] == 24 == len(set(dbindex.fit(X)["labx"]))
        if seed == 0:
            print(f"{centres} centres: {found}")
        for name, number in found.items():
            right[name] += number == centres
print("right of 25:", right)
assert right == {"dbindex": 0, "silhouette": 22, "scikit-learn": 19}
PYTHON
echo "as seen"
