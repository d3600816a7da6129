"""Byte-level BPE against the original's outputs and against another library."""

import json
import pickle

import numpy as np
import pytest
import tokenizers

from bert_tf.errors import InputError
from bert_tf.models.gpt.tokenizer import GptTokenizer
from bert_tf.tokenization import byte_bpe, encoding, open_tokenizer
from bert_tf.tokenization.byte_bpe import ByteBpeTokenizer
from tests.tokenization.hard_lines import HARD_LINES, odd_batches, random_lines, read_golden, rows

SPACES = ["", " ", "  ", "a ", " a", "  a  b  ", "a\tb", "a \t\n b", "a\xa0b \u3000c", "\x1c\x1fa",
          "don't 'tis 's 'S", "snake_case e\u0301 1½²", "\x00a\x00", "中文 " * 30, "a" * 70]


def make_files(folder, merges, special=("<s>", "<pad>", "</s>", "<unk>"), last=("<mask>",)):
    """Writes vocab.json and merges.txt and gives the path of the first."""
    tokens = dict.fromkeys([*special, *byte_bpe.byte_characters(), *map("".join, merges), *last])
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    return str(folder / "vocab.json")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """A tokenizer with few merges, some of which compete."""
    merges = ["e r", "t h", "th e", "Ġ a", "Ġ th", "Ġth e", "i n", "in g", "a a", "aa aa", "Ġ Ġ",
              "ä ¸", "Ġ (", "a b", "b c", "ab c", "a bc", "abc a", "c a", "< s", "<s >"]
    path = make_files(tmp_path_factory.mktemp("bpe"), [tuple(m.split()) for m in merges])
    return open_tokenizer(path)


@pytest.fixture(scope="module")
def golden(test_data):
    return read_golden(test_data / "golden/roberta/tokenization_seed1.jsonl.gz")


@pytest.fixture(scope="module")
def roberta(test_data):
    return open_tokenizer(str(test_data / "vocabs/roberta-base"), do_lower_case=True)


def test_golden_lines_of_the_original(golden, roberta):
    texts = [row["text"] for row in golden]
    assert rows(roberta, texts) == [row["roberta"] for row in golden]
    for row in golden:
        ids, offsets = roberta.encode_with_offsets(row["text"], trim=False)
        assert (ids, offsets) == (row["roberta"], list(map(tuple, row["offsets"])))
        # At the beginning of a text the library that made these keeps a blank, as part of a word.
        trimmed = [tuple(trimmed) if trimmed[0] or first or row["text"][:1] != " " else
                   (1, max(last, 1)) for trimmed, (first, last)
                   in zip(row["trimmed_offsets"], row["offsets"])]
        assert roberta.encode_with_offsets(row["text"])[1] == trimmed, ascii(row["text"])


def test_golden_lines_of_gpt2(golden, test_data):
    gpt2 = open_tokenizer(str(test_data / "vocabs/gpt2/vocab.json"))
    assert rows(gpt2, [row["text"] for row in golden]) == [row["gpt2"] for row in golden]
    assert gpt2.vocabulary.cls_id is None and gpt2.tokens([gpt2.vocabulary.sep_id]) == [
        "<|endoftext|>"]


def test_words_of_roberta(roberta, test_data):
    starts = np.load(test_data / "golden/roberta/masking_seed1.npz")["word_starts"]
    starts = np.unpackbits(starts)[:50265].astype(bool)
    starts[roberta.vocabulary.mask_id] = True       # any special token begins a word
    np.testing.assert_array_equal(roberta.continues, ~starts)


def test_special_tokens_and_packing(roberta, test_data):
    vocabulary = roberta.vocabulary
    assert (vocabulary.cls_id, vocabulary.pad_id, vocabulary.sep_id, vocabulary.unk_id,
            vocabulary.mask_id) == (0, 1, 2, 3, 50264)
    with open(test_data / "golden/roberta/special_seed1.jsonl", encoding="utf-8") as file:
        for row in map(json.loads, file):
            a, b = roberta.encode(row["text_a"]), roberta.encode(row["text_b"])
            assert row["single"] == [0, *a, 2] and row["pair"] == [0, *a, 2, 2, *b, 2]


