#!/usr/bin/env bash
# kmodes 0.12.2: with sample_weight the numeric centres of KPrototypes are no means of their clusters, once a point has
# moved: with equal weights of 5 a centre at 6 is found at 3.3, with 0.1 at 0.3.
#
# KPrototypes clusters rows with numbers and categories, as the length, the score and the language of a text, and
# sample_weight lets a row count as several. A centre is the weighted sum of its points divided by the sum of their
# weights. For the first assignment both are sums of weights. Each later move changes the sum of the points by the
# weight and the sum of weights by 1, in _move_point_num. From then on the centre is divided by a mixture: the more
# points move, the more it is that of heads. With small weights, as those that sum up to 1, the divisor may even become
# 0 or negative, and where it happens to be 0 the cluster counts as empty. The centres then attract other points, and
# clusters that are six deviations apart are mixed. Weights that are all equal must change nothing, and change nothing
# with KModes and scikit-learn's KMeans, which multiplies by them throughout. cost_ is computed from the wrong centres,
# so n_init picks by it. The categories are counted right.
#
# Repeat the rows in place of weights. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kmodes==0.12.2 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1 joblib==1.6.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from kmodes.kprototypes import KPrototypes
from sklearn.cluster import KMeans

print("kmodes", version("kmodes"), "scikit-learn", version("scikit-learn"))
rng = np.random.default_rng(0)
groups = np.repeat([0, 1], 100)
numbers = rng.normal(size=(200, 2)) + 6 * groups[:, None]
language = np.where(rng.random(200) < 0.9, groups, 1 - groups)
rows = np.column_stack([numbers, language]).astype(object)


def fit(weights, seed, rows=rows):
    model = KPrototypes(2, random_state=seed, n_init=1, init="Huang")
    model.fit(rows, categorical=[2], sample_weight=weights)
    labels = model.predict(rows, categorical=[2])[:200]
    agree = np.mean(labels == groups)
    return model.cluster_centroids_[:, :2].astype(float), labels, max(agree, 1 - agree)


errors = {}
for weight in (None, 1.0, 5.0, 0.1, 1 / 200):
    runs = [fit(None if weight is None else [weight] * 200, seed) for seed in range(6)]
    worst = [max(abs(centre - numbers[labels == label].mean(0)).max() for label, centre in enumerate(centres)
                 if (labels == label).any()) for centres, labels, _ in runs]
    errors[weight] = max(worst), min(agree for *_, agree in runs)
    print(f"all weights {weight}: centres are off by {[round(float(error), 2) for error in worst]},"
          f" at least {errors[weight][1]:.0%} of the rows are in their group")
for weight in (None, 1.0):
    assert errors[weight][0] < 1e-9 and errors[weight][1] == 1
assert all(errors[weight][0] > 2 for weight in (5.0, 0.1, 1 / 200)) and min(errors[0.1][1], errors[1 / 200][1]) < 0.97
for seed, weight, expected in ((2, 5.0, 3.31), (2, 0.1, 0.31)):
    centres = fit([weight] * 200, seed)[0]
    print(f"weights of {weight}: centres {centres.round(2).tolist()}")
    assert abs(centres[:, 0].max() - expected) < 0.02
plain = KMeans(2, n_init=1, random_state=0).fit(numbers, sample_weight=[0.1] * 200).cluster_centers_
assert np.allclose(np.sort(plain[:, 0]), np.sort([numbers[groups == group, 0].mean() for group in (0, 1)]), atol=0.1)
repeated = [fit(None, seed, rows=np.repeat(rows, 5, axis=0))[0] for seed in range(6)]
assert all(abs(np.sort(centres[:, 0]) - np.sort(plain[:, 0])).max() < 0.1 for centres in repeated)
print("with each row five times all is right")
PYTHON
echo "as seen"
