#!/usr/bin/env bash
# feature-engine 1.9.4: by default MRMR selects noise, as a feature that tells nothing and shares nothing has the score
# 0/0, which counts as the highest.
#
# MRMR (Peng and others, 2005; Zhao and others, 2019) takes features one after the other: the one whose mutual
# information with the labels is largest, then always that with the largest quotient of its information about the
# labels and its mean information about the features taken so far. The estimate of scikit-learn is cut off at 0, and
# for a feature of noise it is exactly 0 about half of the time. So at the second step a quarter of such features have
# 0/0, which is NaN, and argmax takes the first NaN for the maximum; where there is none, a feature with anything by 0
# is infinitely good. With 45 features of noise and 5 that differ between two classes of texts, 4 of the 5 that the
# default method "MIQ" keeps are noise, for each of five seeds, and a classifier with them is right for 65% of new
# texts in place of 81% with the five good ones. The second feature is always one whose information about the labels is
# 0. The page of the class and its guide don't speak of 0; NumPy warns of a division, once, and nothing else is said.
#
# Take method="FCD" or "FCQ", which keep 5 and 4 to 5 of the good ones here, or "MID". Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check feature-engine==1.9.4 scikit-learn==1.9.1 \
    pandas==3.1.1 scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
from feature_engine.selection import MRMR
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.linear_model import LogisticRegression

print("feature-engine", version("feature-engine"), "scikit-learn", version("scikit-learn"))
GOOD = [f"good{i}" for i in range(5)]


def draw(rng, texts):
    labels = rng.integers(0, 2, texts)
    noise, good = rng.normal(size=(texts, 45)), 0.8 * labels[:, None] + rng.normal(size=(texts, 5))
    return pd.DataFrame(np.hstack([noise, good]), columns=[f"noise{i}" for i in range(45)] + GOOD), labels


rates, kept = {"MIQ": [], "all good ones": []}, {"MIQ": [], "MID": [], "FCQ": [], "FCD": []}
for seed in range(5):
    rng = np.random.default_rng(seed)
    (X, y), (other, truth) = draw(rng, 600), draw(rng, 20_000)
    for method, numbers in kept.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            selector = MRMR(method=method, max_features=5, random_state=0).fit(X, y)
        names = [name for name in X if name not in selector.features_to_drop_]
        numbers.append(len(set(names) & set(GOOD)))
        if method == "MIQ":
            chosen = names
    for key, names in (("MIQ", chosen), ("all good ones", GOOD)):
        rates[key].append(LogisticRegression().fit(X[names], y).score(other[names], truth))

    relevance = pd.Series(mutual_info_classif(X, y, random_state=0), X.columns)       # the first two steps by hand
    rest = relevance.drop(relevance.idxmax())
    shared = pd.Series(mutual_info_regression(X[rest.index], X[relevance.idxmax()], random_state=0), rest.index)
    second = rest.index[(rest == 0) & (shared == 0)][0]
    print(f"seed {seed}: {chosen}; {(relevance == 0).sum()} features tell nothing of the labels, the first that also"
          f" shares nothing with {relevance.idxmax()} is {second}")
    assert relevance.idxmax() in chosen and second in chosen and second.startswith("noise")
    assert 15 < (relevance == 0).sum() < 35
print("good ones among five:", kept)
print("right for new texts:", {key: f"{np.mean(rate):.1%}" for key, rate in rates.items()})
assert max(kept["MIQ"]) == 1 and min(kept["FCD"]) == 5 and min(kept["FCQ"]) >= 4 and min(kept["MID"]) >= 3
assert np.mean(rates["MIQ"]) < 0.7 and np.mean(rates["all good ones"]) > 0.78

with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    MRMR(max_features=5, random_state=0).fit(X, y)
assert MRMR().method == "MIQ" and {str(one.category.__name__) for one in heard} == {"RuntimeWarning"}
PYTHON
echo "as seen"
