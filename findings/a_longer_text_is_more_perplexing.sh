#!/usr/bin/env bash
# textdescriptives 2.8.4: the perplexity of a text said twice is the square, of a long text infinite, and that of words
# nobody knows is 1, the lowest there is.
#
# The perplexity of a text is the exponential of the mean of -log p over its words: how many words a model hesitates
# between, so that a rare word raises it and the length does not matter. The component "information_theory" takes the
# sum of -p log p over all tokens of the text for the entropy, as if these were the outcomes of one distribution, and
# its exponential for the perplexity; "per_word_perplexity" divides that by the number of tokens in place of taking the
# root. p is a word's share of all text, so a rare word adds next to nothing, and each further "the" multiplies. With
# the package's own table of English, "the" twelve times has 3.5 and seven invented words have 1.0, where the
# definition gives 34 and 485 million. A sentence has 1.9, ten of it 557, a hundred of it 3e27, and 2e24 "per word",
# where the definition gives 872 for all three; from about 17,000 tokens on it is infinite. So as a feature beside
# BERT's output, or to filter a corpus, all three numbers are little else than the count of frequent words. The
# documentation gives the sum, calls it the text's Shannon entropy, higher for complex texts, and the last number
# normalised for length, fit to filter out text that is incoherent because it surprises. No warning comes.
#
# Take the mean of token.prob, which spaCy gives as a logarithm, as below. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check textdescriptives==2.8.4 spacy==3.8.18 \
    spacy-lookups-data==1.0.5 numpy==1.26.4
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
import spacy
import textdescriptives  # noqa: F401, it registers the component

print("textdescriptives", version("textdescriptives"), "spacy", spacy.__version__)
nlp = spacy.blank("en")
nlp.add_pipe("textdescriptives/information_theory")


def measure(text):
    """Entropy, perplexity and perplexity per word of the package, and the perplexity by its definition."""
    doc = nlp(text)
    log_p = np.array([token.prob for token in doc])
    numbers = doc._.entropy, doc._.perplexity, doc._.per_word_perplexity
    assert np.isclose(numbers[0], -(np.exp(log_p) * log_p).sum(), rtol=1e-6)
    return *numbers, np.exp(-log_p.mean()), len(doc)


PLAIN = "The cat sat on the mat and looked at the dog in the garden."
texts = {"a sentence": PLAIN, "said twice": f"{PLAIN} " * 2, "ten times": f"{PLAIN} " * 10,
         "a hundred times": f"{PLAIN} " * 100, "'the' twelve times": "the " * 12,
         "a lawyer's": "Notwithstanding any provision herein, indemnification obligations survive termination hereof.",
         "invented words": "qwzx blorf snarfle grumbix vlatzop krimmel dofter"}
seen = {name: measure(text.strip()) for name, text in texts.items()}
for name, (entropy, perplexity, per_word, right, length) in seen.items():
    print(f"{name} ({length} tokens): entropy {entropy:.3g}, perplexity {perplexity:.4g}, per word {per_word:.3g};"
          f" by the definition {right:,.0f}")
one, two, ten, hundred = (seen[name] for name in list(texts)[:4])
assert np.isclose(two[1], one[1] ** 2) and np.isclose(ten[1], one[1] ** 10, rtol=1e-3) and hundred[2] > 1e24
assert np.allclose([number[3] for number in (one, two, ten, hundred)], one[3])
invented, lawyer, the = seen["invented words"], seen["a lawyer's"], seen["'the' twelve times"]
assert 1 <= invented[1] < 1.000001 and invented[1] < lawyer[1] < one[1] < the[1]          # the order is turned round
assert invented[3] > 1e8 > lawyer[3] > 1e5 > one[3] > the[3]
with np.errstate(over="ignore"):
    long = measure(f"{PLAIN} " * 1_150)
print(f"{long[4]:,} tokens: perplexity {long[1]}, by the definition {long[3]:.0f}")
assert long[1] == long[2] == np.inf and 16_000 < long[4] < 18_000 and np.isclose(long[3], one[3])
PYTHON
echo "as seen"
