"""Reading vocab.txt, and the sentences for bad ones."""

import hashlib

import pytest

from bert_tf.errors import InputError
from bert_tf.tokenization import WordpieceTokenizer, check_case, open_tokenizer
from bert_tf.tokenization.vocabulary import Layout, Vocabulary, check_fits, looks_lower_case

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
    (SPECIAL.encode() + b"ab\xff\n", ["UTF-8", "line 6", "byte 3"]),
])
def test_refusals_name_the_file_and_the_line(tmp_path, content, parts):
    path = write(tmp_path, content)
    with pytest.raises(InputError) as error:
        Vocabulary.from_file(path)
    assert all(part in str(error.value) for part in [str(path), *parts])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="absent.txt"):
        Vocabulary.from_file(tmp_path / "absent.txt")


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
        with pytest.raises(InputError, match=f"--vocab_file=v has 7 tokens, but the model has {rows}"):
            check_fits(vocabulary, rows, "--vocab_file=v")


def test_the_case_of_a_vocabulary_is_seen(tmp_path):
    lower, cased = (Vocabulary([*SPECIAL.split(), "the", word]) for word in ("an", "An"))
    assert looks_lower_case(lower) and not looks_lower_case(cased)
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
