#!/usr/bin/env bash
# small-text 1.4.1: CategoryVectorInconsistencyAndRanking asks for texts by their place in the pool, as it takes the
# order of sorting for ranks.
#
# The query strategy chooses texts to be labelled next for classifiers with several labels. After Reyes, Morell and
# Ventura (2018) a text counts for more the smaller the margins |P(1) - P(0)| of its labels are among those of all
# texts: by label the texts are ranked, and the ranks added. small-text sorts by argsort and uses the result as the
# ranks, but argsort gives which text stands at a place and not the place of a text. So the numbers are a random
# permutation. Both are multiplied by how far a text's predicted labels are from the labelled ones. Here the classifier
# is sure of 900 texts and has 0.5 for all labels of 100. Of 100 texts that it asks for about 10 are among those, as by
# lot, and about 68 with the paper's ranks, which the distance thins out. Active learning then costs as many labels as
# drawing at random. No warning comes.
#
# Override _compute_ranking, as below. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check small-text==1.4.1 scikit-learn==1.9.1 \
    numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from scipy.sparse import csr_matrix
from small_text.query_strategies.multi_label import CategoryVectorInconsistencyAndRanking

print("small-text", version("small-text"), "numpy", np.__version__)
TEXTS, LABELS, UNSURE = 1000, 4, 100


class Classifier:
    def __init__(self, probabilities):
        self.probabilities = probabilities

    def predict_proba(self, dataset):
        return self.probabilities[dataset]


class ByThePaper(CategoryVectorInconsistencyAndRanking):
    """The rank of a text among all, by the margin of each label: the least margin counts most."""

    def _compute_ranking(self, indices_unlabeled, probabilities):
        ranks = np.abs(2 * probabilities - 1).argsort(axis=0).argsort(axis=0) + 1
        return (len(probabilities) - ranks).sum(axis=1) / (LABELS * (len(probabilities) - 1))


found = {}
for strategy in (CategoryVectorInconsistencyAndRanking, ByThePaper):
    found[strategy] = []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        probabilities = np.where(generator.uniform(size=(TEXTS, LABELS)) < 0.5, 0.97, 0.03)
        probabilities += generator.uniform(-0.02, 0.02, (TEXTS, LABELS))
        unsure = generator.choice(TEXTS, UNSURE, replace=False)
        probabilities[unsure] = generator.uniform(0.48, 0.52, (UNSURE, LABELS))
        labelled = csr_matrix(np.tile(np.eye(LABELS, dtype=int), (10, 1)))
        asked = strategy(pbar=None).query(Classifier(probabilities), np.arange(TEXTS), np.arange(TEXTS),
                                          np.array([], dtype=int), labelled, n=UNSURE)
        found[strategy].append(len(set(asked) & set(unsure)))
    print(f"{strategy.__name__}: of {UNSURE} texts asked for, so many are unsure ones: {found[strategy]}")
assert np.mean(found[CategoryVectorInconsistencyAndRanking]) < 20, "the unsure texts are found now"
assert np.mean(found[ByThePaper]) > 60, "the paper's ranks don't find them"

ranks = CategoryVectorInconsistencyAndRanking()._rank_by_margin(np.array([[0.5, 0.1], [0.9, 0.1], [0.7, 0.1]]))
print("ranks of the margins 0.1 of three texts", ranks[0])
PYTHON
echo "as seen"