def test_ids_in_the_order_of_fairseq(roberta, golden, test_data, tmp_path):
    folder = test_data / "vocabs"
    gpt2 = json.loads((folder / "gpt2/vocab.json").read_text(encoding="utf-8"))
    (tmp_path / "encoder.json").write_bytes((folder / "gpt2/vocab.json").read_bytes())
    (tmp_path / "vocab.bpe").write_bytes((folder / "gpt2/merges.txt").read_bytes())
    names = [gpt2.get(token, token) for token in roberta.vocabulary.tokens[4:-1]]
    (tmp_path / "dict.txt").write_text("".join(f"{name} 7\n" for name in names))
    made = open_tokenizer(str(tmp_path))
    assert made.vocabulary.tokens == roberta.vocabulary.tokens
    assert made.encode(golden[-1]["text"]) == golden[-1]["roberta"]
    (tmp_path / "dict.txt").write_text("13 7\nword 7\n")
    with pytest.raises(InputError, match="dict.txt, line 2: 'word 7'"):
        open_tokenizer(str(tmp_path))


@pytest.fixture(scope="module")
def peer(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("peer")
    tokenizer.save(str(folder))
    return tokenizers.ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))


def check(tokenizer, peer, lines):
    expected = [peer.encode(line) for line in lines]
    # The library merges "<" "s" ">" to what is a special token here.
    special = tokenizer.vocabulary.cls_id
    kept = [row.ids for row in expected if special not in row.ids]
    found = rows(tokenizer, lines)
    assert [ids for ids, row in zip(found, expected) if special not in row.ids] == kept
    for line, ids, row in zip(lines, found, expected):
        assert tokenizer.encode(line) == ids and special not in ids
        again, offsets = tokenizer.encode_with_offsets(line, trim=False)
        assert again == ids and (special in row.ids or offsets == row.offsets)
        assert {at for offset in offsets for at in range(*offset)} == set(range(len(line)))
        trimmed = tokenizer.encode_with_offsets(line)[1]
        assert all(a <= c <= d == b for (a, b), (c, d) in zip(offsets, trimmed))
        text = "".join(tokenizer.tokens(ids))
        assert text == "".join(byte_bpe.byte_characters()[byte] for byte in line.encode())


def test_hard_lines_as_another_library(tokenizer, peer):
    check(tokenizer, peer, [*SPACES, *HARD_LINES, *random_lines(300, seed=5), "<s> <mask> a"])


def test_a_text_gets_a_blank_where_transformers_gives_one(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path))
    (tmp_path / "tokenizer_config.json").write_text('{"add_prefix_space": true, "x": 1}')
    opened = open_tokenizer(str(tmp_path))
    peer = tokenizers.ByteLevelBPETokenizer(
        str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"), add_prefix_space=True)
    lines = [line for line in [*SPACES, *HARD_LINES, *random_lines(100, seed=6), "the", " the", ""]
             if "<s>" not in line]
    expected = [peer.encode(line) for line in lines]
    assert opened.encode("the") != tokenizer.encode("the")
    assert rows(opened, lines) == [row.ids for row in expected]
    for line, row in zip(lines, expected):
        ids, offsets = opened.encode_with_offsets(line, trim=False)
        # The blank alone covers nothing here, the first character there.
        assert (ids, [(a, max(b, 1)) for a, b in offsets]) == (row.ids, row.offsets)
    assert opened.excerpt(["the", "cat"], opened.encode("the cat"), 0, 0) == "the cat"
    (tmp_path / "copy").mkdir()
    opened.save(str(tmp_path / "copy"))
    assert open_tokenizer(str(tmp_path / "copy")).describe() == opened.describe() == {
        **tokenizer.describe(), "add_prefix_space": True}


def test_long_lines_are_read_in_slices(tokenizer, peer, monkeypatch):
    monkeypatch.setattr(encoding, "BLOCK_CHARS", 5)
    check(tokenizer, peer, [*SPACES, " ".join(SPACES), " ".join(HARD_LINES)])


@odd_batches
def test_lengths_of_odd_batches(tokenizer, lines):
    expected = [tokenizer.encode(line.replace("\ud800", "\ufffd")) for line in lines]
    assert rows(tokenizer, lines) == expected


def test_other_processes_and_folders_get_the_same_tokenizer(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path))
    for copy in (pickle.loads(pickle.dumps(tokenizer)), open_tokenizer(str(tmp_path))):
        assert isinstance(copy, ByteBpeTokenizer)
        assert copy.vocabulary.hash == tokenizer.vocabulary.hash
        assert copy.describe() == {"name": "byte_bpe", "do_lower_case": False}
        assert rows(copy, HARD_LINES) == rows(tokenizer, HARD_LINES)


