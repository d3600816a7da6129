"""Pieces: whole documents, nothing lost, the same whatever the blocks they are read in."""

import gzip
import random

import pytest

from bert_tf.data.text import corpus, units
from bert_tf.errors import InputError
from bert_tf.files import reading


def write_files(folder, texts):
    paths = [folder / f"{index}.txt" for index in range(len(texts))]
    for path, text in zip(paths, texts):
        path.write_bytes(text)
    return paths


def documents(text):
    found = [[]]
    for line in text.split(b"\n"):
        if line.strip():
            found[-1].append(line)
        else:
            found.append([])
    return [document for document in found if document]


def joined(texts, end=b""):
    """The files as one text: each ends with a newline."""
    return b"".join(text + b"\n" * (not (text or b"\n").endswith(b"\n")) + end for text in texts)


def random_text(rng):
    parts = [b"\n", b"\n\n", b"a", b"bc", b" ", b"\r\n", b"\n\t \n", b"\n" + b" " * 70 + b"\n",
             b"\n-DOCSTART-\n"]
    return b"".join(rng.choice(parts) for _ in range(rng.randint(0, 60)))


def cut_whole(text, size, boundary, window):
    """The pieces of a text that is in memory, by the rule alone."""
    found = []
    while len(text) > size:
        cut, width = None, window
        while cut is None and width < 8 * (size + window):
            ends = [end.end() for end in boundary.finditer(text, max(0, size - width), size)]
            cut, width = (ends[-1] if ends else None), 8 * width
        if cut is None:
            start = size
            for _ in range(3):
                start = max(text.rfind(b"\n", 0, start), 0)
            match = boundary.search(text, start)
            cut = match.end() if match else len(text)
        found.append(text[:cut])
        text = text[cut:]
    return found + [text] * bool(text)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("block, window", [(1, 4), (7, 1 << 16), (1 << 20, 16)])
@pytest.mark.parametrize("by_file, boundary", [
    (False, corpus.BLANK_LINE), (True, corpus.BLANK_LINE), (True, units.BOUNDARY)])
def test_random_texts_at_all_sizes(tmp_path, monkeypatch, block, window, by_file, boundary, packed):
    rng = random.Random(1)
    monkeypatch.setattr(corpus, "_BLOCK", block)
    monkeypatch.setattr(corpus, "_WINDOW", window)
    monkeypatch.setenv("BERT_TF_STAGE_FOLDER", str(tmp_path / "copies"))
    for _ in range(4):
        texts = [random_text(rng) for _ in range(rng.randint(1, 3))]
        paths = write_files(tmp_path, [gzip.compress(text) if packed and rng.random() < 0.7 else
                                       text for text in texts])
        whole = joined(texts, corpus.FILE_END_BYTES * by_file)
        for size in (1, 2, 3, 10, 30, 100, 1000):
            pieces = list(corpus.read_pieces(paths, size, by_file, boundary))
            assert pieces == cut_whole(whole, size, boundary, window)
            if by_file:
                continue
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


def test_little_of_a_text_is_read_to_find_its_pieces(tmp_path, monkeypatch):
    rng = random.Random(1)
    texts = [b"\n".join(rng.randbytes(rng.randint(1, 9000)).hex().encode() + b"\n"
                        for _ in range(900)) for _ in range(3)]
    paths, read = write_files(tmp_path, texts), []
    monkeypatch.setattr(corpus.files, "read_range", lambda path, start, end: (
        read.append(end - start) or reading.read_range(path, start, end)))
    found = list(corpus.find_pieces(paths, 8_000_000))
    assert len(found) == 4 and sum(map(corpus.size, found)) == len(joined(texts))
    assert sum(read) <= 3 * (1 << 16) + 3 < 0.01 * sum(map(len, texts))


def test_a_file_that_shrinks_is_named(tmp_path):
    path, = write_files(tmp_path, [b"a\n\nb\n"])
    piece, = corpus.find_pieces([path], 100)
    path.write_bytes(b"a\n")
    with pytest.raises(InputError, match="0.txt became shorter while it was read"):
        corpus.read_piece(piece)


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


def test_parquet_is_not_to_be_converted_to_utf_8(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1\x92")
    with pytest.raises(InputError, match="0x92.: make text of it with bert-extract-text"):
        corpus.decode(b"PAR1\x92", [str(tmp_path / "a.parquet")])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_where_a_file_begins_is_no_text(tmp_path, pack):
    texts = ["\ufeffa\n\n", "\ufeff", "\ufeffb", "\ufeff \r\nc\n", "", "\ufeff\n\n\ufeffd\n\ufeff"]
    paths = write_files(tmp_path, [pack(text.encode()) for text in texts])
    for size in (1, 3, 6, 9, 99):
        pieces = list(corpus.read_pieces(paths, size))
        assert b"".join(pieces).decode() == "a\n\nb\nc\n\n\ufeffd\n\ufeff\n"
        found = corpus.find_pieces(paths, size)
        assert [corpus.without_marks(piece, corpus.read_piece(piece)) for piece in found] == pieces


def test_lines_end_at_newlines_only(tmp_path):
    assert corpus.decode("a\u2028b\x85c\x0bd\ne".encode(), []) == ["a\u2028b\x85c\x0bd", "e"]
