"""The tokenizer against the original's outputs and against the slow reference."""

import gzip
import json
import pickle
import tracemalloc
import unicodedata

import pytest
import reference_wordpiece

from bert_tf.errors import InputError
from bert_tf.tokenization import encoding, open_tokenizer, wordpiece
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from tests.goldens import at_hand
from tests.tokenization.hard_lines import HARD_LINES, odd_batches, random_lines, read_golden, rows

GOLDEN = [("bert-base-uncased", True), ("bert-base-cased", False), ("bert-base-chinese", True)]


def check(tokenizer, lines):
    """All methods agree with the reference on every line."""
    expected = [reference_wordpiece.encode(line, tokenizer.vocabulary.ids, tokenizer.do_lower_case)
                for line in lines]
    assert rows(tokenizer, lines) == [ids for ids, _ in expected]
    for line, (ids, offsets) in zip(lines, expected):
        assert tokenizer.encode(line) == ids, ascii(line)
        assert tokenizer.encode_with_offsets(line) == (ids, offsets), ascii(line)


@pytest.fixture(params=[True, False], ids=["lower", "cased"])
def tokenizer(request, vocabulary):
    return WordpieceTokenizer(vocabulary, request.param)


@pytest.mark.parametrize("name, lower", GOLDEN)
def test_golden_lines_of_the_original(test_data, name, lower):
    tokenizer = WordpieceTokenizer(
        Vocabulary.from_file(test_data / f"vocabs/{name}/vocab.txt"), lower)
    records = read_golden(test_data / "golden/tokenization_seed1.jsonl")
    lines = [record["text"] for record in records]
    expected = [record[name] for record in records]
    assert [tokenizer.encode(line) for line in lines] == expected
    assert rows(tokenizer, lines) == expected
    assert [tokenizer.encode_with_offsets(line)[0] for line in lines] == expected


@pytest.mark.parametrize("name, vocabulary, settings", [
    ("uncased", "uncased", {}), ("uncased_accents", "uncased", {"strip_accents": False}),
    ("cased", "cased", {})])
def test_golden_lines_of_electra(test_data, name, vocabulary, settings):
    tokenizer = pickle.loads(pickle.dumps(WordpieceTokenizer(
        Vocabulary.from_file(test_data / f"vocabs/bert-base-{vocabulary}/vocab.txt"),
        vocabulary == "uncased", drop_category_c=True, **settings)))
    assert tokenizer.describe() == {
        "name": "wordpiece", "do_lower_case": vocabulary == "uncased", "drop_category_c": True,
        **settings}
    records = read_golden(test_data / "golden/electra/tokenization.jsonl.gz")
    lines, expected = ([record[key] for record in records] for key in ("text", name))
    assert rows(tokenizer, lines) == expected
    assert [tokenizer.encode_with_offsets(line)[0] for line in lines] == expected


def test_all_of_category_c_can_be_dropped(tokenizer):
    """As if it had not been there."""
    more = WordpieceTokenizer(tokenizer.vocabulary, tokenizer.do_lower_case, drop_category_c=True)
    lines = HARD_LINES + random_lines(500, seed=3) + [
        f"a{chr(code)}b {chr(code)}c" for code in range(0, 0x110000, 997)]
    kept = ["".join(char for char in line if char in "\t\n\r"
                    or not unicodedata.category(char).startswith("C")) for line in lines]
    assert rows(more, lines) == rows(tokenizer, kept)
    assert rows(more, lines) != rows(tokenizer, lines)


def test_accents_can_stay(tokenizer):
    stays = WordpieceTokenizer(tokenizer.vocabulary, tokenizer.do_lower_case, strip_accents=False)
    words = wordpiece.split_words("Café. CAFE\u0301", True, **stays.settings)
    assert words == (["café", ".", "cafe\u0301"] if tokenizer.do_lower_case
                     else ["cafe", ".", "cafe"])
    lines = random_lines(300, seed=4)
    assert [stays.encode_with_offsets(line)[0] for line in lines] == rows(stays, lines)


