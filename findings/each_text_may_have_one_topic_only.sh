#!/usr/bin/env bash
# tmtoolkit 0.12.0: the held-out probability of an LDA model takes each text for one topic, so the topics that the texts
# were drawn from are worse than no topics at all.
#
# tmtoolkit is for text mining and topic models. metric_held_out_documents_wallach09 in topicmod/evaluate.py estimates
# the probability of held-out texts by importance sampling, as Wallach et al. (2009) describe it, after MATLAB code for
# one text, which draws a topic for each word of the text from the text's theta. The function takes a matrix of many
# texts, and puts the texts where the words were: it draws one topic for each text, gives it to all words of the text,
# and has one prior for all texts together. That is the probability of a mixture of unigrams with one topic per text,
# not of LDA, whose texts mix topics.
# Twelve texts of eight words are drawn from an LDA model with three topics. Exactly, by all 3^8 assignments, the topics
# give them a log probability that is 7 above that of equal words. By the metric it is 54 below. The metric agrees with
# the other model, computed exactly, where that can be counted. So who chooses the number of topics by it ("maximize")
# gets a model that is good at texts of one topic. With one text of one word it is right. The documentation says
# "estimated probability of held-out documents". No warning comes.
#
# Compute it for each text by itself, with a topic for each word. Seen in December 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tmtoolkit==0.12.0 gmpy2==2.2.1 pandas==2.3.3 \
    scipy==1.17.1 numpy==1.26.4
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import itertools
from importlib.metadata import version
from math import exp, lgamma, log

import numpy as np
from tmtoolkit.topicmod.evaluate import metric_held_out_documents_wallach09 as metric

print("tmtoolkit", version("tmtoolkit"), "numpy", np.__version__)
ALPHA, TOPICS, WORDS, TEXTS, LENGTH = 0.5, 3, 9, 12, 8


def prior(assigned):
    """The log probability of topics that were drawn from one theta, which has the prior Dirichlet(ALPHA)."""
    counts = np.bincount(assigned, minlength=TOPICS)
    return (lgamma(TOPICS * ALPHA) - lgamma(len(assigned) + TOPICS * ALPHA)
            + sum(lgamma(count + ALPHA) - lgamma(ALPHA) for count in counts))


def lda(texts, phi):
    """By all assignments of topics to the words of each text."""
    return sum(log(sum(exp(prior(z)) * np.prod(phi[z, text]) for z in
                       map(list, itertools.product(range(TOPICS), repeat=len(text))))) for text in texts)


def one_topic_per_text(texts, phi):
    """By all assignments of topics to the texts."""
    return log(sum(exp(prior(z)) * np.prod([np.prod(phi[topic, text]) for topic, text in zip(z, texts)])
                   for z in map(list, itertools.product(range(TOPICS), repeat=len(texts)))))


def estimate(texts, theta, phi):
    np.random.seed(0)
    counts = np.array([np.bincount(text, minlength=WORDS) for text in texts])
    return metric(counts, np.array(theta), phi, ALPHA, n_samples=20_000)


phi = np.full((TOPICS, WORDS), 0.02 / 6)                    # three words of its own for each topic
for topic in range(TOPICS):
    phi[topic, 3 * topic:3 * topic + 3] = 0.98 / 3
equal = np.full((TOPICS, WORDS), 1 / WORDS)

rng = np.random.default_rng(0)
thetas = rng.dirichlet([ALPHA] * TOPICS, TEXTS)
texts = [[rng.choice(WORDS, p=phi[rng.choice(TOPICS, p=theta)]) for _ in range(LENGTH)] for theta in thetas]
gain = lda(texts, phi) - lda(texts, equal)
seen = estimate(texts, thetas, phi) - estimate(texts, thetas, equal)
print(f"the topics are better than equal words by {gain:.1f}, by the metric {seen:.1f}")
assert gain > 6 and seen < -45

pure = [[0, 1, 0], [3, 4, 4], [1, 2, 2]]
for few, theta in ((texts[:3], thetas[:3]), (pure, [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.8, 0.1, 0.1]])):
    got, right, other = estimate(few, theta, phi), lda(few, phi), one_topic_per_text(few, phi)
    print(f"three texts: {got:.2f}, exactly {right:.2f}, with one topic per text {other:.2f}")
    assert abs(got - other) < 0.1 < 1 < abs(got - right)

got, right = estimate([[4]], [[0.3, 0.5, 0.2]], phi), lda([[4]], phi)
print(f"one text of one word: {got:.3f}, exactly {right:.3f}")
assert abs(got - right) < 0.05
PYTHON
echo "as seen"
