#!/usr/bin/env bash
# tmtoolkit 0.12.0: an n-gram model that backs off to shorter n-grams divides each of them by itself, so any pair that
# it saw is certain, and a rare next word is drawn as often as a frequent one.
#
# NGramModel counts all n-grams up to n. P(word | words before) is the count of all these words over the count of the
# words before; predict and generate_sequence may back off to fewer words before where nothing is known (backoff=True,
# the default of generate_sequence), and prob takes shorter texts as well. _prob_smooth in ngrammodels.py takes the
# first n - 1 words of the n-gram for the words before, with the n of the model. A shorter n-gram has no more words
# than that, so it is divided by its own count: in a trigram model P(man | old) is 1 for each pair that was seen. The
# smoothing constant hides it in part: with the default 1 it is (count + 1) / (count + size of the vocabulary), near 1
# for frequent pairs. So after backing off the most probable word has a probability near 1, and "man", which follows
# "old" in half of the cases, "house" and "tree", in a quarter each, are drawn a third of the time each. A bigram model
# of the same texts is right. The documentation speaks of P(t_i|t_{i-n+1}, ..., t_{i-1}) throughout. No warning comes.
#
# Fit a model of each n, and back off from one to the other. Seen in December 2026 with Python 3.11. The script fails
# if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tmtoolkit==0.12.0 spacy==3.8.7 loky==3.5.6 \
    typer==0.16.0 click==8.1.8 pandas==2.3.3 scipy==1.17.1 numpy==1.26.4
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import random
from collections import Counter
from importlib.metadata import version

from tmtoolkit.ngrammodels import NGramModel

print("tmtoolkit", version("tmtoolkit"), "spacy", version("spacy"))
DRAWS = 4000
texts = [text.split() for text in ("the old man sleeps", "the old man reads", "the old house stands",
                                   "the old tree stands", "the young man reads")] * 400
pairs = Counter(pair for text in texts for pair in zip(text, text[1:]))
before = Counter(word for text in texts for word in text)


def model(n, k):
    return NGramModel(n, add_k_smoothing=k, tokens_as_hashes=False).fit(texts)


for k in (0, 1.0):
    two, three, four = (model(n, k) for n in (2, 3, 4))
    for pair in (("old", "man"), ("old", "tree"), ("the", "young")):
        right = (pairs[pair] + k) / (before[pair[0]] + k * two.vocab_size_)
        seen = [m.prob(pair, log=False) for m in (two, three, four)]
        print(f"constant {k}: P({pair[1]} | {pair[0]}) is {right:.3f}, with n=2, 3, 4 it is {seen}")
        assert abs(seen[0] - right) < 1e-9 and all(p == 1 if k == 0 else p > 0.97 for p in seen[1:])
    triple = ("old", "man", "reads")
    assert abs(three.prob(triple, log=False) - 0.5) < 0.01 < 0.4 < four.prob(triple, log=False) - 0.5

    shares = {}
    random.seed(0)
    for name, m, given in (("n=2", two, ("old",)), ("n=3", three, ("very", "old"))):
        drawn = Counter(next(m.generate_sequence(given, until_n=1)) for _ in range(DRAWS))
        shares[name] = [drawn[word] / DRAWS for word in ("man", "house", "tree")]
        print(f"    {name} draws man, house, tree after", *given, shares[name], m.predict(given, True, 1))
    for name, right in (("n=2", (0.5, 0.25, 0.25)), ("n=3", (1 / 3,) * 3)):
        assert all(abs(share - part) < 0.04 for share, part in zip(shares[name], right))
    assert abs(two.predict(("old",), True, 1)[1] - 0.5) < 0.01 and three.predict(("very", "old"), True, 1)[1] > 0.97
PYTHON
echo "as seen"