def test_accents_can_go_alone(vocabulary):
    """As if they had not been there."""
    drops, plain = (WordpieceTokenizer(vocabulary, False, strip_accents=given)
                    for given in (True, None))
    lines = HARD_LINES + random_lines(500, seed=4)
    kept = ["".join(char for char in unicodedata.normalize("NFD", line)
                    if unicodedata.category(char) != "Mn") for line in lines]
    assert rows(drops, lines) == rows(plain, kept) != rows(plain, lines)
    assert [drops.encode_with_offsets(line)[0] for line in lines] == rows(drops, lines)
    assert rows(drops, lines) == rows(pickle.loads(pickle.dumps(drops)), lines)


def test_ideographs_can_be_letters(tokenizer, monkeypatch):
    """As letters of another script in their places."""
    joins = WordpieceTokenizer(tokenizer.vocabulary, tokenizer.do_lower_case,
                               tokenize_chinese_chars=False)
    assert wordpiece.split_words("a中文, 中", True, **joins.settings) == ["a中文", ",", "中"]
    lines = HARD_LINES + random_lines(300, seed=4)
    letters = ["".join("\u05d0" if wordpiece.is_cjk(char) else char for char in line)
               for line in lines]
    assert list(map(len, rows(joins, letters))) == list(map(len, rows(tokenizer, letters)))
    assert [joins.encode_with_offsets(line)[0] for line in lines] == rows(joins, lines)
    assert rows(joins, lines) == rows(pickle.loads(pickle.dumps(joins)), lines)
    whole = rows(joins, lines)
    monkeypatch.setattr(encoding, "BLOCK_CHARS", 5)
    assert rows(joins, lines) == whole


@pytest.mark.parametrize("path", at_hand("{}", [
    "text/sample_text.txt", "text/books_sent.txt", "text/enwiki_sent.txt.gz"]))