@pytest.mark.parametrize("change, part", [
    (lambda merges: b"", "merges.txt has no merge for 100 of 361 tokens, such as 'aa'"),
    (lambda merges: merges[:len(merges) // 2 - 2], "is not a pair of pieces"),
    (lambda merges: merges[:len(merges) // 2], "merges.txt has no merge for 50 of 361 tokens"),
    (lambda merges: merges[:-3], "is not a pair of pieces"),
    (lambda merges: merges.replace(b" ", b""), "merges.txt, line 1: 'aa' is not a pair"),
    (lambda merges: b"\xff", "is not UTF-8")])
@pytest.mark.parametrize("end", ["", "</w>"])
def test_merges_that_are_not_whole_are_refused(tmp_path, change, part, end):
    letters = "abcdefghij"
    merges = [(a, b + end) for a in letters for b in letters]
    path = make_files(tmp_path, merges, *(((*letters,), [b + end for b in letters]) if end else ()))
    assert open_tokenizer(path).name == ("gpt_bpe" if end else "byte_bpe")
    content = (tmp_path / "merges.txt").read_bytes().replace(b"#version: 0.2\n", b"")
    (tmp_path / "merges.txt").write_bytes(change(content.replace(end.encode(), b"")).replace(
        b"\n", end.encode() + b"\n"))
    with pytest.raises(InputError, match=part if not end else "merges.txt"):
        open_tokenizer(path)


def test_tokens_that_were_added_as_text_are_read_as_such(tmp_path):
    found = open_tokenizer(make_files(tmp_path, [], last=("<mask>", "中文", "a b", "<|user|>")))
    for token in ("中文", "a b", "<|user|>"):
        index = found.vocabulary.ids[token]
        assert found.readable(index) == found.decode([index]) == token


def test_refusals(tmp_path):
    path = make_files(tmp_path / "a", [("a", "b")], special=["[CLS]"])
    with pytest.raises(InputError, match="special tokens of RoBERTa"):
        open_tokenizer(path)
    path = make_files(tmp_path / "b", [("a", "b")])
    (tmp_path / "b" / "merges.txt").write_text("#version: 0.2\nx y\n")
    with pytest.raises(InputError, match="lacks 'xy'"):
        open_tokenizer(path)
    (tmp_path / "b" / "merges.txt").unlink()
    with pytest.raises(InputError, match=r"merges.txt' can't be read"):
        open_tokenizer(path)
    for content, part in (("[]", "must hold a JSON object"), ("[0, 1]", "must hold a JSON object"),
                          ('{"a": 1}', "must be a JSON object of tokens"),
                          ('{"a": [1]}', "must be a JSON object of tokens"),
                          ("nothing", "is not valid JSON"), ("[" * 5000, "is not valid JSON"),
                          ('{"a":' * 5000, "is not valid JSON")):
        (tmp_path / "b" / "vocab.json").write_text(content)
        (tmp_path / "b" / "merges.txt").write_text("")
        for kind in (ByteBpeTokenizer, GptTokenizer):
            with pytest.raises(InputError, match=part):
                kind.read_vocabulary(path)
    with pytest.raises(InputError, match="there is no vocabulary in"):
        open_tokenizer(str(tmp_path))
