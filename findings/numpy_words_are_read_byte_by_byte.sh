#!/usr/bin/env bash
# tokenizers 0.23.3 with NumPy 2.4.6: an array of words is read byte by byte, so a Russian word becomes
# other characters, and each letter of an English word brings three characters more.
#
# With is_pretokenized=True, encode and encode_batch take the words of a text as a list, a tuple or a
# NumPy array. np.array(words) has the type <U6 or the like: four bytes for a letter. The words are read
# as if each byte were a letter of UTF-8. No error comes while all bytes are below 128, as in English and
# Russian; German ü raises a TypeError that asks for a list or a tuple. BERT's normalizer drops the zero
# bytes, so English has the right tokens there with wrong offsets. A byte-level tokenizer, as of RoBERTa
# or ModernBERT, keeps them: "the house" has 40 tokens. The same words in an array of objects are right,
# and so are texts, without is_pretokenized.
#
# Give array.tolist(). Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import tokenizers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

print("tokenizers", tokenizers.__version__, "numpy", np.__version__)
bert = Tokenizer(models.WordPiece({name: number for number, name in enumerate(
    ["[UNK]", "the", "house", "привет", "@825b"])}, unk_token="[UNK]"))
bert.normalizer = normalizers.BertNormalizer(lowercase=True)
bert.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
bytewise = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
bytewise.decoder = decoders.ByteLevel()


def read(tokenizer, words):
    encoding = tokenizer.encode(words, is_pretokenized=True)
    return encoding.tokens, encoding.offsets


def show(name, words, result):
    print(f"{name:<9} {type(words).__name__:<8} {' '.join(map(str, np.array(words)))}: {result}")
    return result


english, russian, german = ["the", "house"], ["Привет"], ["über"]
assert show("BERT", english, read(bert, english)) == (["the", "house"], [(0, 3), (0, 5)])
assert show("BERT", np.array(english), read(bert, np.array(english))) == (
    ["the", "house"], [(0, 9), (0, 17)])
assert show("BERT", russian, read(bert, russian))[0] == ["привет"]
assert show("BERT", np.array(russian), read(bert, np.array(russian))[0]) == ["@825b"]
objects = np.array(russian, dtype=object)
assert show("BERT", objects, read(bert, objects)[0]) == ["привет"]
assert show("byte BPE", english, len(read(bytewise, english)[0])) == 8
assert show("byte BPE", np.array(english), len(read(bytewise, np.array(english))[0])) == 40
assert len(bert.encode_batch(np.array(["the house", "the"]))[0].tokens) == 2
try:
    read(bert, np.array(german))
    raise AssertionError("an array of German words is read now")
except TypeError as error:
    show("BERT", np.array(german), f"TypeError: {error}")
PYTHON
echo "as seen"
