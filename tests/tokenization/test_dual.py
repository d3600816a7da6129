"""Each word of a text is split with one of two vocabularies."""

import pickle

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tokenization import DualTokenizer, DualVocabulary, Vocabulary, WordpieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LARGE = Vocabulary([*SPECIAL, "good", "film", "##s", "a", "un", "##seen", ".", "b"])
SMALL = Vocabulary([*SPECIAL, *"goflmsun.a", *(f"##{letter}" for letter in "odilmsen"), ""])
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
