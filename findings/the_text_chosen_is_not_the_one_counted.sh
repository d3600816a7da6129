#!/usr/bin/env bash
# small-text 1.4.1: greedy_coreset takes another text's vector for that of the text it has just chosen, so that twenty
# texts chosen for variety come from 6 rare topics in place of 20.
#
# A greedy coreset is chosen for labelling: the next text is always the one farthest from all that are labelled or
# chosen. The positions of the chosen texts are kept as positions in indices_unlabeled and then used as positions in
# x. Where the unlabeled texts are not the first rows of x, the vector that is counted as chosen is that of some other
# text, and the chosen topic stays far away: it is chosen again and again. The positions returned are those in
# indices_unlabeled too, where the docstring says "Indices relative to x": taken at its word, they give 4 topics. The
# strategy GreedyCoreset is right when it makes the vectors itself, as it first puts the unlabeled texts in front. When
# vectors made before are given with embeddings=, in the order of the dataset, GreedyCoreset and EmbeddingKMeans both
# take the rows of wrong texts: 4 and 7 rare topics in place of 20 and 19, as by lot. The number of rows is that of the
# dataset, so nothing fails and no warning comes.
#
# Call greedy_coreset with the vectors of the unlabeled texts first and those of the labeled ones after them, and give
# embeddings=vectors[numpy.concatenate([indices_unlabeled, indices_labeled])]. Seen in November 2026 with Python 3.11.
# The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check small-text==1.4.1 scikit-learn==1.9.1 \
    numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
from sklearn.metrics import pairwise_distances
from small_text import EmbeddingKMeans, GreedyCoreset, greedy_coreset

warnings.filterwarnings("ignore", message="Default distance metric has changed")
print("small-text", version("small-text"), "numpy", np.__version__)
generator = np.random.default_rng(0)
topics = generator.permutation(np.repeat(np.arange(40), [805] + 39 * [5]))
vectors = generator.normal(size=(40, 32))[topics] + 0.05 * generator.normal(size=(1000, 32))
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
labeled = generator.permutation(np.flatnonzero(topics == 0)[:100])
unlabeled = np.setdiff1d(np.arange(1000), labeled)


def farthest(chosen):
    return pairwise_distances(vectors, vectors[np.concatenate([labeled, chosen])]).min(axis=1).max()


def show(name, chosen):
    new = len(set(topics[chosen]) - {0})
    print(f"{name}: {new} topics without a label, farthest text at {farthest(chosen):.2f}")
    return new


positions = greedy_coreset(vectors, unlabeled, labeled, 20, distance_metric="euclidean", normalized=True)
as_written = show("greedy_coreset", unlabeled[positions])
show("positions taken as those of x, as the docstring says", positions)
both = np.concatenate([unlabeled, labeled])
positions = greedy_coreset(vectors[both], np.arange(900), np.arange(900, 1000), 20, distance_metric="euclidean",
                           normalized=True)
in_front = show("greedy_coreset, unlabeled texts in front", unlabeled[positions])
assert as_written <= 8 and in_front == 20, "it counts the chosen texts now"


class Texts:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, rows):
        return Texts(self.rows[rows])

    def __len__(self):
        return len(self.rows)


class Model:
    def embed(self, texts, return_proba=False, pbar=None):
        return vectors[texts.rows], None


for strategy in (GreedyCoreset(), EmbeddingKMeans()):
    query = dict(clf=Model(), dataset=Texts(np.arange(1000)), indices_unlabeled=unlabeled, indices_labeled=labeled,
                 y=topics[labeled], n=20, pbar=None)
    np.random.seed(0)
    own = show(f"{type(strategy).__name__}, own vectors", strategy.query(**query))
    given = show("vectors given", strategy.query(embeddings=vectors, **query))
    ordered = show("vectors given, unlabeled texts in front", strategy.query(embeddings=vectors[both], **query))
    assert own >= 18 and ordered >= 18 and given <= 9, "the rows are right now"
PYTHON
echo "as seen"
