"""SentencePiece as ALBERT, XLNet, T5 and DeBERTa use it, against the originals' outputs."""

import json
import pickle

import numpy as np
import pytest
import sentencepiece

from bert_tf.errors import InputError
from bert_tf.tokenization import Layout, encoding, open_tokenizer
from bert_tf.tokenization.sentencepiece import ALBERT, T5, make_vocabulary
from tests import sentencepieces
from tests.tokenization.hard_lines import HARD_LINES, odd_batches, random_lines, read_golden, rows


@pytest.mark.parametrize("name", ["uncased", "cased"])
def test_golden_lines_of_albert(test_data, name):
    golden = read_golden(test_data / "golden/albert/tokenization.jsonl.gz")
    tokenizer = open_tokenizer(str(test_data / "vocabs/albert"), name == "uncased")
    assert rows(tokenizer, [row["text"] for row in golden]) == [row[name] for row in golden]
    for row in golden:
        assert tokenizer.encode_with_offsets(row["text"])[0] == row[name]
        starts = "".join("01"[start] for start in tokenizer.word_starts(row["text"]))
        assert starts == row[f"{name}_start"], ascii(row["text"])


def test_vocabulary_of_albert(test_data):
    tokenizer = open_tokenizer(str(test_data / "vocabs/albert"))
    vocabulary = tokenizer.vocabulary
    assert tokenizer.do_lower_case and vocabulary.size == 30000
    assert (vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id,
            vocabulary.mask_id) == (0, 1, 2, 3, 4)
    starts = np.load(test_data / "golden/albert/start_pieces.npz")["is_start"].astype(bool)
    starts[2:5] = True          # any special token begins a word
    np.testing.assert_array_equal(tokenizer.continues, ~starts)


@pytest.mark.parametrize("name", ["xlnet5000", "xlnet5000_lower"])
def test_golden_lines_of_xlnet(test_data, name):
    golden = read_golden(test_data / "golden/xlnet/tokenization_seed1.jsonl.gz")
    tokenizer = open_tokenizer(str(test_data / "golden/xlnet"), name.endswith("lower"))
    assert rows(tokenizer, [row["text"] for row in golden]) == [row[name] for row in golden]
    for row in golden:
        assert tokenizer.encode_with_offsets(row["text"])[0] == row[name]
    starts = np.load(test_data / "golden/xlnet/sample_mask_seed1.npz")["is_start_piece"]
    np.testing.assert_array_equal(tokenizer.continues, ~starts)
    vocabulary = tokenizer.vocabulary
    assert vocabulary.layout == Layout(0, 1, 2, True, pads_left=True, pad_segment=4)
    assert (vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id,
            vocabulary.ids["<eod>"]) == (0, 3, 4, 0, 7)
    text = "a ``word'' of 5"
    offsets = tokenizer.encode_with_offsets(text)[1]
    assert "``" in {text[slice(*place)] for place in offsets}


def test_golden_lines_of_t5(test_data):
    golden = read_golden(test_data / "golden/t5/tokenization_seed1.jsonl.gz")
    tokenizer = open_tokenizer(str(test_data / "vocabs/t5/spiece.model"), do_lower_case=True)
    assert rows(tokenizer, [row["text"] for row in golden]) == [row["ids"] for row in golden]
    for row in golden:
        assert tokenizer.encode_with_offsets(row["text"])[0] == row["ids"]
    vocabulary = tokenizer.vocabulary
    assert vocabulary.size == 32100 and vocabulary.tokens[32099] == "\u2581<extra_id_0>"
    assert (vocabulary.sep_id, vocabulary.cls_id, vocabulary.pad_id) == (1, None, 0)
    assert vocabulary.layout == Layout(0, 0, 1)
    assert not tokenizer.do_lower_case and not tokenizer.has_choice_of_case
    assert tokenizer.encode("<extra_id_3> </s>")[0] == 32096


