#!/usr/bin/env bash
# keybert 0.9.0: of the candidates that are given to extract_keywords those of several words are dropped, as in the
# guide's own example, where YAKE makes the candidates.
#
# candidates are "keywords/keyphrases to use instead of extracting them from the document". They become the vocabulary
# of a CountVectorizer, which counts only n-grams of keyphrase_ngram_range, and its default is (1, 1), so that no phrase
# is ever found in a text. YAKE gives phrases of up to three words and sorts the phrases to the front: of 42 candidates
# from the text here, all of which stand in it, 20 come into question, and the best of them is another than when
# all count. With nothing but phrases as candidates all texts get an empty list. Stop words are taken out before that
# too, so that "boards the container" is not found with the right range either. Texts can lose all keywords in
# another way: with use_maxsum a text that has fewer candidates than top_n, which is 5, gets none at all
# (max_sum_distance returns []), while the default and use_mmr give it those that it has. No warning comes.
#
# Give keyphrase_ngram_range=(1, 3) and stop_words=None with candidates, and a top_n that the shortest text can fill.
# Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check yake==0.7.3 scikit-learn==1.9.1 numpy==2.4.6 \
    rich==15.0.0 packaging
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps keybert==0.9.0
"$folder/venv/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import yake
from keybert import KeyBERT
from keybert.backend import BaseEmbedder
from sklearn.feature_extraction.text import HashingVectorizer

print("keybert", version("keybert"), "yake", version("yake"), "scikit-learn", version("scikit-learn"))


class Embedder(BaseEmbedder):
    def embed(self, documents, verbose=False):
        vectorizer = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4), n_features=256)
        return vectorizer.transform(documents).toarray()


text = ("The harbour pilot boards the container ship outside of the harbour before dawn. A tug boat waits for the "
        "container ship at the inner basin. The harbour pilot and the tug boat crew talk by radio. When the tide "
        "turns, the lock gate opens and the container ship moves slowly into the inner basin.")
candidates = [candidate[0] for candidate in yake.KeywordExtractor(top=50).extract_keywords(text)]
phrases = [candidate for candidate in candidates if " " in candidate]
assert all(candidate in text for candidate in candidates)
model = KeyBERT(model=Embedder())
with warnings.catch_warnings():
    warnings.simplefilter("error")
    found = model.extract_keywords(text, candidates, top_n=50)
    wide = model.extract_keywords(text, candidates, keyphrase_ngram_range=(1, 3), top_n=50)
    whole = model.extract_keywords(text, candidates, keyphrase_ngram_range=(1, 3), stop_words=None, top_n=50)
    nothing = model.extract_keywords([text, text], phrases)
print(f"{len(candidates)} candidates from YAKE, {len(phrases)} of them phrases: {len(found)} come into question,"
      f" {len(wide)} with keyphrase_ngram_range=(1, 3), {len(whole)} with stop_words=None too")
print("best:", [keyword for keyword, _ in found[:3]], "of all:", [keyword for keyword, _ in whole[:3]])
print("phrases alone:", nothing)
assert len(found) == len(candidates) - len(phrases) and len(whole) == len(candidates) > len(wide), "phrases count now"
assert nothing == [[], []] and found[0][0] != whole[0][0]

texts = ["The harbour closes at night.", text, "Night tide."]
counts = {}
for options in ({}, {"use_mmr": True}, {"use_maxsum": True}):
    counts[str(options)] = [len(keywords) for keywords in model.extract_keywords(texts, **options)]
    print("number of keywords with", options or "the default", counts[str(options)])
assert counts["{}"] == counts["{'use_mmr': True}"] == [3, 5, 2], counts
assert counts["{'use_maxsum': True}"] == [0, 5, 0], "short texts have keywords now"
PYTHON
echo "as seen"
