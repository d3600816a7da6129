"""Words are added to a vocabulary as the tokenizer will see them."""

import pytest

from bert_tf.errors import InputError
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from data_prep import build_vocab, extend_vocab

TOKENS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "the", "##s"]


@pytest.fixture
def extend(tmp_path):
    """function(**flags): runs the job; returns the new `Vocabulary`."""
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))

    def run(**flags):
        extend_vocab.main(extend_vocab.ExtendVocabFlags(
            **{"init_vocab_file": str(tmp_path / "vocab.txt"),
               "output_file": str(tmp_path / "new" / "vocab.txt"), **flags}))
        return Vocabulary.from_file(tmp_path / "new" / "vocab.txt")
    return run


def test_words_go_to_the_end(extend, capsys):
    vocabulary = extend(words=["Covid", "the", "café", "covid", "##ing"])
    assert vocabulary.tokens == [*TOKENS, "covid", "cafe", "##ing"]
    assert "12 tokens, 3 new (covid, cafe, ##ing); 1 were there." in capsys.readouterr().out
    assert WordpieceTokenizer(vocabulary).tokenize("Covid thes Café") == [
        "covid", "the", "##s", "cafe"]


def test_unused_slots_first(extend):
    assert extend(words=["a", "b", "c"], fill_unused=True).tokens == [
        "[PAD]", "a", *TOKENS[2:6], "b", "the", "##s", "c"]
    assert extend(words=["a"], fill_unused=True).tokens == ["[PAD]", "a", *TOKENS[2:]]


def test_cased(extend):
    assert extend(words=["Covid", "Café"], do_lower_case=False).tokens[-2:] == ["Covid", "Café"]


def test_settings_beside_the_vocabulary_count(extend, tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"strip_accents": false}')
    assert extend(words=["Café"]).tokens[-1] == "café"


def test_files(extend, tmp_path):
    (tmp_path / "words.txt").write_text("one\n\ntwo\r\n中\n")
    assert extend(input_file=[str(tmp_path / "words.txt")]).tokens[-3:] == ["one", "two", "中"]


@pytest.mark.parametrize("words, message", [
    (["covid-19"], r"'covid-19' is not a .*'covid - 19'"), (["two words"], "single word"),
    (["x" * 201], "single word"), (["\u00ad"], "nothing"), ([], "no word to add"),
    (["##"], "single word")])
def test_what_the_tokenizer_would_never_see(extend, tmp_path, words, message):
    with pytest.raises(InputError, match=message):
        extend(words=words)
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_not_text(extend, tmp_path):
    (tmp_path / "words.txt").write_bytes(b"one\n\xff\xfe\n")
    with pytest.raises(InputError, match="words.txt, line 2"):
        extend(input_file=[str(tmp_path / "words.txt")])


def test_other_tokenizers_are_refused(extend, tmp_path):
    build_vocab.main(build_vocab.BuildVocabFlags(
        [str(tmp_path / "vocab.txt")], str(tmp_path / "vocab.json"), "byte_bpe", vocab_size=270))
    with pytest.raises(InputError, match="to a WordPiece vocabulary, .*vocab.json is byte_bpe"):
        extend(init_vocab_file=str(tmp_path / "vocab.json"), words=["word"])
    assert not (tmp_path / "new").exists()


def test_an_output_that_is_an_input_or_a_folder_is_refused(extend, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("one\n")
    with pytest.raises(InputError, match="is also the output file"):
        extend(input_file=[str(words)], output_file=str(words))
    with pytest.raises(InputError, match="is a folder; name a file"):
        extend(words=["one"], output_file=str(tmp_path))
    assert words.read_text() == "one\n"