def test_real_text(test_data, path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(test_data / path, "rt", encoding="utf-8") as file:
        lines = file.read().split("\n")[::100]
    for name, lower in GOLDEN[:2]:
        check(WordpieceTokenizer(
            Vocabulary.from_file(test_data / f"vocabs/{name}/vocab.txt"), lower), lines)


def test_hard_and_random_lines(tokenizer):
    check(tokenizer, HARD_LINES + random_lines(1500, seed=2))


def test_every_character(tokenizer):
    lines = [f"a{chr(code)}b {chr(code)}" for code in range(0, 0x32000, 17)]
    check(tokenizer, lines)


def test_offsets_point_at_the_sources(vocabulary):
    tokenizer = WordpieceTokenizer(vocabulary, True)
    text = "Plain\u00ading CAFE\u0301s İz [MASK] \u03a9\u03a9 中文"
    ids, offsets = tokenizer.encode_with_offsets(text)
    assert list(zip(tokenizer.tokens(ids), (text[start:end] for start, end in offsets))) == [
        ("plain", "Plain"), ("##ing", "ing"), ("cafe", "CAFE"), ("##s", "s"), ("i", "İ"),
        ("##z", "z"), ("[", "["), ("mask", "MASK"), ("]", "]"), ("[UNK]", "\u03a9\u03a9"),
        ("中", "中"), ("文", "文")]


def test_special_tokens_in_text_stay_text(vocabulary):
    for lower in (True, False):
        tokenizer = WordpieceTokenizer(vocabulary, lower)
        ids = tokenizer.encode("[MASK] [SEP] [CLS] [PAD] [unused1] a")
        special = {index for token, index in vocabulary.ids.items() if token[:1] == "[" != token}
        assert not special.intersection(ids) - {vocabulary.unk_id}
    assert WordpieceTokenizer(vocabulary, False).tokenize("[MASK]") == ["[", "MASK", "]"]


@odd_batches
def test_lengths_of_odd_batches(tokenizer, lines):
    check(tokenizer, [line.replace("\ud800", "") for line in lines])


def test_more_lines_than_a_block(tokenizer, monkeypatch):
    monkeypatch.setattr(encoding, "_BLOCK_LINES", 3)
    check(tokenizer, HARD_LINES)


def test_long_lines_are_read_in_slices(tokenizer, monkeypatch):
    monkeypatch.setattr(encoding, "BLOCK_CHARS", 5)
    check(tokenizer, [*HARD_LINES, " ".join(HARD_LINES), *random_lines(200, seed=4), "", "Σα 中Σ文"])


@pytest.mark.parametrize("line", ["word " * 100_000, "中文" * 50_000])
def test_what_a_huge_line_takes_beside_its_ids_is_bounded(tokenizer, monkeypatch, line):
    monkeypatch.setattr(encoding, "BLOCK_CHARS", 1 << 12)
    expected = tokenizer.encode(line[:1000]) * (len(line) // 1000)
    tracemalloc.start()
    ids, lengths = tokenizer.encode_lines([line])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lengths.tolist() == [len(expected)] and ids.tolist() == expected
    assert peak < 2.5 * ids.nbytes + (1 << 20)


def test_memory_is_bounded_and_forgetting_changes_nothing(tokenizer, monkeypatch):
    monkeypatch.setattr(encoding, "_REMEMBERED_WORDS", 10)
    check(tokenizer, random_lines(300, seed=3))
    tokenizer.encode("unspaced" * 20)
    for memory in (tokenizer._words, tokenizer._chunks):
        assert len(memory) <= 11
        assert max(map(len, memory)) <= encoding.REMEMBERED_CHARS


def test_spaces_are_those_of_str_split():
    everything = wordpiece.SPACES + wordpiece._DELETED_SPACES
    assert sorted(everything) == wordpiece.members(str.isspace)


def test_settings_of_libraries_beside_a_vocabulary(tmp_path):
    hub = tmp_path / "assets" / "tokenizer"
    hub.mkdir(parents=True)
    for path in (tmp_path / "vocab.txt", hub / "vocabulary.txt"):
        path.write_text("\n".join([*"[PAD] [UNK] [CLS] [SEP] [MASK]".split(), "sch", "##on", "schön",
                                   "Schön", "Schon", "中", "中中"]), encoding="utf-8")
    cut, whole = ["中", "中"], ["中中"]
    for given, tokens in (({"do_lower_case": True}, ["sch", "##on", *cut]),
                          ({"do_lower_case": True, "strip_accents": None}, ["sch", "##on", *cut]),
                          ({"do_lower_case": True, "strip_accents": False}, ["schön", *cut]),
                          ({"do_lower_case": False, "strip_accents": False}, ["Schön", *cut]),
                          ({"do_lower_case": False, "strip_accents": True}, ["Schon", *cut]),
                          ({"do_lower_case": True, "tokenize_chinese_chars": False},
                           ["sch", "##on", *whole])):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(given))
        for path in (tmp_path, tmp_path / "vocab.txt"):
            assert open_tokenizer(path).tokenize("Schön 中中") == tokens
        given["lowercase"] = given.pop("do_lower_case")
        (tmp_path / "tokenizer.json").write_text(json.dumps({"config": given}))
        assert open_tokenizer(hub / "vocabulary.txt").tokenize("Schön 中中") == tokens
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert open_tokenizer(tmp_path).tokenize("Schön") == ["sch", "##on"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": "false"}')
    with pytest.raises(InputError, match="config.json: do_lower_case is the text 'false'; write"):
        open_tokenizer(tmp_path)


def test_settings_that_are_given_leave_others_as_saved(vocabulary, tmp_path):
    saved = {"strip_accents": False, "tokenize_chinese_chars": False}
    WordpieceTokenizer(vocabulary, True, **saved).save(str(tmp_path))
    opened = open_tokenizer(str(tmp_path), True, drop_category_c=True)
    assert opened.settings == {**saved, "drop_category_c": True}
    assert open_tokenizer(str(tmp_path), True, strip_accents=True).settings == {
        "tokenize_chinese_chars": False}
