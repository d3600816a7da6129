"""Texts to arrays and back, against the features of fine-tuning and the package `tokenizers`."""

import collections

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tokenizers

from bert_tf.errors import InputError
from bert_tf.tokenization import Vocabulary, WordpieceTokenizer, open_tokenizer
from bert_tf.tokenization.encoding import encode_pairs
from data_prep import build_vocab

TEXTS = ["The old house stood near the Z\u00fcrich river.", "Nobody knew: was he late?", "\u4e2d a",
         "It costs 3.50 in New York, don't you think?"]
PAIRS = [("Who came?", "Jane Austen did."), ("A much longer first text than the second.", "Yes"),
         ("One alone.", "")]
FOLDERS = ["bert-base-uncased", "bert-base-cased", "roberta-base", "albert", "t5", "gpt2"]


@pytest.fixture(name="named", scope="module", params=FOLDERS)
def fixture_named(request, test_data):
    return open_tokenizer(str(test_data / "vocabs" / request.param))


@pytest.mark.parametrize("texts", [TEXTS, PAIRS])
def test_rows_are_the_features_of_fine_tuning(named, texts):
    if named.vocabulary.start_id is None and named.vocabulary.layout.before:
        pytest.skip("no class token")
    rows = [text if isinstance(text, tuple) else (text,) for text in texts]
    wanted, _ = encode_pairs(rows, named, 16)
    given = named(texts, 16, pad_to_max=True)
    short = named(texts, 16)
    longest = wanted["input_mask"].sum(1).max()
    for name, values in wanted.items():
        assert given[name].dtype == np.int32 and (given[name] == values).all()
        assert (short[name] == values[:, :longest]).all()
    whole = named(texts)
    assert whole["input_mask"].sum() == sum(named(text)["input_ids"].size for text in texts)


@pytest.mark.parametrize("folder", ["bert-base-uncased", "bert-base-cased"])
def test_ids_and_text_are_those_of_tokenizers(test_data, folder):
    path = test_data / "vocabs" / folder / "vocab.txt"
    theirs = tokenizers.BertWordPieceTokenizer(str(path), lowercase="uncased" in folder)
    theirs.enable_padding()
    ours = open_tokenizer(str(path))
    for texts in (TEXTS, PAIRS[:2]):
        wanted, found = theirs.encode_batch(texts), ours(texts)
        for name, part in (("input_ids", "ids"), ("input_mask", "attention_mask"),
                           ("segment_ids", "type_ids")):
            assert found[name].tolist() == [getattr(row, part) for row in wanted]
        decoder = tokenizers.decoders.WordPiece(cleanup=False)
        assert ours.decode(found["input_ids"]) == [decoder.decode([
            token for token in row.tokens if token not in ("[CLS]", "[SEP]", "[PAD]")])
            for row in wanted]
    assert ours.decode(ours("a")["input_ids"][0], skip_special=False) == "[CLS] a [SEP]"


@pytest.mark.parametrize("folder", ["roberta-base", "albert", "t5"])
def test_text_comes_back(test_data, folder):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / folder))
    for text in (TEXTS[1], TEXTS[3]):
        back = tokenizer.decode(tokenizer.encode(text))
        assert back == (text.lower() if tokenizer.do_lower_case else text)


@pytest.mark.parametrize("first", ["[CLS]", "[SEP]", "[UNK]", "[MASK]", "a"])
def test_special_tokens_are_left_out_whichever_token_is_first(first):
    """Padding has the id 0, whatever token that is."""
    tokens = ["[CLS]", "[SEP]", "[UNK]", "[MASK]", "a", "b", "##c", "[PAD]"]
    tokenizer = WordpieceTokenizer(Vocabulary(sorted(tokens, key=lambda token: token != first)))
    rows = tokenizer([("a bc z",), ("a",), ("a b", "b")])["input_ids"]
    assert tokenizer.decode(rows) == ["a bc [UNK]", "a", "a b b"]


