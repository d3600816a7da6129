"""Copies of texts to learn from: masked and replaced words, TinyBERT's rules; vectors of words."""

import collections
import gzip
import lzma
import random

import numpy as np
import pytest

from bert_tf import networks
from bert_tf.checkpoints import keras_file
from bert_tf.compression.augmentation import MASK, MarkingTokenizer, random_words
from bert_tf.compression.masked_words import MaskedWords, WordModel, WordVectors
from bert_tf.compression.transfer import TransferSource
from bert_tf.compression.word_vectors import read_word_vectors, vectors_of_tokens
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.objectives import MaskedLM
from bert_tf.tasks.task import Split, Task
from bert_tf.tokenization import open_tokenizer
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from bert_tf.training import Learner

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


# TinyBERT's copies

KNOWN = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "dog", "sat", "mat", "##s",
         "##ly", "on", "42", ".", "slow", "green", "a"]
TEXT = "The cats sat on the green mat 42 slowly."


class Words:
    """Candidates that say their place."""

    def words(self, text):
        words = text.lower().replace(".", " .").split()
        return words, [[7, 8] if word in ("cats", "slowly") else [5] for word in words]

    def candidates(self, pieces, places):
        return [[f"m{place}", f"n{place}"] if place != 6 else [] for place in places]


@pytest.mark.parametrize("seed", [0, 1])
def test_copies_follow_the_rules(seed):
    made = MaskedWords(Words(), {"cats": ["dogs", "cows"]}.get, copies=30, seed=seed)
    found = made([TEXT, "dog"], 5)
    # The rules of DataAugmentor.augment: one choice and one coin for each word and copy.
    draws, expected, current = random.Random(f"{seed} 5"), [], [TEXT, "dog"]
    for side, (text, options) in enumerate((
            (TEXT, {1: ["dogs", "cows"], 2: ["m2", "n2"], 5: ["m5", "n5"], 6: ["mat"],
                    8: ["slowly"]}), ("dog", {0: ["m0", "n0"]}))):
        copies = [text]
        for _ in range(30):
            words = text.lower().replace(".", " .").split()
            for place, others in options.items():
                word = draws.choice(others)
                if draws.random() < 0.4:
                    words[place] = word
            if " ".join(words) not in copies:
                copies.append(" ".join(words))
        for copy in copies:
            current[side] = copy
            expected.append(list(current))
    assert found == [copy for copy in expected if copy != [TEXT, "dog"]]
    assert len({tuple(copy) for copy in found}) > 10 and found == made([TEXT, "dog"], 5)
    assert found[-1][0] == found[-2][0] != TEXT     # the second text goes with the last first one


def test_a_killed_augmentation_goes_on(tmp_path, capsys):
    class Dying(Words):
        left, asked = 170, 0

        def words(self, text):
            self.asked += 1
            if self.asked > self.left:
                raise KeyboardInterrupt
            return super().words(text)

    def make(model, **made_of):
        return MaskedWords(model, copies=2, texts=lambda: [*texts, texts[0]], made_of=made_of,
                           folder=str(tmp_path / "augmentation"))

    texts, models = [f"cats {number} sat" for number in range(250)], [Dying() for _ in range(4)]
    with pytest.raises(KeyboardInterrupt):
        make(models[0])([texts[0]], 0)
    expected = MaskedWords(Words(), copies=2)([texts[7]], 7)
    models[3].left = 250
    for model, made_of in zip(models[1:], ({}, {}, {"masked_lm": "another"})):
        assert make(model, **made_of)([texts[7]], 7) == expected
    assert [model.asked for model in models[1:]] == [150, 0, 250]
    told = capsys.readouterr().out
    assert "reads 250 texts, each once a word, in 3 pieces\n1 of 3 pieces are finished, ab" in told
    assert "before: 1 of 3\n2 of 3" in told and "kept 3 finished pieces of a job with other" in told


def test_candidates_are_those_of_the_masked_language_model(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(KNOWN) + "\n", encoding="utf-8")
    config = EncoderConfig(vocab_size=len(KNOWN), hidden_size=8, num_hidden_layers=1,
                           num_attention_heads=2, intermediate_size=8, type_vocab_size=2,
                           max_position_embeddings=24)
    learner = Learner(networks.build(config), [MaskedLM(config)])
    learner.objectives[0].output_bias.assign(np.random.default_rng(1).normal(0, 0.1, len(KNOWN)))
    learner.untrained = ("pooler/dense/kernel", "pooler/dense/bias")    # each model draws its own
    learner.save(tmp_path / keras_file.NAME)
    model = WordModel(str(tmp_path))
    assert model.made_of == WordModel(str(tmp_path)).made_of
    words, pieces = model.words("The cats sat on slowly.")
    assert words == ["the", "cats", "sat", "on", "slowly", "."]
    assert [len(part) for part in pieces] == [1, 2, 1, 1, 2, 1]
    ids = [token for part in pieces for token in part]
    row = [2, *ids, 3, *ids, 3]
    row[4] = 4                                      # "sat" after [CLS], the, cat, ##s
    segments = [0] * (len(ids) + 2) + [1] * (len(ids) + 1)
    logits = np.array(learner({
        "input_ids": np.array([row]), "segment_ids": np.array([segments]),
        "masked_lm_positions": np.array([[4]])})["masked_lm"])[0, 0]
    best = [KNOWN[i] for i in np.argsort(-logits)[:15]]
    assert model.words("Càt")[0] == ["cat"]
    assert model.candidates(pieces, [2]) == [[t for t in best if not t.startswith("##")]]
    (tmp_path / "tokenizer_config.json").write_text('{"strip_accents": false}')
    assert WordModel(str(tmp_path)).words("Càt") == (["càt"], [[1]])
    # Of a cased model, as its files say, else as its tokens show.
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    cased = WordModel(str(tmp_path))
    assert cased.words("The cat")[0] == ["The", "cat"] and cased.made_of != model.made_of
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join([*KNOWN[:-1], "The"]) + "\n")
    assert WordModel(str(tmp_path)).words("The cat") == (["The", "cat"], [[17], [6]])


def test_near_words(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("cat 1 0\ndog 0.9 0.1\nmat 0 1\nsat -1 0\n")
    assert WordVectors(str(path)).near("cat")[:2] == ["dog", "mat"]
    assert WordVectors(str(path)).near("cow") == []
    path.write_text("cat 1 0\ndog 0.9\n")
    with pytest.raises(InputError, match="line 2 is not a word and 2 numbers"):
        WordVectors(str(path))


# Vectors of words

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
