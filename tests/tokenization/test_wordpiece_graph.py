"""The tokenizer in a graph equals the Python one; where it can't, the boundary is known."""

import contextlib
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from bert_tf.tokenization.wordpiece_graph import WordpieceGraph, words_graph
from tests.tokenization.hard_lines import HARD_LINES, random_lines, read_golden

GOLDEN = [("bert-base-uncased", True), ("bert-base-cased", False), ("bert-base-chinese", True)]
# Surrogates are no UTF-8; the planes left out hold no assigned character, or private ones alone.
CHARACTERS = [chr(code) for code in [*range(0xD800), *range(0xE000, 0x32000),
                                     *range(0xE0000, 0xE0200), *range(0x10FFF0, 0x110000)]]


_ALIKE = ("CJK UNIFIED IDEOGRAPH", "TANGUT IDEOGRAPH", "HANGUL SYLLABLE")


def kind_of(code):
    """The kind of a character of which there are thousands alike; of others the code itself."""
    name, category = unicodedata.name(chr(code), ""), unicodedata.category(chr(code))
    if category in ("Co", "Cn"):        # private, or not assigned
        return category
    return next((kind for kind in _ALIKE if name.startswith(kind)), code)


@pytest.fixture(name="representatives", scope="module")
def fixture_representatives():
    """All characters but those between others of their kind, of which every 16th stays."""
    kinds = [kind_of(code) for code in range(0x110000)]
    return [character for character in CHARACTERS
            if not ord(character) % 16 or not kinds[ord(character)] == kinds[
                max(ord(character) - 1, 0)] == kinds[min(ord(character) + 1, 0x10FFFF)]]


@pytest.fixture(scope="module", params=[True, False], ids=["lower", "cased"])
def pair(request, vocabulary):
    return (WordpieceTokenizer(vocabulary, request.param),
            WordpieceGraph(vocabulary, request.param))


def differing(pair, lines):
    """The lines (bytes) to which the two tokenizers of `pair` give different ids."""
    python, graph = pair
    ids, lengths = python.encode_lines([line.decode("utf-8", "ignore") for line in lines])
    out = graph(lines)
    if np.array_equal(out.values, ids) and np.array_equal(out.row_lengths(), lengths):
        return []
    starts = np.cumsum(lengths) - lengths
    return [line for line, row, start, length in zip(lines, out.to_list(), starts, lengths)
            if row != ids[start:start + length].tolist()]


def encoded(lines):
    return [line.encode("utf-8") for line in lines]


def read_valid(path):
    # A lone surrogate, which JSON can hold, is no UTF-8.
    return [row for row in read_golden(path)
            if row["text"].encode("utf-8", "ignore").decode() == row["text"]]


@pytest.mark.parametrize("name, lower", GOLDEN)
def test_golden_lines_of_the_original(test_data, name, lower):
    graph = WordpieceGraph(Vocabulary.from_file(test_data / f"vocabs/{name}/vocab.txt"), lower)
    records = read_valid(test_data / "golden/tokenization_seed1.jsonl")
    texts = [record["text"] for record in records]
    assert len(records) >= 400
    assert graph(texts).to_list() == [r[name] for r in records]
    assert np.mean(words_graph(lower).is_unsure(texts)) < 0.02


@pytest.mark.parametrize("name, vocabulary, settings", [
    ("uncased", "uncased", {}), ("uncased_accents", "uncased", {"strip_accents": False}),
    ("cased", "cased", {})])
def test_golden_lines_of_electra(test_data, name, vocabulary, settings):
    graph = WordpieceGraph(
        Vocabulary.from_file(test_data / f"vocabs/bert-base-{vocabulary}/vocab.txt"),
        vocabulary == "uncased", drop_category_c=True, **settings)
    records = read_valid(test_data / "golden/electra/tokenization.jsonl.gz")
    found = graph([r["text"] for r in records]).to_list()
    unsure = words_graph(vocabulary == "uncased", drop_category_c=True, **settings).is_unsure(
        [r["text"] for r in records]).numpy()
    assert [ids for ids, bad in zip(found, unsure) if not bad] == [
        r[name] for r, bad in zip(records, unsure) if not bad]
    assert len(records) >= 200 and unsure.mean() < 0.3


def test_hard_and_random_lines(pair):
    assert not differing(pair, encoded(HARD_LINES + random_lines(5000, seed=4)))


@pytest.mark.parametrize("settings, text, tokens", [
    ({"tokenize_chinese_chars": False}, "a中文", ["a", "##中", "##文"]),
    ({"strip_accents": True}, "café", ["cafe"])])
def test_settings_of_cased_text(vocabulary, settings, text, tokens):
    graph = WordpieceGraph(vocabulary, False, **settings)
    assert graph([text]).to_list() == [[vocabulary.ids[token] for token in tokens]]
    assert not differing((WordpieceTokenizer(vocabulary, False, **settings), graph),
                         encoded(HARD_LINES))