def test_padding_that_texts_have_too(test_data):
    """GPT-2 has no token of padding, whose id 0 is "!"; transformers keeps each such token."""
    gpt2 = open_tokenizer(str(test_data / "vocabs" / "gpt2"))
    texts = ["Hello! It works!!", "!", "a", "No! It did not work at all! ! Never"]
    assert gpt2.decode([gpt2.encode(text) for text in texts]) == texts
    rows = gpt2(texts)["input_ids"]
    assert gpt2.decode(rows) == texts and not rows[1, -5:].any()
    end = gpt2.vocabulary.sep_id
    assert gpt2.decode([0, end, 0, 5]) == "!!&" and gpt2.decode([end, 0, 0]) == ""


@pytest.mark.parametrize("column", [np.array, pd.Series, tf.constant])
def test_arrays_and_columns_are_lists(test_data, column):
    """Of texts, if they are of numpy or pandas; of ids in rows of any length."""
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "bert-base-uncased"))
    ids = [tokenizer.encode(text) for text in ("the house", "a river")]
    assert tokenizer.decode(ids) == tokenizer.decode(column(ids)) == ["the house", "a river"]
    assert tokenizer.decode([*ids, ids[0][:1]]) == ["the house", "a river", "the"]
    assert tokenizer.decode(column(ids[0])) == "the house" and tokenizer.decode(ids[0][1]) == "house"
    assert tokenizer.decode([]) == "" and tokenizer.decode(np.zeros((0, 3), int)) == []
    if column is not tf.constant:
        for name, values in tokenizer(TEXTS).items():
            assert (tokenizer(column(TEXTS))[name] == values).all()


@pytest.mark.parametrize("column", [iter, collections.deque, collections.UserList])
def test_iterators_and_sequences_are_lists(test_data, column):
    """Such as the columns of datasets."""
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "bert-base-uncased"))
    for name, values in tokenizer(PAIRS).items():
        assert (tokenizer(column(PAIRS))[name] == values).all()


def test_rows_of_tables_are_texts(test_data):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "bert-base-uncased"))
    table = pd.DataFrame(PAIRS, columns=["a", "b"])
    for name, values in tokenizer(PAIRS).items():
        assert (tokenizer(table)[name] == values).all()
    for name, values in tokenizer([first for first, _ in PAIRS]).items():
        assert (tokenizer(table[["a"]])[name] == values).all()


def test_what_is_no_text_is_refused(test_data):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "bert-base-uncased"))
    for texts, length, part in (([], None, "no text"), ([3], None, r"text 0 is \(3,\)"),
                                (tf.constant("a"), None, "text 0 is .*Tensor"),
                                ([("a", "b", "c")], None, "a tuple of two"), ("a", 3, "at least 4"),
                                ("a", 4.0, "max_seq_length is 4.0; it must be a whole number"),
                                ("a", "4", "max_seq_length is '4'; ")):
        with pytest.raises(InputError, match=part):
            tokenizer(texts, length)
    assert repr(tokenizer) == "WordpieceTokenizer(30,522 tokens, lower-cases)"
    with pytest.raises(InputError, match="vocabulary is 'vocab.txt'; give a Vocabulary, such as"):
        WordpieceTokenizer("vocab.txt")


def test_ids_without_a_token_are_refused(named):
    for ids in ([-1], [[1, 2], [3, -1]], [1.5], ["a"], None, -1):
        with pytest.raises(InputError, match="there is no token with the id"):
            named.decode(ids)
    assert named.decode([[5], [6, 7]]) == [named.decode([5]), named.decode([6, 7])]
    if not getattr(named, "has_sentinels", False):      # of T5, whose networks have further rows
        with pytest.raises(InputError, match="no token with the id 999999; give whole numbers"):
            named.decode([999999])


def test_nothing_is_cut_without_a_length(tmp_path):
    """GPT's layout gives each text half of a given length: a long one beside a short one is cut."""
    text = tmp_path / "text.txt"
    text.write_text("a house by the sea and a tree by the house\n" * 20)
    build_vocab.main(build_vocab.BuildVocabFlags(
        input_file=[str(text)], output_file=str(tmp_path / "vocab.json"), tokenizer="gpt_bpe",
        vocab_size=60))
    gpt = open_tokenizer(str(tmp_path / "vocab.json"))
    long, short = "a house by the sea and a tree by the house", "a tree"
    found = gpt([(long, short)])["input_ids"][0].tolist()
    first, second = map(list, (gpt.encode(long), gpt.encode(short)))
    assert found[1:len(first) + 1] == first and found[-len(second) - 1:-1] == second
