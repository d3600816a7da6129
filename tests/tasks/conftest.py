"""A vocabulary of single letters, so that a text's tokens can be seen."""

import string

import pytest

from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

LETTERS = [*string.ascii_lowercase, *string.digits]


@pytest.fixture
def tokenizer():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *LETTERS,
              *(f"##{letter}" for letter in LETTERS)]
    return WordpieceTokenizer(Vocabulary(tokens))
