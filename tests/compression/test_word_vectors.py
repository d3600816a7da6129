"""Files of word vectors: against a reading by hand, word by word."""

import gzip

import numpy as np
import pytest

from bert_tf.compression.word_vectors import read_word_vectors, vectors_of_tokens
from bert_tf.errors import InputError
from bert_tf.tokenization import open_tokenizer

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", "paris", "the", "dog"]
# Exact before lower case, the first of each; words with spaces and bytes that are no text are read.
LINES = [b"The 9 9 9", b"the 1 2 3", b"Paris 4 5 6", b"PARIS 7 7 7", b". . . 1 1 1",
         b"caf\xc3 1 1 1", b"cat -1e-2 0.5 2 ", b"cat 8 8 8", b"zebra 0 0 0"]
FORMS = {"glove": LINES, "word2vec": [b"9 3", *LINES]}


@pytest.fixture(name="tokenizers")
def fixture_tokenizers(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    return {lower: open_tokenizer(str(tmp_path / "vocab.txt"), lower) for lower in (True, False)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_packed", [False, True])
def test_vectors_of_tokens(form, is_packed, tokenizers, tmp_path, capsys):
    path = tmp_path / "vectors"
    content = b"\n".join(FORMS[form]) + b"\n"
    path.write_bytes(gzip.compress(content) if is_packed else content)
    assert [word for word, _ in read_word_vectors(str(path), "word_vectors")] == [
        "The", "the", "Paris", "PARIS", ". . .", "caf\ufffd", "cat", "cat", "zebra"]
    ids, rows = vectors_of_tokens(str(path), tokenizers[True], 3, "word_vectors")
    assert [TOKENS[index] for index in ids] == ["cat", "paris", "the"]
    np.testing.assert_array_equal(rows, np.float32([[-0.01, 0.5, 2], [4, 5, 6], [1, 2, 3]]))
    assert "vectors of 3 of 10 tokens (30.0%), 1 of them in lower case alone" in (
        capsys.readouterr().out)
    ids, _ = vectors_of_tokens(str(path), tokenizers[False], 3, "word_vectors")
    assert [TOKENS[index] for index in ids] == ["cat", "the"]


@pytest.mark.parametrize("content, message", [
    ("a 1 2\nb 1\n", "line 2 is not a word and 2 numbers"),
    ("a 1 2\ncat 1 x\n", "line 2 is not a word and 2 numbers"),
    ("2 2\ncat 1 nan\n", "line 2 is not a word and 2 numbers"),
    ("word\n", "line 1 is not a word"), ("", "has no vectors"), ("2 2\n", "has no vectors"),
    ("a 1 2 3\n", "embedding_size is"),
    ("zebra 1 2\n", "has none of the vocabulary's tokens")])
def test_files_that_are_refused(content, message, tokenizers, tmp_path):
    path = tmp_path / "vectors"
    path.write_text(content)
    with pytest.raises(InputError, match=f"--word_vectors: .*{message}"):
        vectors_of_tokens(str(path), tokenizers[True], 2, "word_vectors")
