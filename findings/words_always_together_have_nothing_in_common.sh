#!/usr/bin/env bash
# tomotopy 0.14.0: for the coherences c_uci, c_npmi and c_v texts without a word of the topics don't count, so two words
# that only occur together get 0, and the window is one word shorter than it is called.
#
# The coherence of a topic is the mean association of its words: the logarithm of how much oftener two of them share a
# window of a text than they would by chance. By chance is meant in all windows of the corpus, after the paper of Röder
# and others of 2015, which the module names. tomotopy counts the windows that hold at least one of the words in
# `targets`, by default the top words of all topics, and divides by their number. The more texts a model leaves aside,
# the less is a coincidence worth. With two target words that occur in 10 of 1,000 texts, always together, the
# probability of each is 1 by this count, and their NPMI 0, where it is 1. Words that are independent get a negative
# value. One more topic changes the values of all others, so that models with 5 and 50 topics, or lists of 5 and 20
# words, can't be compared on the same corpus. The documentation says that only words in targets "are included in
# probability estimation", and the author, in issue 121 of the project, that this saves time and to give just the words
# of the topics.
#
# In texts longer than the window two words share a window of 10 only if fewer than 8 words lie between them, as in one
# of 9. With window_size=3 "a x b" is no coincidence at all. u_mass, which counts whole texts and where the total
# cancels, is right.
#
# Give all words of the corpus as targets, and a window_size of one more, which comes near the definition. Or take
# gensim's CoherenceModel. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tomotopy==0.14.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import itertools
from importlib.metadata import version

import numpy as np
import tomotopy
from tomotopy.coherence import Coherence

print("tomotopy", version("tomotopy"))
rng = np.random.default_rng(0)


def coherence(texts, words, kind, targets=None, window=0):
    corpus = tomotopy.utils.Corpus()
    for text in texts:
        corpus.add_doc(text)
    return Coherence(corpus, coherence=kind, targets=targets or words, window_size=window).get_score(words=words)


def definition(texts, words, kind, window=10, targets=None):
    """The mean association of all pairs; with targets, windows without one of them are left out."""
    windows = [set(text[start:start + window]) for text in texts for start in range(max(1, len(text) - window + 1))]
    if targets:
        windows = [found for found in windows if found & set(targets)]

    def share(*pair):
        return sum(set(pair) <= found for found in windows) / len(windows)

    values = []
    for one, other in itertools.combinations(words, 2):
        both = share(one, other) + 1e-12
        value = np.log(both / (share(one) * share(other)))
        values.append(value if kind == "c_uci" else value / -np.log(both))
    return float(np.mean(values))


pair = [["apple", "pear"] + ["x"] * 5] * 10 + [["y"] * 7] * 990
seen = coherence(pair, ["apple", "pear"], "c_uci")
print(f"two words always together: c_uci {seen:.3f}, by the definition",
      f"{definition(pair, ['apple', 'pear'], 'c_uci'):.3f}; c_npmi",
      f"{coherence(pair, ['apple', 'pear'], 'c_npmi'):.3f}, by the definition",
      f"{definition(pair, ['apple', 'pear'], 'c_npmi'):.3f}")
assert abs(seen) < 1e-6 and np.isclose(definition(pair, ["apple", "pear"], "c_uci"), np.log(100)), "all texts count now"
value = coherence(pair, ["apple", "pear"], "c_npmi")
assert abs(value) < 1e-6 and definition(pair, ["apple", "pear"], "c_npmi") > 0.999

rare = [[word for word in ("apple", "pear", "plum") if rng.uniform() < 0.1] + ["x"] * 4 for _ in range(1000)]
words = ["apple", "pear", "plum"]
for kind in ("c_uci", "c_npmi"):
    some, every = coherence(rare, words, kind), coherence(rare, words, kind, targets=words + ["x"])
    right, left_out = definition(rare, words, kind), definition(rare, words, kind, targets=words)
    print(f"independent words, {kind}: {some:.3f}, with all words as targets {every:.3f},",
          f"by the definition {right:.3f}")
    assert np.isclose(some, left_out, atol=1e-6) and np.isclose(every, right, atol=1e-6)
    assert abs(right) < 0.2 and some < right - 0.3, "all texts count now"
for kind in ("c_uci", "c_npmi", "c_v"):
    few, many = coherence(rare, words, kind), coherence(rare + [["y"] * 7] * 9000, words, kind)
    print(f"{kind}: {few:.4f}, and {many:.4f} with 9,000 more texts of other words")
    assert few == many, "all texts count now"

for window in (3, 10):
    for gap in range(1, window + 1):
        text = ["x"] * 20 + ["apple"] + ["x"] * (gap - 1) + ["pear"] + ["x"] * 20
        seen = coherence([text], ["apple", "pear"], "c_uci", ["apple", "pear", "x"], window)
        right = definition([text], ["apple", "pear"], "c_uci", window)
        if gap >= window - 2:
            print(f"window of {window}, pear is word {gap} after apple: {seen:.2f}, by the definition {right:.2f}")
        assert (seen > -10) == (gap < window - 1), "the window is as long as it is called now"
        assert (right > -10) == (gap < window)

texts = [rng.choice(["apple", "pear", "plum", "x"], 60, p=[0.005, 0.005, 0.005, 0.985]).tolist() for _ in range(300)]
right = definition(texts, words, "c_npmi")
near, far = coherence(texts, words, "c_npmi", words + ["x"], 11), coherence(texts, words, "c_npmi")
print(f"long texts, c_npmi: {far:.3f}, all words as targets and a window of 11 {near:.3f},",
      f"by the definition {right:.3f}")
assert abs(near - right) < 0.01 < 0.05 < abs(far - right)

whole = [rng.choice(["a", "b", "c", "d"], 12).tolist()[:rng.integers(1, 5)] for _ in range(300)]
counts = np.array([["a" in text, "b" in text] for text in whole])
seen = coherence(whole, ["a", "b"], "u_mass")
assert np.isclose(seen, np.log(counts.all(1).sum() / counts[:, 0].sum()), atol=1e-6), "u_mass is not right"
PYTHON
echo "as seen"
