#!/usr/bin/env bash
# blingfire 0.1.8: its uncased BERT tokenizer knows no Korean word, and no word with an accent that is a character by
# itself; its XLM-R tokenizer reads such accents otherwise than SentencePiece.
#
# blingfire turns texts into ids of BERT and XLM-R by compiled tables, for speed. Uncased BERT, and so BERT Chinese, is
# to decompose each letter (NFD) and to drop the accents. blingfire has a table of single letters for that: é is e, but
# an e followed by the accent U+0301, the same letter by Unicode, is not. Such texts come from file names of macOS, from
# PDF files and from keyboards for Vietnamese. Then each word with an accent is [UNK]: "café" has the id of "cafe", and
# its other form 100. Korean syllables are decomposed into letters by NFD, which the vocabulary holds. blingfire
# doesn't do this, so each word of a usual Korean text is [UNK], while the decomposed text, which nobody writes, has the
# right ids. XLM-R composes letters before it cuts (NFKC); blingfire doesn't, and so "café" in the other form has two
# pieces that the model never saw for it. English texts, with which one compares tokenizers, are equal. No warning
# comes.
#
# Give unicodedata.normalize("NFD", text) without the characters of the category Mn to uncased BERT, and NFKC to XLM-R.
# Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check blingfire==0.1.8 numpy==2.4.6 sentencepiece==0.2.3
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import io
import os
import unicodedata
from importlib.metadata import version

import blingfire
import numpy as np
import sentencepiece

print("blingfire", version("blingfire"))
WORDS = ["café", "naïve", "über", "résumé", "Ångström", "français", "señor"]
KOREAN = "한국어 학교 나라 사람"


def reader(model, unknown):
    handle = blingfire.load_model(os.path.join(os.path.dirname(blingfire.__file__), model))

    def ids(text):
        found = blingfire.text_to_ids(handle, text, 128, unknown, True)
        return found[:np.flatnonzero(found)[-1] + 1].tolist()
    return ids


def without_accents(text):
    """What Google's BasicTokenizer makes of a word."""
    return "".join(letter for letter in unicodedata.normalize("NFD", text.lower())
                   if unicodedata.category(letter) != "Mn")


def both(word):
    composed, decomposed = (unicodedata.normalize(form, word) for form in ("NFC", "NFD"))
    assert composed != decomposed
    return composed, decomposed


for model in ("bert_base_tok.bin", "bert_chinese.bin"):
    ids = reader(model, 100)
    for word in WORDS:
        composed, decomposed = map(ids, both(word))
        assert composed == ids(without_accents(word)), "the composed word is wrong too"
        assert decomposed == [100], "the decomposed word is known now"
    usual, decomposed = map(ids, both(KOREAN))
    print(f"{model} {WORDS[0]}: {ids(WORDS[0])}, decomposed {ids(both(WORDS[0])[1])}; Korean: {usual}, decomposed "
          f"{decomposed[:6]}... of {len(decomposed)}")
    assert usual == [100] * 4, "Korean is known now"
    assert 100 not in decomposed and decomposed == ids(without_accents(KOREAN)), "the vocabulary has no Korean letters"
    assert unicodedata.normalize("NFD", KOREAN) == without_accents(KOREAN)

model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter([" ".join(WORDS)] * 20), model_writer=model,
                                         vocab_size=40, hard_vocab_limit=False, minloglevel=2)
pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
ids = reader("xlm_roberta_base.bin", 3)
other = 0
for word in WORDS:
    composed, decomposed = both(word)
    assert pieces.encode(composed) == pieces.encode(decomposed), "SentencePiece tells them apart"
    other += ids(composed) != ids(decomposed)
    assert ids(unicodedata.normalize("NFKC", decomposed)) == ids(composed)
print(f"xlm_roberta_base.bin: {other} of {len(WORDS)} words have other ids; {WORDS[0]}: {ids(both(WORDS[0])[0])}, "
      f"decomposed {ids(both(WORDS[0])[1])}")
assert other == len(WORDS), "the two forms are equal now"
PYTHON
echo "as seen"