def test_golden_lines_of_deberta(test_data, tmp_path):
    folder = test_data / "golden/deberta/tokenizer"
    golden, tokenizer = read_golden(folder / "lines.jsonl.gz"), open_tokenizer(str(folder))
    assert rows(tokenizer, [row["text"] for row in golden]) == [row["ids"] for row in golden]
    for row in golden:
        assert tokenizer.encode_with_offsets(row["text"])[0] == row["ids"]
        assert tokenizer.tokenize(row["text"]) == row["pieces"]
    vocabulary = tokenizer.vocabulary
    assert (vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.unk_id,
            vocabulary.mask_id, vocabulary.size) == (0, 1, 2, 3, 600, 601)
    first, second = map(tokenizer.encode, pair := ("It was over.", "The end."))
    features = tokenizer(pair)
    assert features["input_ids"][0].tolist() == [1, *first, 2, *second, 2]
    assert features["segment_ids"][0].tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    tokenizer.save(str(tmp_path))
    assert (tmp_path / "spm.model").read_bytes() == (folder / "spm.model").read_bytes()
    assert open_tokenizer(str(tmp_path)).describe() == tokenizer.describe()
    for key in ("do_lower_case", "split_by_punct"):
        (tmp_path / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "DebertaV2Tokenizer", key: True}))
        with pytest.raises(InputError, match=f"{key} is True, but .*spm.model"):
            open_tokenizer(str(tmp_path))


# A model of our own: no files, and pieces that end in commas and are more than one without.

@pytest.fixture(scope="module")
def content():
    """A small model with the special tokens of ALBERT."""
    text = [line for line in [*HARD_LINES, *random_lines(300, seed=6)] if line.strip("\0 ")]
    text += ["in 1998, and 2010, 19 3, the cat (sat) on mats, 7, x7, 5"] * 40
    return sentencepieces.train(text, 1000, **sentencepieces.ALBERT, character_coverage=0.98,
                                user_defined_symbols=["\u25817,"])


@pytest.fixture(params=[True, False], ids=["lower", "cased"])
def tokenizer(request, content, tmp_path):
    (tmp_path / "own.model").write_bytes(content)
    return open_tokenizer(str(tmp_path), request.param)


def check(tokenizer, lines):
    for line, ids in zip(lines, rows(tokenizer, lines)):
        assert tokenizer.encode(line) == ids, ascii(line)
        again, offsets = tokenizer.encode_with_offsets(line)
        assert again == ids and len(tokenizer.word_starts(line)) == len(ids)
        assert all(0 <= start <= end <= len(line) for start, end in offsets)
        assert [start for start, _ in offsets] == sorted(start for start, _ in offsets)
        for index, (start, end) in zip(ids, offsets):
            part = line[start:end]
            assert not part[:1].isspace(), ascii((part, line))
            piece = tokenizer.vocabulary.tokens[index].lstrip("\u2581")
            # What the model's own normalization drops belongs to a neighbour.
            if line.isascii() and line.isprintable() and index > 4:
                assert (part.lower() if tokenizer.do_lower_case else part) == piece


def test_hard_and_random_lines(tokenizer):
    check(tokenizer, [*HARD_LINES, *random_lines(400, seed=7), "", " ", "7, x 7,8 \t 17,"])


def test_a_number_and_its_comma_are_two_pieces(tokenizer):
    vocabulary = tokenizer.vocabulary
    assert "\u25817," in vocabulary.ids
    ids, offsets = tokenizer.encode_with_offsets(" a 7, b")
    found = [(vocabulary.tokens[index], *offset) for index, offset in zip(ids, offsets)]
    assert (",", 4, 5) in found and "\u25817," not in [piece for piece, *_ in found]


def test_long_lines_are_read_in_slices(tokenizer, monkeypatch):
    lines = [" ".join(random_lines(100, seed=8)), "the cat sat, 7, 8 " * 300]
    lines = [" ".join(line.replace("\0", "").split()) for line in lines]
    expected = rows(tokenizer, lines)
    monkeypatch.setattr(encoding, "BLOCK_CHARS", 100)
    assert rows(tokenizer, lines) == expected


