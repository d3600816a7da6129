#!/usr/bin/env bash
# turftopic 0.28.0: the word importance "npmi" has a wrong sign in its divisor, so words more frequent in a topic than
# the topic is in the corpus come last, and the topic is described by words that are in all texts.
#
# turftopic describes the topics that it finds in embeddings by words. feature_importance="npmi" of GMM,
# ClusteringTopicModel and others, which Topeax always takes, is "normalized pointwise mutual information between
# clusters and terms": log p(w|t) / p(w), by -log p(w, t), with p(w, t) = p(w|t) p(t), so that it lies between -1 and 1.
# The code computes -(log p(w|t) - log p(t)) for the divisor: the share of the topic divides in place of multiplying.
# For large topics this is nearly the same order. In a small one the best words have a share near that of the topic,
# where the divisor is 0, or above it, where it is negative: then they have large values below 0. Of 30 topics of 1% to
# 18% of the texts here, each with 8 words of its own, values go to hundreds on both sides, and in 19 of the topics one
# of the first five words is not the topic's own. By the formula all of them are.
#
# Take "soft-c-tf-idf", the default of most, "c-tf-idf" or "fighting-words". Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check turftopic==0.28.0 sentence-transformers==6.2.0 \
    transformers==5.23.0 torch==2.13.0 numpy==2.4.6 scikit-learn==1.9.1
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from turftopic import GMM

print("turftopic", version("turftopic"))


class Encoder:
    """The embeddings are given, so nothing is encoded."""

    def encode(self, texts, **settings):
        return np.zeros((len(texts), 16))


rng = np.random.default_rng(0)
sizes = (700 / np.arange(1, 31) ** 0.8).astype(int)
texts, embeddings, fields = [], [], []
for field, size in enumerate(sizes):
    centre = 10 * rng.normal(size=16)
    for _ in range(size):
        own = [f"field{field:02}{letter}" for letter in rng.choice(list("abcdefgh"), 5)]
        common = [f"common{number:03}" for number in rng.zipf(1.3, 10) % 300]
        texts.append(" ".join(own + common))
        embeddings.append(centre + rng.normal(size=16))
        fields.append(field)
embeddings, fields = np.array(embeddings), np.array(fields)


def formula(model, smoothing=2):
    """Normalised pointwise mutual information, with the smoothing of the package."""
    counts = np.asarray(model.doc_term_matrix.todense(), dtype=float)
    labels = model.doc_topic_matrix.argmax(1)
    words = counts.sum(0) + smoothing
    topics = model.doc_topic_matrix.sum(0) + smoothing
    within = np.stack([counts[labels == topic].sum(0) + smoothing for topic in range(len(topics))])
    words, topics, within = words / words.sum(), topics / topics.sum(), within / within.sum(1, keepdims=True)
    return np.log(within / words) / -np.log(within * topics[:, None]), within, topics


means = np.stack([embeddings[fields == field].mean(0) for field in range(30)])
seen = {}
for importance in ("npmi", "soft-c-tf-idf"):
    model = GMM(30, encoder=Encoder(), feature_importance=importance, random_state=0)
    model.fit(texts, embeddings=embeddings)
    seen[importance] = model
vocabulary = model.get_vocab()
right, within, topics = formula(seen["npmi"])
found = seen["npmi"].components_
names = [fields[model.doc_topic_matrix.argmax(1) == topic] for topic in range(30)]
names = [f"field{np.bincount(name).argmax():02}" for name in names]


def strangers(components):
    """In how many topics a word of no topic, or of another one, is among the first five."""
    return sum(not all(vocabulary[word].startswith(name) for word in row.argsort()[::-1][:5])
               for row, name in zip(components, names))


print(f"npmi of turftopic from {found.min():.1f} to {found.max():.1f}, by the formula from {right.min():.2f} to "
      f"{right.max():.2f}")
for topic in topics.argsort()[[0, 10, 20, 29]]:
    show = [" ".join(f"{vocabulary[word]} {row[word]:.2f}," for word in row.argsort()[::-1][:4])
            for row in (found[topic], right[topic])]
    print(f"share {topics[topic]:.3f} {names[topic]}: turftopic {show[0]} formula {show[1]}")
counts = {name: strangers(rows) for name, rows in (("turftopic", found), ("formula", right),
                                                   ("soft-c-tf-idf", seen["soft-c-tf-idf"].components_))}
print("topics with a word that is not theirs among the first five:", counts)
wrong = right * np.log(within * topics[:, None]) / np.log(within / topics[:, None])
assert np.allclose(found, wrong, rtol=1e-3), "the divisor is another one"
assert np.abs(right).max() < 1 and found.min() < -50 and found.max() > 50, "the values are in their bounds now"
assert counts["turftopic"] > 10 and counts["formula"] == counts["soft-c-tf-idf"] == 0, "the words are right now"
last = sum(row.argmin() == word for row, word in zip(found, right.argmax(1)))
below = (found[np.arange(30), right.argmax(1)] < 0).sum()
print(f"topics whose best word by the formula has a value below 0: {below}, whose best word is the last of all: {last}")
assert below > 10, "the best words are above 0 now"
PYTHON
echo "as seen"
