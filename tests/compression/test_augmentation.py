"""Further texts keep to the paper's probabilities, and marks in them become the mask token."""

import collections
import gzip
import lzma

import numpy as np
import pytest

from bert_tf.compression.augmentation import MASK, MarkingTokenizer, random_words
from bert_tf.compression.transfer import TransferSource
from bert_tf.tasks.task import Split, Task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

TEXTS = ["the film was good", "a bad film", "the good the bad"]
TAGS = {"the": "D", "a": "D", "film": "N", "was": "V", "good": "A", "bad": "A"}


def tagger(texts):
    return [[TAGS[word] for word in text.split()] for text in texts]


def test_words_are_masked_or_replaced_by_their_part_of_speech():
    augment = random_words(iter(TEXTS), tagger, copies=1, ngram_prob=0.0)
    counts, total = collections.Counter(), 0
    for number in range(20_000):
        for copy, in augment(["the film was good"], number):
            counts.update(copy.split())
            assert [word if word == MASK else TAGS[word] for word in copy.split()] == [
                tag if word != MASK else MASK for tag, word in zip("DNVA", copy.split())]
        total += 4
    # Copies that change nothing are left out, so that the counts are of masked and new words alone.
    assert counts[MASK] / total == pytest.approx(0.1, abs=0.005)
    # Of "D" there are the, the, the, a; of "A" good, good, bad, bad.
    assert counts["a"] / 20_000 == pytest.approx(0.1 / 4, abs=0.005)
    assert counts["bad"] / 20_000 == pytest.approx(0.1 / 2, abs=0.005)


def test_copies_are_a_function_of_seed_and_number_and_differ():
    augment = random_words(iter(TEXTS), None, copies=30, ngram_prob=1.0, seed=3)
    copies = augment(["the film was good"], 7)
    assert copies == augment(["the film was good"], 7) != augment(["the film was good"], 8)
    assert len({tuple(copy) for copy in copies}) == len(copies)
    assert ["the film was good"] not in copies
    assert all(len(text.split()) <= 4 for text, in copies)


def test_of_pairs_two_thirds_change_one_text():
    augment = random_words(iter(TEXTS * 5), tagger, copies=9, ngram_prob=0.0)
    pair = [" ".join(TEXTS * 12), " ".join(TEXTS * 10)]
    changed = collections.Counter(
        tuple(one != other for one, other in zip(copy, pair)) for copy in augment(pair, 1))
    assert changed == {(True, False): 3, (False, True): 3, (True, True): 3}


def test_marks_are_the_mask_token():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[", "]", "mask", "a", "film"]
    plain = WordpieceTokenizer(Vocabulary(tokens), True)
    ids, lengths = MarkingTokenizer(plain).encode_lines(
        ["a film", f"{MASK} film a {MASK}", "", MASK, "film"])
    assert lengths.tolist() == [2, 4, 0, 1, 1]
    assert ids.tolist() == [8, 9, 4, 9, 8, 4, 4, 9]
    assert MarkingTokenizer(plain).vocabulary is plain.vocabulary
    without = MarkingTokenizer(plain).encode_lines(["a", "film"])
    assert all(np.array_equal(*both) for both in zip(without, plain.encode_lines(["a", "film"])))


@pytest.mark.parametrize("ending, pack", [("", bytes), (".gz", gzip.compress),
                                          (".xz", lzma.compress)])
def test_further_tables_have_columns_plain_or_compressed(tmp_path, ending, pack):
    task = Task("own", "classification", {"train": Split(("a.csv",), ("body",), "label",
                                                         format="csv")}, ("no", "yes"))
    path = tmp_path / f"more.csv{ending}"
    path.write_bytes(pack(b"id,body\n1,the film\n2,a film\n"))
    source = TransferSource(task, "train", "a.csv", further=(str(path),), has_own=False)
    assert [example.texts for example in source.examples()] == [["the film"], ["a film"]]
