"""A vocabulary without files, whose pieces differ for characters and their variants."""

import pytest

from bert_tf.tokenization.vocabulary import Vocabulary

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ0189éßσςıάñａ中文漢ไกภาคा각ᄀ\u1161\u302e\u0301½™²豈😀"


@pytest.fixture(scope="session")
def vocabulary():
    """A small `Vocabulary`: special tokens, symbols, letters, words and endings."""
    special = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    symbols = list(".,-[]#'!?…—“”。（;`·")
    pieces = [*_LETTERS, *(f"##{letter}" for letter in _LETTERS)]
    words = ["plain", "##ing", "##able", "cafe", "café", "un", "mask", "MASK", "##ly", "##"]
    return Vocabulary(special + symbols + pieces + words)
