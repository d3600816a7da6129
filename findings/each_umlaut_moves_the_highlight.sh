#!/usr/bin/env bash
# tantivy 0.27.0: the offsets of found words in a snippet count bytes, so each ü or é before them moves them by one.
#
# A search returns a snippet of each document with the places of the found words, and tantivy's guide for Python cuts
# them out by fragment[highlight.start:highlight.end]. It is how a reader marks the words, and how answers of a word
# search are taken over as spans for training or evaluation. For English the result is right. The offsets are those
# of the fragment in UTF-8: a German, French or Polish letter with a mark before the word moves the span by one
# letter, a Chinese one by two. In Russian they are nearly twice too large, so most spans are empty. fragment_range,
# the place of the fragment in the document, counts bytes too. to_html() marks the right words. No error comes, as
# Python cuts a text at any offset.
#
# Cut the bytes: fragment.encode()[start:end].decode(). Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tantivy==0.27.0
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import tantivy

print("tantivy", version("tantivy"))
CASES = {"days": ["The old man fished for eighty days alone.", "days"],
         "freitag": ["Für Bücher über Füße ist der Freitag der beste Tag.", "ag der "],
         "réponse": ["La clé élevée est la réponse à tout.", "onse à t"],
         "дней": ["Старик рыбачил один восемьдесят дней.", ""]}
for word, (text, seen) in CASES.items():
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer()
    writer.add_document(tantivy.Document(body=text))
    writer.commit()
    index.reload()
    searcher, query = index.searcher(), index.parse_query(word, ["body"])
    snippet = tantivy.SnippetGenerator.create(searcher, query, index.schema, "body").snippet_from_doc(
        searcher.doc(searcher.search(query, 1).hits[0][1]))
    fragment, (place,) = snippet.fragment(), snippet.highlighted()
    found, in_bytes = fragment[place.start:place.end], fragment.encode()[place.start:place.end].decode()
    print(f"{word:<8} at {place.start}:{place.end}, by the guide {found!r}, in bytes {in_bytes!r}; {snippet.to_html()}")
    assert in_bytes.lower() == word and f"<b>{in_bytes}</b>" in snippet.to_html(), "the bytes are wrong, too"
    assert found == seen, f"not {seen!r}"
PYTHON
echo "as seen"