@pytest.mark.parametrize("token, is_refused", [
    ("##" + 85 * "ก" + "a", False), ("##" + 86 * "ก", True), (86 * "ก", True), (257 * "a", False),
    ("\n", False)])
def test_tokens_that_are_too_long_for_a_graph_are_refused(token, is_refused, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", token]), encoding="utf-8")
    vocabulary = Vocabulary.from_file(str(path))
    with pytest.raises(InputError, match=rf"vocab.txt', line 6: the token '{token[:20]}'... has "
                       "more than 256 bytes") if is_refused else contextlib.nullcontext():
        assert not differing(
            (WordpieceTokenizer(vocabulary, True), WordpieceGraph(vocabulary, True)),
            encoded(["a" + token.removeprefix("##"), token, 200 * "a", "a a", 201 * "a", "\0"]))


@pytest.mark.parametrize("context", ["a{}b {}", "e\u0301{}\u0327x"])
def test_every_character(pair, representatives, context):
    assert not differing(pair, encoded(context.format(c, c) for c in representatives))


def test_bytes_that_are_not_utf8_are_dropped(pair):
    rng = np.random.default_rng(5)
    alphabet = np.frombuffer(b"a b.\x80\xbf\xc3\xa9\xe4\xb8\xad\xed\xa0\xf0\x9f\x98\xf4\x90\xff\0",
                             np.uint8)
    lines = [rng.choice(alphabet, 12).tobytes() for _ in range(5000)]
    assert not differing(pair, lines)


def test_no_lines_and_empty_lines(pair):
    assert pair[1](tf.constant([], tf.string)).to_list() == []
    assert pair[1](["", "a", " "]).to_list() == [[], pair[0].encode("a"), []]


def test_it_is_saved_and_loaded(pair, tmp_path):
    tf.saved_model.save(pair[1], str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    lines = [line for line in HARD_LINES if line]
    assert loaded(lines).to_list() == pair[1](lines).to_list()


def offsets_in_bytes(python, line):
    ids, offsets = python.encode_with_offsets(line)
    return ids, [tuple(len(line[:end].encode()) for end in pair) for pair in offsets]


def test_offsets_are_those_of_python(pair):
    python, graph = pair
    lines = HARD_LINES + random_lines(1000, seed=6) + ["\u302e\u302ea"]
    ids, first, last = (x.to_list() for x in graph.with_offsets(lines))
    for row, line in enumerate(lines):
        assert (ids[row], list(zip(first[row], last[row]))) == offsets_in_bytes(python, line)


def test_a_word_without_a_token_has_the_unknown_one(pair):
    python, graph = pair
    lines = [*HARD_LINES, "a\x00b \x00 c", "\x7f\x80\x9f ctl", "price \ufffd 20 euro", "\u200b", "",
             "a\x85b\x1cc\u3000\xad"]
    found = [ragged.to_list() for ragged in graph.word_offsets(lines)[:3]]
    for line, ids, first, last in zip(lines, *found, strict=True):
        expected, end = [], 0
        for word in line.split():
            begin = line.index(word, end)
            end = begin + len(word)
            ids_of_word, offsets = python.encode_with_offsets(word)
            expected += [(index, *(len(line[:begin + place].encode()) for place in pair))
                         for index, pair in zip(ids_of_word or [python.vocabulary.unk_id],
                                                offsets or [(0, len(word))])]
        assert list(zip(ids, first, last, strict=True)) == expected


def test_offsets_are_refused_where_signs_change_places(pair):
    python, graph = pair
    line = "a\u302e\U00016ff0b"
    if python.do_lower_case:
        with pytest.raises(tf.errors.InvalidArgumentError, match="change places here; leave"):
            graph.with_offsets([line])
    else:
        graph.with_offsets([line])


def test_whatever_differs_is_refused(pair, representatives):
    """Beside a sigma only marks younger than Unicode 13, which `tf.strings.lower` doesn't know."""
    python, graph = pair
    sigmas, places = (differing(pair, encoded(context.replace("_", c) for c in representatives))
                      for context in ("a_Σ Σ_a aΣ_", "\u302e_\U00016ff0"))
    marks = {line.decode()[1] for line in sigmas}
    assert all(unicodedata.category(mark) == "Mn" for mark in marks)
    assert not marks or min(marks) == "\u0898" and len(marks) < 200
    wrong = sigmas + places
    assert not wrong or np.all(words_graph(python.do_lower_case).is_unsure(wrong))
    graph.checked(HARD_LINES + ["a\u0898"])
    assert graph.checked([b"a\xffb"]) == b"ab"
    if python.do_lower_case:
        for line in ("\ua7c0", "a\u0898Σ"):
            with pytest.raises(tf.errors.InvalidArgumentError, match="younger than"):
                graph.checked(["fine", line])
