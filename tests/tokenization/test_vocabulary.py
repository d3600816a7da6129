"""Vocabularies, their special tokens and their case; two vocabularies in one."""

import hashlib
import pickle
import types

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tokenization import (
    DualTokenizer,
    DualVocabulary,
    Vocabulary,
    WordpieceTokenizer,
    check_case,
    open_tokenizer,
)
from bert_tf.tokenization.vocabulary import Layout, check_fits
from tests.programs import refused

SPECIAL = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"


def write(folder, content):
    path = folder / "vocab.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_reads_tokens_ids_and_hash(tmp_path):
    path = write(tmp_path, SPECIAL + "the\r\n##s \n\u0085x\nlast")
    vocabulary = Vocabulary.from_file(path)
    assert vocabulary.tokens[5:] == ["the", "##s", "x", "last"]
    assert vocabulary.ids["last"] == 8 and vocabulary.size == 9
    assert vocabulary.hash == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id,
            vocabulary.mask_id) == (0, 1, 2, 3, 4)


def test_a_byte_order_mark_is_no_capital_letter(tmp_path):
    content = (SPECIAL + "a\nb\n").encode()
    plain, marked = (open_tokenizer(str(write(tmp_path, mark + content)))
                     for mark in (b"", b"\xef\xbb\xbf"))
    assert marked.do_lower_case and marked.vocabulary.tokens == plain.vocabulary.tokens
    assert marked.encode("A b") == plain.encode("A b") == [5, 6]


def test_bert_pads_with_0_whatever_token_that_is(tmp_path):
    assert Vocabulary.from_file(write(tmp_path, "a\n" + SPECIAL[6:] + "[PAD]\n")).pad_id == 0


def test_empty_lines_keep_the_ids_of_what_follows(tmp_path):
    vocabulary = Vocabulary.from_file(write(tmp_path, SPECIAL + "\na\n\u2028\nb\n"))
    assert vocabulary.ids["a"] == 6 and vocabulary.ids["b"] == 8


@pytest.mark.parametrize("more, name", [
    (["</s>", "a"], "WordpieceTokenizer"), (["a", "</s>"], "WordpieceTokenizer"),
    (["<S>", "</S>", "<UNK>"], "WordpieceTokenizer"), (None, "SequenceTokenizer")])
def test_a_vocabulary_with_berts_special_tokens_is_wordpiece(tmp_path, more, name):
    """Whatever marks of other systems are among its tokens."""
    content = "a\n</s>\n" if more is None else SPECIAL + "\n".join(more) + "\n"
    assert type(open_tokenizer(str(write(tmp_path, content)))).__name__ == name


