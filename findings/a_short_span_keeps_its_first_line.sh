#!/usr/bin/env bash
# datatrove 0.10.1: with min_words_to_remove_span, SentenceDedupFilter keeps the first sentence of a short repeated span
# and drops the others, and measures long spans by their first sentence.
#
# datatrove cleans corpora for pre-training. Sentence deduplication removes three sentences in a row that have been seen
# before. min_words_to_remove_span=n is for those that cost little: a removed span of fewer than n words is put back.
# The sentences of a span are collected for that, but once the first is in the list no other is added. So the words of
# the first sentence are counted for those of the span, and it alone is put back. A span of 13 words with n=20
# comes back as its first 4 words: what was to be kept whole is cut, and a torso without an end stands in the text.
# A span of 54 words, which is to be removed, is short by its first sentence and leaves that one behind. The file of
# what was removed shows the whole span. The counters count all kept lines as kept. No warning comes.
#
# Leave it at 0, the default. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check datatrove==0.10.1 spacy==3.8.18 xxhash==3.8.2 \
    nltk==3.10.4 tokenizers==0.23.3 regex numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2> "$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

from datatrove.data import Document
from datatrove.pipeline.dedup import SentenceDedupFilter, SentenceDedupSignature, SentenceFindDedups
from datatrove.pipeline.dedup.sentence_dedup import SentDedupConfig

print("datatrove", version("datatrove"))
short = ["The harbour opens early.", "Ships come from the north.", "Bread is sold there."]
long = ["Tides are written down here.", "Every keeper notes " + "the hour, the height and the wind " * 3 + "in a book.",
        "Every morning somebody reads " + "what was written there before " * 3 + "and signs it."]


def texts(span):
    first = ["Anna wrote about the old town for many years.", *span, "Nobody answered her letters."]
    second = ["Ben drew maps of the coast and of the islands.", *span, "His maps were lost in a fire."]
    return [Document(text="\n".join(lines), id=str(number)) for number, lines in enumerate((first, second))]


def deduplicate(span, words, name):
    """The second text after the three stages, which work on lines."""
    config = SentDedupConfig(n_sentences=3, split_sentences=False, min_doc_words=1, min_num_sentences=1,
                             min_words_to_remove_span=words)
    SentenceDedupSignature(f"{name}/signatures", config=config).run(texts(span))
    SentenceFindDedups(f"{name}/signatures", f"{name}/duplicates", config=config).run()
    first, second = SentenceDedupFilter(f"{name}/duplicates", config=config).run(texts(span))
    assert first.text == texts(span)[0].text, "the first text has lost something"
    return second.text.split("\n")[1:-1]


for name, span in (("short", short), ("long", long)):
    total = sum(len(line.split()) for line in span)
    results = {words: deduplicate(span, words, f"{name}{words}") for words in (0, 20)}
    print(f"a repeated span of {total} words; least length 0 leaves {results[0]}, 20 leaves {results[20]}")
    assert results[0] == [] and results[20] == span[:1], "more or less than the first sentence is left now"
    assert (total < 20) == (name == "short")
PYTHON
echo "as seen"
