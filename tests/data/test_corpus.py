"""Pieces: whole documents, nothing lost, the same whatever the blocks they are read in."""

import gzip
import random

import pytest

from bert_tf.data.text import corpus
from bert_tf.errors import InputError


def write_files(folder, texts):
    paths = [folder / f"{index}.txt" for index in range(len(texts))]
    for path, text in zip(paths, texts):
        path.write_bytes(text)
    return paths


def documents(text):
    """The documents of a text, each a list of its lines."""
    found = [[]]
    for line in text.split(b"\n"):
        if line.strip():
            found[-1].append(line)
        else:
            found.append([])
    return [document for document in found if document]


def joined(texts):
    """The files as one text: each ends with a newline."""
    return b"".join(text if not text or text.endswith(b"\n") else text + b"\n" for text in texts)


def random_text(rng):
    parts = [b"\n", b"\n\n", b"a", b"bc", b" ", b"\r\n", b"\n\t \n", b"\n" + b" " * 70 + b"\n"]
    return b"".join(rng.choice(parts) for _ in range(rng.randint(0, 60)))


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_random_texts_at_all_sizes(tmp_path, monkeypatch, block):
    rng = random.Random(1)
    for _ in range(40):
        texts = [random_text(rng) for _ in range(rng.randint(1, 3))]
        paths, whole = write_files(tmp_path, texts), joined(texts)
        for size in (1, 2, 3, 10, 30, 100, 1000):
            monkeypatch.setattr(corpus, "_BLOCK", 1 << 20)
            expected = list(corpus.read_pieces(paths, size))
            monkeypatch.setattr(corpus, "_BLOCK", block)
            pieces = list(corpus.read_pieces(paths, size))
            assert pieces == expected
            assert b"".join(pieces) == whole
            assert [d for piece in pieces for d in documents(piece)] == documents(whole)
            for piece in pieces:
                assert len(piece) <= size or len(documents(piece)) <= 1
            if len(whole) <= size:
                assert len(pieces) == (whole != b"")


def test_documents_longer_than_the_search_window(tmp_path):
    text = (b"x" * 99 + b"\n") * 3000 + b"\n" + b"short\n\n" * 3 + b"y\n" * 200000
    pieces = list(corpus.read_pieces(write_files(tmp_path, [text]), 200_000))
    assert [len(piece) for piece in pieces] == [300_001, 21, 400_000]
    assert list(corpus.read_pieces(write_files(tmp_path, [text]), 1 << 20)) == [text]


def test_gzip_is_unpacked(tmp_path):
    texts = [b"a\n\nb\n", b"c"]
    paths = write_files(tmp_path, [gzip.compress(texts[0]), texts[1]])
    assert b"".join(corpus.read_pieces(paths, 3)) == b"a\n\nb\nc\n"


@pytest.mark.parametrize("damage", [
    lambda data: data[:-6], lambda data: data[:15], lambda data: data[:40] + b"\0" * 20 + data[60:],
    lambda data: data + b"more"])
def test_damaged_gzip_is_named(tmp_path, damage):
    data = gzip.compress(random.Random(1).randbytes(500))
    path, = write_files(tmp_path, [damage(data)])
    with pytest.raises(InputError, match="0.txt: can't be read"):
        list(corpus.read_pieces([path], 100))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_bad_line_is_located(tmp_path, pack):
    texts = [b"good\n\n", "göod\n".encode() + b"x\nab\xc3(\n"]
    paths = write_files(tmp_path, [pack(text) for text in texts])
    *_, piece = corpus.read_pieces(paths, 6)
    with pytest.raises(InputError, match="1.txt, line 3, byte 3 is not UTF-8 .0xc3"):
        corpus.decode(piece, paths)


def test_lines_end_at_newlines_only(tmp_path):
    assert corpus.decode("a\u2028b\x85c\x0bd\ne".encode(), []) == ["a\u2028b\x85c\x0bd", "e"]
