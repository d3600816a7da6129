"""Texts to extract features of, and the files of their vectors."""

import errno
import gzip
import json
import random
import re
import weakref

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from bert_tf.data.text import vectors as files
from bert_tf.data.text.vectors import Piece, Texts, read_lines
from bert_tf.errors import InputError
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##\u00e9"])
ENDINGS = ("jsonl", "npz", "safetensors", "tfrecord", "tfrecord.gz")
LAYERS = (-1, 0, "embeddings")
TEXTS, WIDTH = 23, 3


def make_pieces(pooled, seed=0, cuts=()):
    """The same vectors, cut before the given texts."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 6, TEXTS).astype(np.int32)
    ends = np.cumsum(lengths)
    vectors = {layer: rng.normal(size=(TEXTS if pooled else ends[-1], WIDTH)).astype(np.float32)
               for layer in LAYERS}
    ids = rng.integers(0, VOCABULARY.size, ends[-1]).astype(np.int32)
    starts = [0, *ends]
    for first, last in zip([0, *cuts], [*cuts, TEXTS]):
        rows = slice(first, last) if pooled else slice(starts[first], starts[last])
        part = {layer: values[rows] for layer, values in vectors.items()}
        yield Piece(first, part) if pooled else Piece(first, part, ids[rows], lengths[first:last])


def read(path, pooled):
    names = ["layer_-1", "layer_0", "embeddings"]
    if path.suffix == ".npz":
        return dict(np.load(path))
    if path.suffix == ".safetensors":
        return load_file(path)
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert [row["linex_index"] for row in rows] == list(range(TEXTS))
        texts = [row["layers"] if pooled else [f["layers"] for f in row["features"]]
                 for row in rows]
        flat = texts if pooled else [layers for text in texts for layers in text]
        assert all([entry["index"] for entry in layers] == list(LAYERS) for layers in flat)
        arrays = {name: np.array([layers[i]["values"] for layers in flat])
                  for i, name in enumerate(names)}
        if not pooled:
            arrays["input_ids"] = [VOCABULARY.ids[f["token"]] for row in rows
                                   for f in row["features"]]
            arrays["lengths"] = [len(text) for text in texts]
        return arrays
    kind = "GZIP" if path.suffix == ".gz" else ""
    examples = [tf.train.Example.FromString(record.numpy()).features.feature
                for record in tf.data.TFRecordDataset(str(path), kind)]
    assert [list(e["unique_id"].int64_list.value) for e in examples] == [[i] for i in range(TEXTS)]
    arrays = {name: np.concatenate([np.reshape(e[name].float_list.value, (-1, WIDTH))
                                    for e in examples]) for name in names}
    if not pooled:
        ids = [e["input_ids"].int64_list.value for e in examples]
        arrays |= {"input_ids": np.concatenate(ids), "lengths": list(map(len, ids))}
    assert all(len(e) == len(names) + 1 + (not pooled) for e in examples)
    return arrays


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_holds_the_same_however_it_comes(tmp_path, ending, pooled):
    whole, = make_pieces(pooled)
    contents = set()
    for number, cuts in enumerate(((), (1,), (4, 5, 20), range(1, TEXTS))):
        path = tmp_path / f"{number}.{ending}"
        files.write(str(path), files.format_of(str(path)), make_pieces(pooled, cuts=cuts),
                    VOCABULARY)
        contents.add(path.read_bytes())
    assert len(contents) == 1 and len(list(tmp_path.iterdir())) == 4
    arrays = read(path, pooled)
    assert arrays.keys() == whole.arrays().keys()
    for name, expected in whole.arrays().items():
        np.testing.assert_allclose(arrays[name], expected, rtol=0,
                                   atol=5.1e-7 if ending == "jsonl" else 0)


def test_arrays_are_of_the_types_that_are_documented(tmp_path):
    for ending, load in (("npz", lambda path: dict(np.load(path))), ("safetensors", load_file)):
        path = str(tmp_path / f"x.{ending}")
        files.write(path, ending, make_pieces(False), VOCABULARY)
        assert {name: str(array.dtype) for name, array in load(path).items()} == {
            "layer_-1": "float32", "layer_0": "float32", "embeddings": "float32",
            "input_ids": "int32", "lengths": "int32"}


def test_json_lines_are_the_originals(tmp_path):
    values = np.array([[1 / 3, -2], [0, 1e-9], [0.5, 7]], np.float32)
    path = tmp_path / "x.jsonl"
    files.write(str(path), "jsonl", [
        Piece(0, {-1: values, -2: values + 1}, np.array([2, 6, 3]), np.array([3]))], VOCABULARY)
    assert path.read_text() == (
        '{"linex_index": 0, "features": ['
        '{"token": "[CLS]", "layers": [{"index": -1, "values": [0.333333, -2.0]}, '
        '{"index": -2, "values": [1.333333, -1.0]}]}, '
        '{"token": "##\\u00e9", "layers": [{"index": -1, "values": [0.0, 0.0]}, '
        '{"index": -2, "values": [1.0, 1.0]}]}, '
        '{"token": "[SEP]", "layers": [{"index": -1, "values": [0.5, 7.0]}, '
        '{"index": -2, "values": [1.5, 8.0]}]}]}\n')
    files.write(str(path), "jsonl", [Piece(0, {-1: values[:1]})], VOCABULARY)
    assert path.read_text() == (
        '{"linex_index": 0, "layers": [{"index": -1, "values": [0.333333, -2.0]}]}\n')


@pytest.mark.parametrize("seed", range(5))
def test_values_are_rounded_as_python_does(tmp_path, seed):
    rng = np.random.default_rng(seed)
    halves = (rng.integers(-10**6, 10**6, 500) * 2 + 1) / 2**7     # ties among them
    values = np.concatenate([rng.normal(size=2000) * 10.0**rng.integers(-9, 9, 2000), halves,
                             halves * 1e-6]).astype(np.float32)
    path = tmp_path / "x.jsonl"
    files.write(str(path), "jsonl", [Piece(0, {-1: values[None]})], VOCABULARY)
    assert path.read_text() == json.dumps({"linex_index": 0, "layers": [
        {"index": -1, "values": [round(float(x), 6) for x in values]}]}) + "\n"


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_more_than_a_piece_and_the_next_are_held(tmp_path, ending, pooled):
    alive = most = 0

    class Rows(np.ndarray):
        """An array that may be watched."""

    def forget():
        nonlocal alive
        alive -= 1

    def pieces():
        nonlocal alive, most
        for first in range(0, 60, 3):
            rows = Rows((3, 4), np.float32)
            rows[:] = first
            alive += 1
            most = max(most, alive)
            weakref.finalize(rows, forget)
            extra = () if pooled else (np.array([2, 5, 3], np.int32), np.array([1, 2], np.int32))
            piece = Piece(first, {-1: rows}, *extra)
            del rows
            yield piece
            del piece

    files.write(str(tmp_path / f"x.{ending}"), files.format_of(f"x.{ending}"), pieces(), VOCABULARY)
    assert 1 <= most <= 2


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_full_disk_names_the_file_and_what_was_there_stays(tmp_path, ending):
    def broken():
        yield from make_pieces(False)
        raise OSError(errno.ENOSPC, "the second piece")

    path = tmp_path / f"x.{ending}"
    path.write_text("before")
    with pytest.raises(OSError, match=f"the second piece: '{path}'"):
        files.write(str(path), files.format_of(path.name), broken(), VOCABULARY)
    assert [p.name for p in tmp_path.iterdir()] == [path.name] and path.read_text() == "before"


def test_an_ending_of_no_format():
    assert files.format_of("a/b.tfrecord.gz") == "tfrecord"
    with pytest.raises(InputError, match="the extension of a/b.txt; give .jsonl, .npz"):
        files.format_of("a/b.txt")


# Texts

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
