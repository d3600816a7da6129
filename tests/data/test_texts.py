"""Lines as ids, beside what google-research/bert extract_features.py does with one line."""

import gzip
import random
import re

import numpy as np
import pytest

from bert_tf.data.text.vectors import Texts, read_lines
from bert_tf.errors import InputError
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

TOKENIZER = WordpieceTokenizer(Vocabulary(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##a", "##b", "|"]))


def original(line, max_seq_length):
    """input_ids and segment_ids of a line, token by token."""
    match = re.match(r"^(.*) \|\|\| (.*)$", line.strip())
    texts = match.groups() if match else (line.strip(),)
    a, b = ([*map(TOKENIZER.encode, texts)] + [[]])[:2]
    room = max_seq_length - (3 if b else 2)
    while len(a) + len(b) > room:
        (a if len(a) > len(b) else b).pop()
    vocabulary = TOKENIZER.vocabulary
    ids = [vocabulary.cls_id, *a, vocabulary.sep_id] + ([*b, vocabulary.sep_id] if b else [])
    return ids, [0] * (len(a) + 2) + [1] * (len(b) + 1 if b else 0)


@pytest.mark.parametrize("seed", range(30))
def test_every_line_is_what_the_original_makes_of_it(seed):
    rng = random.Random(seed)
    parts = ["a", "b", " ", "|||", " ||| ", "\x00", "\u2028"]
    lines = ["".join(rng.choices(parts, k=rng.randrange(14))) for _ in range(40)]
    length = rng.randrange(3, 14)
    texts = Texts(lines, TOKENIZER, length)
    rows = np.array(rng.sample(range(40), 17))
    assert texts.cut == sum(original(line, length) != original(line, 99) for line in lines)
    packed = texts.pack(rows)
    assert packed["input_ids"].shape == (17, texts.lengths[rows].max())
    for row, ids, mask, segments in zip(rows, *packed.values()):
        expected = original(lines[row], length)
        count = len(expected[0])
        assert texts.lengths[row] == count == mask.sum() and all(mask[:count])
        assert (ids[:count].tolist(), segments[:count].tolist()) == expected
        assert not ids[count:].any() and not segments[count:].any()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("text, lines", [
    ("a\n\nb", ["a", "", "b"]), ("a\n\n", ["a", ""]), ("\n", [""]), ("", []),
    ("a\u2028b\rc\r\nd\n", ["a\u2028b\rc\r", "d"]), ("\ufeffa\n\ufeffb", ["a", "\ufeffb"])])
@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_each_line_counts(tmp_path, pack, text, lines, count):
    (tmp_path / "f").write_bytes(pack(text.encode()))
    pieces = list(read_lines(tmp_path / "f", count))
    assert [line for piece in pieces for line in piece] == lines
    assert all(len(piece) == count for piece in pieces[:-1]) and all(pieces)


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "f").write_bytes(b"a\n" * 10 + b"b\xff\n")
    with pytest.raises(InputError, match="f, line 11, byte 2 is not UTF-8"):
        list(read_lines(tmp_path / "f", 4))
