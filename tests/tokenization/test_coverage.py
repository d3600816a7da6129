"""What a vocabulary cannot spell: shares, merged counts, and the remedy."""

import random
import unicodedata

import numpy as np
import pytest

from bert_tf.tokenization import WordpieceTokenizer, open_tokenizer
from bert_tf.tokenization.coverage import Coverage, join
from bert_tf.tokenization.vocabulary import Vocabulary

HINDI = "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है"
KOREAN = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다"
FLAGS = ("do_lower_case", "strip_accents")


def tokenizer(tokens, lower=False, **settings):
    return WordpieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *tokens]),
                              lower, **settings)


def spelling(text, lower=False):
    """A tokenizer whose vocabulary has all characters of a text."""
    return tokenizer(sorted({form for char in text if not char.isspace()
                             for form in (char, f"##{char}")}), lower)


def seen(opened, texts):
    coverage = Coverage()
    coverage.watch(opened).encode_lines(texts)
    return coverage


def test_a_word_over_the_limit_counts_with_all_its_letters():
    """245 texts of one word of 300 letters are 4% of the tokens and 90% of the characters."""
    texts = ["x" * 300] * 245 + ["a b a b a b a b " * 13] * 55
    coverage = seen(spelling("abx"), texts)
    counts = coverage.counts
    assert counts["tokens"] == 245 + 55 * 104 and counts["unknown_tokens"] == 245
    assert counts["hidden_characters"] == 245 * 300
    assert counts["characters"] == 245 * 300 + 55 * 104
    assert (counts["unknown_texts"], counts["texts"]) == (245, 300)
    assert coverage.shares == ("4.11% unknown tokens (92.78% of the characters); "
                               "245 of 300 texts are nothing else")
    said, = coverage.warnings(FLAGS)
    assert "more than 200 letters" in said and "blanks between the words" in said


