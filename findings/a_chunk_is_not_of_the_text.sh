#!/usr/bin/env bash
# chonkie 1.7.0: with BERT's tokenizer, TokenChunker gives chunks that are not in the text, with offsets that drift.
#
# chonkie cuts documents into chunks for an encoder, and takes the encoder's tokenizer to count. A chunk has a text
# and the two offsets of its place in the document. TokenChunker encodes the document, cuts the list of ids and
# decodes each part. BERT's tokenizer does not give back what it read: the chunk is in lower case without accents,
# has blanks around hyphens and apostrophes, and lacks what is no token, here the currency sign. The
# offsets are the sums of the lengths of such chunks, so they drift: document[start:end] is another text, labels and
# answers are looked for in the wrong place, and here the last chunk ends 76 characters behind the document's end.
# A cased model or a word search gets lower-case passages. With chonkie's own tokenizer "word" the texts are right,
# but each chunk has lost the blank before the next, so offsets drift by one each. No warning comes.
# SentenceChunker and RecursiveChunker cut the document itself and are right with the same tokenizer.
#
# Take RecursiveChunker(tokenizer, chunk_size=n). Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check chonkie==1.7.0 tokenizers==0.23.3 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from chonkie import RecursiveChunker, SentenceChunker, TokenChunker
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

print("chonkie", version("chonkie"), "tokenizers", version("tokenizers"))
DOCUMENT = "The café in Zürich isn't open. Mr. O'Neill-Smith pays ₿5 or 12.50 CHF for it. " * 20
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
letters = list("abcdefghijklmnopqrstuvwxyz0123456789")
words = ["the", "cafe", "in", "zurich", "isn", "open", "mr", "neill", "smith", "pays", "or", "for", "it", "chf"]
pieces = special + letters + ["##" + letter for letter in letters] + words + list(".,'-")
bert = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
bert.normalizer = normalizers.BertNormalizer(lowercase=True)
bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
bert.decoder = decoders.WordPiece()
bert.add_special_tokens(special)

results = {}
for name, chunker in (("TokenChunker, BERT", TokenChunker(bert, chunk_size=64)),
                      ("TokenChunker, word", TokenChunker("word", chunk_size=16)),
                      ("RecursiveChunker, BERT", RecursiveChunker(bert, chunk_size=64)),
                      ("SentenceChunker, BERT", SentenceChunker(bert, chunk_size=64))):
    chunks = chunker.chunk(DOCUMENT)
    results[name] = (sum(chunk.text in DOCUMENT for chunk in chunks),
                     sum(DOCUMENT[chunk.start_index:chunk.end_index] == chunk.text for chunk in chunks), len(chunks))
    in_text, at_offsets, count = results[name]
    print(f"{name:<23} {count} chunks, {in_text} of them in the document, {at_offsets} at their offsets; "
          f"the last ends at {chunks[-1].end_index} of {len(DOCUMENT)}")
    if name == "TokenChunker, BERT":
        print("  last chunk:", repr(chunks[-1].text[-60:]))
        print("  its place: ", repr(DOCUMENT[chunks[-1].start_index:chunks[-1].end_index][-60:]))
        assert "₿" not in "".join(chunk.text for chunk in chunks) and "cafe" in chunks[0].text
in_text, at_offsets, count = results["TokenChunker, BERT"]
assert in_text == at_offsets == 0 and count > 5, "chunks are in the document now"
in_text, at_offsets, count = results["TokenChunker, word"]
assert in_text == count and at_offsets == 1, "offsets of words are otherwise"
for name in ("RecursiveChunker, BERT", "SentenceChunker, BERT"):
    assert len(set(results[name])) == 1, "the others are wrong too"
PYTHON
echo "as seen"