def test_elmos_words_are_decoded_whenever_they_were_met(tmp_path):
    tokenizer = open_tokenizer(str(write(tmp_path, "<S>\n</S>\n<UNK>\na\n")))
    for text in ("a new", "a newer word"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_released_vocabularies(test_data):
    sizes = {"uncased": 30522, "cased": 28996, "chinese": 21128}
    for name, size in sizes.items():
        vocabulary = Vocabulary.from_file(test_data / f"vocabs/bert-base-{name}/vocab.txt")
        assert (vocabulary.size, vocabulary.tokens[vocabulary.mask_id]) == (size, "[MASK]")


@pytest.mark.parametrize("content, parts", [
    ("", ["is empty"]),
    ("a\nb\n[UNK]\n", ["[CLS], [SEP], [MASK]", "3 lines"]),
    (SPECIAL + "a\nb\na\n", ["'a'", "line 6", "line 8"]),
    (SPECIAL.encode() + b"ab\xff\n", ["UTF-8", "line 6", "byte 3"]), (None, ["can't be read"])])
def test_refusals_name_the_file_and_the_line(tmp_path, content, parts):
    path = tmp_path / "absent.txt" if content is None else write(tmp_path, content)
    with refused(path, *parts):
        Vocabulary.from_file(path)


def test_special_tokens_have_roles():
    roles = {"cls": "<s>", "sep": "</s>", "pad": "<pad>", "mask": "<mask>"}
    vocabulary = Vocabulary(["<s>", "<pad>", "</s>", "a", "<mask>"], roles=roles,
                            layout=Layout(1, 2, 1))
    assert (vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id, vocabulary.pad_id) == (
        0, 2, 4, 1)
    assert vocabulary.unk_id is None and vocabulary.layout.between == 2
    with pytest.raises(InputError, match="lacks <mask>"):
        Vocabulary(["<s>", "<pad>", "</s>"], roles=roles)


@pytest.mark.parametrize("rows, fits", [(6, False), (7, True), (8, True), (134, True),
                                        (135, False)])
def test_a_model_has_a_row_for_each_token_and_at_most_127_more(rows, fits):
    vocabulary = Vocabulary([*SPECIAL.split(), "a", "b"])
    if fits:
        check_fits(vocabulary, rows)
    else:
        with pytest.raises(InputError, match=f"--vocab_file=v has 7 tokens, but the model has {rows}; "
                           r".* new words \(bert-convert-checkpoint --vocab_file\)"):
            check_fits(vocabulary, rows, "--vocab_file=v")


def test_the_largest_tables_have_up_to_999_rows_more():
    vocabulary = types.SimpleNamespace(size=250_102)
    check_fits(vocabulary, 251_000)
    with pytest.raises(InputError, match="the vocabulary has 250,102 tokens"):
        check_fits(vocabulary, 251_102)


def test_the_case_of_a_vocabulary_is_seen(tmp_path):
    lower, cased = (Vocabulary([*SPECIAL.split(), "the", word]) for word in ("an", "An"))
    assert lower.looks_lower_case() and not cased.looks_lower_case()
    check_case(WordpieceTokenizer(lower, True), "v")
    check_case(WordpieceTokenizer(cased, False), "v")
    with pytest.raises(InputError, match="v has tokens with capital .*--do_lower_case=False"):
        check_case(WordpieceTokenizer(cased, True), "v")
    with pytest.raises(InputError, match="v has no token with a capital .*give --do_lower_case"):
        check_case(WordpieceTokenizer(lower, False), "v")
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nthe\n")     # of ELMo, always cased
    check_case(open_tokenizer(str(tmp_path)), "v")
    (tmp_path / "added_tokens.json").write_text('{"<e1>": 4}')
    check_case(open_tokenizer(str(tmp_path)), "v")


@pytest.mark.parametrize("words, lower, accents", [
    (["the", "\u00e9t\u00e9", "##\u00e9"], True, {"strip_accents": False}),
    (["\ud55c", "##\uad6d", "the"], True, {"strip_accents": False}),
    (["\ud55c", "##\uad6d"], False, {}), (["\u30ab", "##\u30ac"], False, {}),
    (["\u0915\u093f", "##\u0941"], False, {}), (["\u00c4pfel", "an"], False, {}),
    (["\u4e2d", "##\u56fd", "<S>"], True, {}), (["the", "[MASK]ed", "caf"], True, {})])
def test_case_and_accents_are_those_of_the_tokens(tmp_path, words, lower, accents):
    """Without another description, text keeps what makes it into tokens."""
    opened = open_tokenizer(str(write(tmp_path, SPECIAL + "\n".join(words))))
    assert (opened.do_lower_case, opened.settings) == (lower, accents)
    for word in words:
        if word.isalpha():
            assert opened.tokenize(word) == [word]
    # An explicit case leaves the accents to the tokens; explicit accents count.
    again = open_tokenizer(str(tmp_path), True)
    assert all(again.tokenize(word) == [word] for word in words
               if word.isalpha() and word.islower())
    assert open_tokenizer(str(tmp_path), True, strip_accents=True).settings == {}


def test_a_few_odd_tokens_show_nothing(test_data, tmp_path):
    """Words that users added, and letters of a script that Unicode divided later."""
    for name, lower in (("uncased", True), ("cased", False), ("chinese", True)):
        path = test_data / f"vocabs/bert-base-{name}/vocab.txt"
        tokenizer = open_tokenizer(str(path))
        assert tokenizer.do_lower_case == lower and not tokenizer.settings
        with open(tmp_path / "vocab.txt", "wb") as file:
            file.write(path.read_bytes() + "COVIDs\nCaf\u00e9s\n\u13a0\n".encode())
        assert open_tokenizer(str(tmp_path)).describe() == tokenizer.describe()


def test_the_file_beside_a_vocabulary_counts_and_is_its_own(tmp_path, capsys):
    path = write(tmp_path, SPECIAL + "the\ncaf\u00e9\n")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert open_tokenizer(str(path)).settings == {}         # as in transformers
    assert "the vocabulary has tokens with accents; if the model" in capsys.readouterr().err
    own = WordpieceTokenizer(Vocabulary.from_file(path), False)
    own.describe_beside(str(tmp_path / "my.txt"))
    (tmp_path / "my.txt").write_bytes(path.read_bytes())
    assert open_tokenizer(str(tmp_path / "my.txt")).describe() == own.describe()
    assert open_tokenizer(str(path)).do_lower_case
    (tmp_path / "vocab.json").write_text("{}")      # which the folder's file may describe
    own.describe_beside(str(path))
    assert open_tokenizer(str(path)).describe() == own.describe()
    assert not capsys.readouterr().err.count("lacks")


def test_pieces_of_sentencepiece_are_refused(tmp_path):
    path = write(tmp_path, SPECIAL + "\u2581the\ns\n")
    with pytest.raises(InputError, match=f"{path}.* has pieces of SentencePiece, such as"):
        open_tokenizer(str(path))
    assert open_tokenizer(str(write(tmp_path, SPECIAL + "the\n##s\n\u2581x\n")))


# Two vocabularies

BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LARGE = Vocabulary([*BERT_SPECIAL, "good", "film", "##s", "a", "un", "##seen", ".", "b"])
SMALL = Vocabulary([*BERT_SPECIAL, *"goflmsun.a", *(f"##{letter}" for letter in "odilmsen"), ""])
LINES = ["Good films.", "", "a good unseen film  .", "zzz films b", "\x00", "unseen"]


def make(share):
    return DualTokenizer(DualVocabulary([LARGE, SMALL]), True, share)


def words_of(ids, tokenizer):
    starts = np.flatnonzero(~tokenizer.continues[ids])
    return [part.tolist() for part in np.split(ids, starts[1:])]


def test_each_word_is_split_with_one_of_both():
    first, second = (WordpieceTokenizer(vocabulary) for vocabulary in (LARGE, SMALL))
    for share, plain, offset in ((0.0, first, 0), (1.0, second, LARGE.size)):
        ids, lengths = make(share).encode_lines(LINES)
        expected, wanted = plain.encode_lines(LINES)
        assert (ids - offset).tolist() == expected.tolist()
        assert lengths.tolist() == wanted.tolist() and ids.dtype == np.int32
    mixed, text = make(0.5), ["good film . a"] * 300
    ids, lengths = mixed.encode_lines(text)
    assert [part.tolist() for part in mixed.encode_lines(text)] == [ids.tolist(), lengths.tolist()]
    found = words_of(ids, mixed)
    options = [[words_of(one.encode_lines(text[:1])[0], one)[place] for one in (make(0), make(1))]
               for place in range(4)]
    chosen = [options[place % 4].index(word) for place, word in enumerate(found)]
    assert len(found) == 1200 and abs(np.mean(chosen) - 0.5) < 0.06
    sizes = np.reshape(list(map(len, found)), (300, 4)).sum(1)
    assert sizes.tolist() == lengths.tolist()


def test_two_vocabularies_are_one():
    both = DualVocabulary([LARGE, SMALL])
    assert both.size == LARGE.size + SMALL.size
    assert (both.cls_id, both.mask_id, both.pad_id) == (2, 4, 0)
    assert both.hash not in (LARGE.hash, SMALL.hash) and both.parts == (LARGE, SMALL)
    with pytest.raises(InputError, match="--second_share is 2"):
        make(2)


def test_files_that_are_not_mixed(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(LARGE.tokens) + "\n")
    path = str(tmp_path / "vocab.txt")
    assert DualTokenizer.open(path, path, True, 0.5).vocabulary.size == 2 * LARGE.size
    (tmp_path / "tokenizer_config.json").write_text('{"strip_accents": false}')
    opened, plain = DualTokenizer.open(path, path, True, 0.0), WordpieceTokenizer(
        LARGE, True, strip_accents=False)
    assert opened.encode("Göod film") == plain.encode("Göod film")
    assert opened.describe() == pickle.loads(pickle.dumps(opened)).describe()
    assert opened.describe()["strip_accents"] is False
    with pytest.raises(InputError, match="nowhere.txt"):
        DualTokenizer.open(path, str(tmp_path / "nowhere.txt"), True, 0.5)
