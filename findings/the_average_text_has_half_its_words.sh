#!/usr/bin/env bash
# gensim 4.4.0: given a corpus, the BM25 models take the mean number of different words for the mean length of a text,
# so that they are other models than those given the dictionary of the same texts, and punish long texts too much.
#
# BM25 divides the length of a text by the mean length of all. The length counts each word as often as it occurs. The
# three models, OkapiBM25Model, LuceneBM25Model and AtireBM25Model, may be given the corpus in bag-of-words form or its
# Dictionary. For the dictionary avgdl is the number of words by the number of texts. For a corpus it is the mean of
# len(bow), which is the number of different words, as a bag has one entry for each of them. The length of a text that
# is weighed counts all its words in both cases. So an average text is taken for one that is longer than average, the
# more so the longer texts are: here avgdl is 279 in place of 589, and texts of more than 1000 words come later in the
# answers to queries of two of their own words, with a mean reciprocal rank of 0.86 in place of 0.92. The
# documentation says of both arguments that "the average length of a document" is computed from them. No warning comes.
#
# Give the dictionary. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gensim==4.4.0 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from gensim.corpora import Dictionary
from gensim.models import AtireBM25Model, LuceneBM25Model, OkapiBM25Model

print("gensim", version("gensim"))
rng = np.random.default_rng(0)
TEXTS, WORDS = 400, 5000
common = 1 / np.arange(1, WORDS + 1)                # by Zipf's law
lengths = np.exp(rng.uniform(np.log(50), np.log(2000), TEXTS)).astype(int)
topics = [rng.choice(np.arange(100, WORDS), 30, replace=False) for _ in range(TEXTS)]
texts = []
for length, topic in zip(lengths, topics):
    words = rng.choice(WORDS, length, p=common / common.sum())
    about = rng.random(length) < 0.1
    words[about] = rng.choice(topic, about.sum())
    texts.append([str(word) for word in words])
dictionary = Dictionary(texts)
corpus = [dictionary.doc2bow(text) for text in texts]
counts = np.zeros((TEXTS, len(dictionary)))
for row, bag in zip(counts, corpus):
    row[[word for word, _ in bag]] = [count for _, count in bag]
queries = [[dictionary.token2id[word] for word in sorted(set(text) & {str(word) for word in topic})[:2]]
           for text, topic in zip(texts, topics)]


def weights(model):
    table = np.zeros_like(counts)
    for row, bag in zip(table, corpus):
        row[[word for word, _ in bag]] = [weight for _, weight in model[bag]]
    return table


def by_the_formula(model, mean_length):
    """Okapi's weights, with the inverse document frequencies of the model."""
    frequencies = np.array([model.idfs[word] for word in range(len(dictionary))])
    norm = 1.5 * (1 - 0.75 + 0.75 * counts.sum(1, keepdims=True) / mean_length)
    return frequencies * counts * 2.5 / (counts + norm)


def reciprocal_rank(table):
    ranks = [1 / (1 + (table[:, query].sum(1) > table[text, query].sum()).sum())
             for text, query in enumerate(queries) if lengths[text] > 1000]
    return np.mean(ranks)


every, different = counts.sum(1).mean(), (counts > 0).sum(1).mean()
print("mean number of words", every, "of different words", different)
for kind in (OkapiBM25Model, LuceneBM25Model, AtireBM25Model):
    given, right = kind(corpus=corpus), kind(dictionary=dictionary)
    assert np.isclose(given.avgdl, different) and np.isclose(right.avgdl, every), "the mean length is another one"
    assert given.idfs == right.idfs, "there is another difference"
    tables = weights(given), weights(right)
    ranks = [reciprocal_rank(table) for table in tables]
    print(f"{kind.__name__:<16} long texts: corpus {ranks[0]:.3f} dictionary {ranks[1]:.3f}")
    assert ranks[0] + 0.02 < ranks[1], "long texts do not come later"
    if kind is OkapiBM25Model:
        assert np.allclose(tables[0], by_the_formula(given, different))
        assert np.allclose(tables[1], by_the_formula(right, every))
PYTHON
echo "as seen"
