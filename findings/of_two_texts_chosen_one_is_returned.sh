#!/usr/bin/env bash
# modAL-python 0.4.2.1: when a query strategy chooses two texts, query returns the first one only, and for one text or
# more than two it runs the strategy twice.
#
# A learner of modAL asks a query strategy which texts of the pool are to be labelled next. Strategies of one's own are
# the point of the package: make_query_strategy joins a measure and a selector, which "should return an array containing
# the queried items", such as weighted_random. Version 0.4.2 brought scores of the chosen texts. query unpacks what the
# strategy returns into positions and scores, and if that fails, for whatever reason, calls the strategy once more
# and takes all of it for positions. An array of two positions can be unpacked: the first one counts as the position
# and the second one as the score. So 2 texts a round become 1, as a number and a row in place of two arrays. Any other
# number of texts costs two runs over the whole pool, with an encoder behind it twice the time, and a strategy that
# draws draws again. Besides, SVM_binary_minimum with random_tie_break=True returns the text that is farthest from all
# borders, where it should be the nearest. uncertainty_sampling and the like return scores as well and are right. No
# warning comes.
#
# Return a pair, the positions and their scores, from each strategy. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 \
    pandas==2.3.3
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps modAL-python==0.4.2.1    # without torch
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from modAL.models import ActiveLearner
from modAL.multilabel import SVM_binary_minimum
from modAL.uncertainty import classifier_uncertainty, uncertainty_sampling
from modAL.utils.combination import make_query_strategy
from modAL.utils.selection import weighted_random
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

print("modAL", version("modAL-python"))
rng = np.random.default_rng(0)
vectors = rng.normal(size=(120, 5))
labels = (vectors[:, 0] > 0).astype(int)
pool = vectors[20:]


def ask(strategy, count=None):
    """What a learner with the strategy returns, and how often it called the strategy."""
    calls = []

    def counted(*arguments, **options):
        calls.append(1)
        return strategy(*arguments, **options)

    learner = ActiveLearner(LogisticRegression(), counted, vectors[:20], labels[:20])
    options = {} if count is None else {"n_instances": count}
    positions, texts = learner.query(pool, **options)
    return positions, texts, len(calls), np.argsort(-classifier_uncertainty(learner, pool))


def most_uncertain(learner, texts, n_instances=1):
    return np.argsort(-classifier_uncertainty(learner, texts))[:n_instances]


for count in (1, 2, 3, 5):
    positions, texts, calls, order = ask(most_uncertain, count)
    print(f"{count} texts asked for: positions {positions}, shape of the texts {texts.shape}, {calls} calls")
    if count == 2:
        assert np.ndim(positions) == 0 and positions == order[0] and texts.shape == (5,), "both texts come now"
        assert calls == 1
    else:
        assert positions.tolist() == order[:count].tolist() and texts.shape == (count, 5)
        assert calls == 2, "the strategy runs once now"
    positions, texts, calls, _ = ask(uncertainty_sampling, count)
    assert sorted(positions) == sorted(order[:count]) and calls == 1, "a strategy of the package is wrong too"
    positions, texts, calls, _ = ask(lambda *a, **o: (most_uncertain(*a, **o), None), count)
    assert positions.tolist() == order[:count].tolist() and calls == 1, "the remedy does not help"

for count in (2, 3):
    chosen = make_query_strategy(classifier_uncertainty, lambda utility: weighted_random(utility, count))
    positions, texts, calls, _ = ask(chosen)
    print(f"make_query_strategy with weighted_random of {count}: {np.size(positions)} positions, {calls} calls")
    assert np.size(positions) == (1 if count == 2 else 3) and calls == (1 if count == 2 else 2)

learner = ActiveLearner(OneVsRestClassifier(SVC(kernel="linear")), SVM_binary_minimum, vectors[:40],
                        (vectors[:40, :2] > 0).astype(int))
borders = np.abs([svm.decision_function(pool) for svm in learner.estimator.estimators_]).min(0)
plain, ties = (int(np.ravel(learner.query(pool, random_tie_break=ties)[0])[0]) for ties in (False, True))
print(f"SVM_binary_minimum: distance {borders[plain]:.3f}, with random_tie_break {borders[ties]:.3f}")
assert plain == borders.argmin() and ties == borders.argmax(), "ties are broken otherwise now"
PYTHON
echo "as seen"