def test_characters_equal_those_of_each_word():
    """Words drawn at random, some of letters that the vocabulary lacks."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdyz", k=rng.randint(1, 9))) for _ in range(4000)]
    opened = spelling("abcd")
    lines = [" ".join(words[start:start + 10]) for start in range(0, 4000, 10)]
    hidden = [word for word in words if not set(word) <= set("abcd")]
    whole = seen(opened, lines)
    assert whole.counts["characters"] == sum(map(len, words))
    assert whole.counts["hidden_characters"] == sum(map(len, hidden))
    assert whole.counts["unknown_tokens"] == len(hidden)
    parts = [seen(opened, part) for part in np.array_split(lines, 7)]
    joined = join(part.counts for part in parts)
    assert joined == whole.counts
    # Ways to encode that give the same tokens count the same.
    others = Coverage()
    watched = others.watch(opened)
    for line in lines:
        watched.encode(line)
    for line in lines:
        watched.encode_with_offsets(line)
    assert others.counts["characters"] == 2 * whole.counts["characters"]
    assert others.counts["hidden_characters"] == 2 * whole.counts["hidden_characters"]


def test_of_much_text_a_sample_is_looked_at(monkeypatch):
    monkeypatch.setattr("bert_tf.tokenization.coverage._LOOKED_AT", 1 << 10)
    lines = [f"{'y' * (1 + number % 7)} ab" for number in range(5000)]
    coverage = seen(spelling("ab"), lines)
    exact = sum(len(line.split()[0]) for line in lines)
    assert coverage.counts["hidden_characters"] == pytest.approx(exact, rel=0.1)
    assert coverage.counts["unknown_tokens"] == 5000


@pytest.mark.parametrize("text", [HINDI, "ทั้งหลายเกิดมามีอิสระ", "မြန်မာ စာ", "tất cả mọi người"])
def test_letters_that_lose_their_marks_are_named_with_the_flag_that_keeps_them(text):
    coverage = seen(spelling(text.lower(), lower=True), [text])
    marks = sum(unicodedata.category(char) == "Mn" for char in unicodedata.normalize("NFD", text))
    assert 0.02 < coverage.lost <= marks / sum(not char.isspace() for char in text)
    said = coverage.warnings(FLAGS)[-1]
    assert f"{coverage.lost:.1%} of the letters" in said
    assert said.endswith("give --strip_accents=False, which keeps them.")
    # Where there is no such flag, case does it.
    assert "--do_lower_case=False, which keeps them" in coverage.warnings(("do_lower_case",))[-1]
    assert not seen(spelling(text), [text]).warnings(FLAGS)


def test_hindi_loses_its_vowel_signs():
    coverage = seen(spelling(HINDI, lower=True), [HINDI])
    assert coverage.counts["lost_letters"] == sum(
        unicodedata.category(char) == "Mn" for char in HINDI)


def test_a_vocabulary_without_marks_needs_another_vocabulary():
    coverage = seen(spelling("ecole", lower=True), ["école"])
    said, = coverage.warnings(("vocab_file", *FLAGS))
    assert "20.0% of the letters" in said and said.endswith(
        "make one with bert-build-vocab --tokenizer=wordpiece --strip_accents=False.")
    # Some programs have no flag for it.
    said, = coverage.warnings()
    assert "use a model of cased text" in said and "--" not in said


@pytest.mark.parametrize("letters, lower, text, said", [
    ("abc", False, "ABC CAB ABC", "give --do_lower_case=True, which leaves about 0.0%"),
    ("ABC", True, "ABC CAB ABC", "give --do_lower_case=False, which leaves about 0.0%"),
    (KOREAN, True, KOREAN, "give --strip_accents=False|give --do_lower_case=False"),
    ("abc", True, KOREAN, "vocabulary has the language of the text")])
def test_the_remedy_is_the_setting_that_helps(letters, lower, text, said):
    coverage = seen(spelling(letters, lower), [text])
    assert coverage.is_poor
    assert any(part in coverage.warnings(FLAGS)[0] for part in said.split("|"))
    # Counts of several processes name the same remedy.
    assert Coverage(join([coverage.totals(), {}])).warnings(FLAGS) == coverage.warnings(FLAGS)
    # Without the flag it is a setting of the files.
    if said.startswith("give"):
        assert "in its tokenizer's settings" in coverage.warnings()[0]


def test_accents_that_the_vocabulary_lacks_are_stripped():
    opened = tokenizer(sorted({form for char in "abuo" for form in (char, f"##{char}")}), True,
                       strip_accents=False)
    warning, = seen(opened, ["äbö büa ö"]).warnings(FLAGS)
    assert "give --strip_accents=True, which leaves about 0.0%" in warning


def test_a_text_that_is_known_has_no_warning():
    coverage = seen(tokenizer(["the", "house"]), ["the house"] * 99 + ["the ☃"])
    assert not coverage.warnings(FLAGS) and not coverage.is_poor
    assert coverage.sentence() == "200 tokens, 0.50% unknown tokens (0.13% of the characters)"


def test_parts_of_texts_are_no_texts():
    coverage, opened = Coverage(), spelling("ab")
    coverage.watch(opened).encode_words(["ab", "y"])
    assert coverage.counts["texts"] == 0 and coverage.counts["unknown_tokens"] == 1
    unk, sep = opened.vocabulary.unk_id, opened.vocabulary.sep_id
    coverage.add_rows(np.array([[unk, sep, 0], [unk, 5, sep], [sep, 0, 0]]), opened.vocabulary)
    assert (coverage.counts["unknown_texts"], coverage.counts["texts"]) == (1, 3)


@pytest.mark.parametrize("name, unknown", [("t5", 1), ("albert", 1), ("gpt2", 0),
                                           ("bert-base-chinese", 1)])
def test_kinds_of_tokenizers(test_data, name, unknown):
    """A piece that is only the mark of a blank tells a model nothing about a text."""
    opened = open_tokenizer(str(test_data / "vocabs" / name))
    coverage = seen(opened, ["နှင့်", "the house"])
    assert (coverage.counts["unknown_texts"], coverage.counts["texts"]) == (unknown, 2)
    assert coverage.is_poor == bool(unknown)
    assert not seen(opened, ["the house of the tree"]).counts["unknown_tokens"]


def test_two_vocabularies():
    from bert_tf.tokenization import DualTokenizer, DualVocabulary
    first, second = spelling("ab"), spelling("abc")
    opened = DualTokenizer(DualVocabulary([first.vocabulary, second.vocabulary]), False, 0.5)
    coverage = seen(opened, ["ab ba yyy"] * 50)
    assert coverage.counts["unknown_tokens"] == 50
    assert coverage.counts["hidden_characters"] == 150 and coverage.counts["characters"] == 350
