"""Units from tagged words and from a list of phrases, against slow references."""

import random

import numpy as np
import pytest

from bert_tf.data.text import corpus, units
from bert_tf.errors import InputError
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

PIECES = ("a", "b", "##a", "##b", "c", "!", "ab")


@pytest.fixture(name="tokenizer", scope="module")
def fixture_tokenizer():
    return WordpieceTokenizer(Vocabulary(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES]), do_lower_case=True)


def random_sentences(rng, kinds):
    """Sentences of (word, chunk tag, name tag), of which a run of a tag begins with B- at times."""
    for _ in range(40):
        words = ["".join(rng.choices("abc!", k=rng.randint(1, 4)))
                 for _ in range(rng.randint(1, 9))]
        yield [(word, *(rng.choice(["O", "I-X", "I-Y", "B-X"]) for _ in range(kinds)))
               for word in words]


def expected(sentence, column, tokenizer):
    """(continues its word, continues its unit, is entities) of each token, tag by tag."""
    rows, before = [], "O"
    for word, *tags in sentence:
        tag = tags[column]
        goes_on = tag.startswith("I-") and before[1:] == tag[1:]
        for place in range(len(tokenizer.encode(word))):
            rows.append((place > 0, place > 0 or goes_on, tag != "O"))
        before = tag
    return rows


@pytest.mark.parametrize("column", (0, 1))
def test_words_under_one_tag_are_a_unit(tokenizer, column):
    sentences = list(random_sentences(random.Random(column), 2))
    lines = ["-DOCSTART- -X- O"]
    for number, sentence in enumerate(sentences):
        lines += ["\t".join(row) for row in sentence] + [""]
        lines += {10: [""], 20: ["-DOCSTART- O O", ""]}.get(number, [])
    text = units.TaggedText(lines, tokenizer, column + 1 if column == 0 else -1, [])
    found = corpus.tokenize_documents(text.lines, tokenizer, marker=text.mark)
    wanted = [row for sentence in sentences for row in expected(sentence, column, tokenizer)]
    assert np.array_equal(np.stack([found.continues, found.units, found.entities], 1),
                          np.array(wanted, np.uint8))
    assert [end - first for first, end in found.ranges] == [11, 10, 19]
    assert found.joins("tags") is found.units and found.joins("words") is found.continues
    # With separators, which are units of their own.
    ended = corpus.tokenize_sentences(text.lines, tokenizer, marker=text.mark)
    is_text = ended.tokens != tokenizer.vocabulary.sep_id
    assert np.array_equal(ended.units[is_text], found.units) and not ended.units[~is_text].any()


def test_the_longest_phrase_at_a_word_is_a_unit(tokenizer):
    rng = random.Random(3)
    lines = [" ".join("".join(rng.choices("abc", k=rng.randint(1, 2)))
                      for _ in range(rng.randint(1, 8))) for _ in range(60)]
    phrases = ["a b", "a b c", "ba", "c ab a", "b b", "c !"]
    found = corpus.tokenize_documents(lines, tokenizer, marker=units.make_marker(
        None, units.PhraseList(phrases, tokenizer)))
    wanted, entities = [], []
    for line in lines:
        words = line.split()
        while words:
            count = max((len(phrase.split()) for phrase in phrases
                         if words[:len(phrase.split())] == phrase.split()), default=0)
            tokens = sum(len(tokenizer.encode(word)) for word in words[:count or 1])
            wanted += [0] + [1] * (tokens - 1)
            entities += [count > 0] * tokens
            words = words[count or 1:]
    assert found.units.tolist() == wanted and found.entities.tolist() == entities


def test_tagged_text_is_cut_between_documents(tmp_path):
    rng, path = random.Random(5), tmp_path / "tagged.txt"
    documents = ["-DOCSTART- O\n\n" * (n % 2) + "".join(
        "".join(f"w{n} O\n" for _ in range(rng.randint(1, 5))) + "\n" for _ in range(3))
        + "\n" * (n % 3) for n in range(30)]
    path.write_text("".join(documents), encoding="utf-8")
    for size in (40, 100, 1000):
        pieces = list(corpus.read_pieces([str(path)], size, True, units.BOUNDARY))
        assert len(pieces) > 300 // size
        read = [[word[1:] for line in units.TaggedText(
                     corpus.decode(piece, []), None, None, []).lines for word in line.split()]
                for piece in pieces]
        assert sum(map(len, read), 0) == path.read_text().count(" O") - path.read_text().count("-D")
        # No sentence and, between two of its blank lines, no document is in two pieces.
        marked = [n for n in range(29) if (n + 1) % 2 or n % 3]
        for before, after in zip(read, filter(None, read[1:])):
            assert not before or before[-1] != after[0] or int(after[0]) not in marked


@pytest.mark.parametrize("line, column, problem", [
    ("b B-X", 2, "line 1: there is no tag in column 2 of 2"),
    ("b", -1, "line 2: there is no tag in column -1 of 1"),
    ("b S-PER", 1, "line 2: 'S-PER' is neither O nor B- or I-"),
    ("b B-X", 0, "line 1: there is no tag in column 0")])
def test_a_line_without_a_usable_tag_is_named(tokenizer, tmp_path, line, column, problem):
    path = tmp_path / "tagged.txt"
    lines = ["a I-X", line, ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=problem) as error:
        units.TaggedText(lines, tokenizer, column, [str(path)])
    assert str(path) in str(error.value)


def test_an_empty_list_of_phrases_is_refused(tokenizer, tmp_path):
    (tmp_path / "none.txt").write_text("\n  \n", encoding="utf-8")
    with pytest.raises(InputError, match="--phrase_file: .* holds no phrase"):
        units.PhraseList.read(str(tmp_path / "none.txt"), tokenizer)


def test_marks_follow_sentences_that_are_copied(tokenizer):
    lines = ["a b", "ab c"]
    found = corpus.tokenize_documents(lines, tokenizer, marker=units.make_marker(
        None, units.PhraseList(["a b"], tokenizer)))
    start = found.place([1, 0]) if found.place([0, 1]) == 0 else None
    found.add_copies()
    assert found.units.tolist()[start:] == [0, 0, 0, 1]
    assert found.entities.tolist()[start:] == [0, 0, 1, 1]
