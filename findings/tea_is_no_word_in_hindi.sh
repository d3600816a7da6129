#!/usr/bin/env bash
# bm25s 0.3.16: words of Hindi, Bengali, Tamil and other Indian languages are cut at each vowel sign, and the
# pieces of one letter are dropped.
#
# The tokenizer takes two or more letters or digits in a row as a word. Python's \w does not count the signs that
# stand for vowels and join consonants, which most words of these scripts have, nor Arabic and Hebrew vowel
# points. A short word leaves nothing: a search for "tea" gives every document the score 0, also the one about
# tea, and k of them come back all the same. Longer words leave a piece or two, which other words share. So BM25
# as the baseline of a retriever, for hard negatives or beside vectors in a hybrid search is far below what it
# should be, without a warning. In Thai the pieces are neither words nor syllables. TfidfVectorizer of scikit-
# learn 1.9.1 has the same pattern and result; rank_bm25 leaves the words to the user.
#
# Pass a token_pattern of what is no blank and no punctuation, as in the script. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    bm25s==0.3.16 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
PYTHONIOENCODING=utf-8 "$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import bm25s
from sklearn.feature_extraction.text import TfidfVectorizer

print("bm25s", version("bm25s"), "scikit-learn", version("scikit-learn"))
TEXTS = {"चाय एक लोकप्रिय पेय है।": "tea is a popular drink", "दिल्ली भारत की राजधानी है।": "Delhi is the capital of India",
         "गंगा नदी उत्तर भारत में है।": "the river Ganges is in northern India", "हिमालय एक पर्वत है।": "the Himalaya is a mountain"}
DEFAULT, WORDS = r"(?u)\b\w\w+\b", r"[^\s।.,;:!?()]+"


def tokens(text, pattern=DEFAULT):
    return bm25s.tokenize([text], stopwords=None, token_pattern=pattern, return_ids=False, show_progress=False)[0]


def search(query, texts, pattern=DEFAULT):
    """The 2 best of `texts` and their scores."""
    index = bm25s.BM25()
    index.index([tokens(text, pattern) for text in texts], show_progress=False)
    places, scores = index.retrieve([tokens(query, pattern)], k=2, show_progress=False)
    print(repr(query), "->", [f"{texts[place]} {score:.2f}" for place, score in zip(places[0], scores[0])])
    return places[0].tolist(), scores[0].tolist()


for text in TEXTS:
    print(text, tokens(text), tokens(text, WORDS))
assert tokens("दिल्ली भारत की राजधानी है।") == ["रत", "जध"] and tokens("चाय") == [], "other tokens than seen"
assert tokens("দিল্লি ভারতের রাজধানী") == ["রত", "জধ"] and tokens("தேநீர்") == [], "Bengali or Tamil is read otherwise"
assert sorted(TfidfVectorizer().fit(["दिल्ली भारत की राजधानी है।"]).vocabulary_) == ["जध", "रत"]
assert tokens("tea is a drink") == ["tea", "is", "drink"]

places, scores = search("चाय", list(TEXTS))
assert scores == [0, 0], "the search finds tea now"
places, scores = search("चाय", list(TEXTS), WORDS)
assert places[0] == 0 and scores[0] > 0, "the longer pattern does not help"
places, scores = search("tea", list(TEXTS.values()))
assert places[0] == 0 and scores[0] > 0, "English is wrong too"
PYTHON
echo "as seen"