@odd_batches
def test_lengths_of_odd_batches(tokenizer, lines):
    assert rows(tokenizer, lines) == [
        tokenizer.encode(line.replace("\ud800", "\ufffd")) for line in lines]


def test_other_processes_and_folders_get_the_same_tokenizer(tokenizer, content, tmp_path):
    (tmp_path / "copy").mkdir()
    tokenizer.save(str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "spiece.model").read_bytes() == content
    lower = tokenizer.describe()["do_lower_case"]
    for copy in (pickle.loads(pickle.dumps(tokenizer)),
                 open_tokenizer(str(tmp_path / "copy"), lower)):
        assert copy.describe() == tokenizer.describe() == {
            "name": "sentencepiece", "do_lower_case": lower}
        assert rows(copy, HARD_LINES) == rows(tokenizer, HARD_LINES)


def test_settings_of_transformers(tmp_path, content):
    (tmp_path / "spiece.model").write_bytes(content)
    line = "Caf\u00e9 \u1ebd A\u0301 \u00fcber"
    library = sentencepiece.SentencePieceProcessor(model_proto=content)
    for lower in (False, True):
        (tmp_path / "tokenizer_config.json").write_text(
            json.dumps({"keep_accents": True, "do_lower_case": lower}))
        opened = open_tokenizer(str(tmp_path))
        assert opened.describe() == {
            "name": "sentencepiece", "do_lower_case": lower, "keep_accents": True,
            "join_quotes": True}
        expected = library.encode(line.lower() if lower else line)
        assert opened.encode(line) == opened.encode_with_offsets(line)[0] == expected
        assert pickle.loads(pickle.dumps(opened)).encode(line) == expected
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))
        opened = open_tokenizer(str(tmp_path))
        assert opened.do_lower_case == lower and opened.encode(line) != expected


def test_a_capital_that_becomes_two_characters_keeps_the_offsets(tmp_path, content):
    """U+0130 is the one character whose lower case has more characters than itself."""
    (tmp_path / "spiece.model").write_bytes(content)
    opened = open_tokenizer(str(tmp_path), True, keep_accents=True)
    for line in ("\u0130zmir and \u0130\u0130 here", "x\u0130"):
        ids, offsets = opened.encode_with_offsets(line)
        assert ids == opened.encode(line)
        # The parts cover every character but the blanks, in order.
        assert {place for start, end in offsets for place in range(start, end)} == {
            place for place, char in enumerate(line) if char != " "}
        assert offsets == sorted(offsets) and offsets[-1][1] == len(line)


def test_quotation_marks_of_transformers(tmp_path, content):
    """AlbertTokenizer of transformers joins two characters to one mark, which the original does not.
    """
    (tmp_path / "spiece.model").write_bytes(content)
    line, joined = "a ``b'' c", 'a "b" c'
    plain = open_tokenizer(str(tmp_path))
    assert plain.encode(line) != plain.encode(joined)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    opened = open_tokenizer(str(tmp_path))
    assert opened.encode(line) == opened.encode_with_offsets(line)[0] == plain.encode(joined)
    assert opened.encode_with_offsets(line)[1][-1] == (8, 9)
    (tmp_path / "saved").mkdir()
    opened.save(str(tmp_path / "saved"))
    for copy in (open_tokenizer(str(tmp_path / "saved")), pickle.loads(pickle.dumps(opened))):
        assert copy.encode(line) == plain.encode(joined)


def test_refusals(tmp_path, content):
    path = tmp_path / "spiece.model"
    with pytest.raises(InputError, match="can't be read"):
        open_tokenizer(str(path))
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="is not a model of SentencePiece"):
        open_tokenizer(str(path))
    with pytest.raises(InputError, match="ALBERT .*XLNet .*T5"):
        make_vocabulary(content.replace(b"[CLS]", b"[KLS]"), "it")
    assert set(T5.roles) < set(ALBERT.roles)
