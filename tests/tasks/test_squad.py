"""Reading SQuAD files, and the sentences for what is not one."""

import json

import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.squad import (
    holds_answers,
    read_answers,
    read_paragraphs,
    read_pieces,
)

CONTEXT = "  One two\u202fthree (1895-1943)\u00a0here."


def question(**changes):
    return {"id": "q1", "question": "When?", "is_impossible": False,
            "answers": [{"text": "1895", "answer_start": CONTEXT.index("1895")}], **changes}


def write(folder, *questions):
    path = folder / "squad.json"
    article = {"title": "t", "paragraphs": [{"context": CONTEXT, "qas": list(questions)}]}
    path.write_text(json.dumps({"version": "1", "data": [article]}), encoding="utf-8")
    return path


def answer(text, start=None):
    return [{"text": text, "answer_start": CONTEXT.index(text) if start is None else start}]


def read_one(path, **options):
    (paragraph,) = read_paragraphs(path, True, **options)
    return paragraph


def test_words_and_the_words_of_the_answer(tmp_path):
    path = write(tmp_path, question(), question(id="q2", answers=answer("two\u202fthree")))
    paragraph = read_one(path)
    assert paragraph.words == ["One", "two", "three", "(1895-1943)\u00a0here."]
    first, second = paragraph.questions
    assert (first.answer, first.first_word, first.last_word) == ("1895", 3, 3)
    assert (second.first_word, second.last_word) == (1, 2)
    assert not first.is_impossible and not paragraph.skipped


def test_an_answer_that_is_not_at_its_place_is_left_out_and_named(tmp_path):
    path = write(tmp_path, question(answers=answer("1895", 3)), question(id="q2"))
    paragraph = read_one(path)
    assert [q.id for q in paragraph.questions] == ["q2"]
    assert len(paragraph.skipped) == 1 and f"{path}: question 'q1'" in paragraph.skipped[0]


def test_of_several_answers_the_first_is_learned(tmp_path):
    path = write(tmp_path, question(answers=answer("two") + answer("One")))
    assert read_one(path).questions[0].answer == "two"


def test_no_answer_to_learn(tmp_path):
    path = write(tmp_path, question(is_impossible=True, answers=[]))
    assert read_one(path, version_2_with_negative=True).questions[0].is_impossible
    with pytest.raises(InputError, match="'q1' has no answer.*--version_2_with_negative"):
        read_one(path)


def test_to_predict_no_answers_are_needed(tmp_path):
    path = write(tmp_path, {"id": "q1", "question": "When?"})
    (paragraph,) = read_paragraphs(path, False, True)
    assert paragraph.questions[0].text == "When?"


@pytest.mark.parametrize("changes, words", [
    ({"answers": []}, "no answer to train on"), ({"answers": "1895"}, "no 'answers' of type list"),
    ({"answers": [{"text": "1895"}]}, "no 'answer_start' of type int"),
    ({"answers": [{"text": 1895, "answer_start": 3}]}, "no 'text' of type str"),
    ({"answers": answer(" \t", 1)}, "without text"), ({"answers": answer("", 1)}, "without text"),
    ({"answers": answer("1895", -1)}, "correct answer_start"),
    ({"answers": answer("1895", 999)}, "correct answer_start"),
    ({"answers": [{"text": "x", "answer_start": True}]}, "no 'answer_start' of type int"),
    ({"question": None}, "no 'question' of type str"),
    ({"is_impossible": "no"}, "no 'is_impossible' of type bool"),
])
def test_bad_questions_are_named(tmp_path, changes, words):
    path = write(tmp_path, question(**changes))
    with pytest.raises(InputError, match=words) as error:
        read_one(path, version_2_with_negative=True)
    assert f"{path}: question 'q1'" in str(error.value)


@pytest.mark.parametrize("data, words", [
    ([], "holds no question"), ([{"paragraphs": []}], "holds no question"),
    ([{"title": "x"}], "article 0 has no 'paragraphs'"), (["text"], "article 0"),
    ([{"paragraphs": [{"context": 1, "qas": []}]}], "paragraph 0 has no 'context'"),
    ([{"paragraphs": [{"context": "x"}]}], "paragraph 0 has no 'qas'"),
    ([{"paragraphs": [{"context": "x", "qas": [{"question": "?"}]}]}], "paragraph 0 has no 'id'"),
])
def test_what_is_not_squad_is_named(tmp_path, data, words):
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": data}), encoding="utf-8")
    for read in (read_answers, holds_answers, lambda path: list(read_paragraphs(path, False))):
        with pytest.raises(InputError, match=words) as error:
            read(path)
        assert str(path) in str(error.value)


def test_an_id_that_stands_twice_cannot_be_scored(tmp_path):
    with pytest.raises(InputError, match="'q1' is there twice"):
        read_answers(write(tmp_path, question(), question()))


def test_an_id_may_be_a_number(tmp_path):
    """As annotation tools write it; the official scripts know texts."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": 3, "question": "?", "context": "x", "answers": {
        "text": ["x"], "answer_start": [0]}}), encoding="utf-8")
    for path in (write(tmp_path, question(id=3)), rows):
        assert list(read_answers(path)) == ["3"] == [
            asked.id for paragraph in read_paragraphs(path, False) for asked in paragraph.questions]


@pytest.mark.parametrize("changes, expected", [
    ({}, True), ({"answers": []}, False), ({"answers": [], "is_impossible": True}, True)])
def test_whether_there_are_answers(tmp_path, changes, expected):
    bare = {"id": "q2", "question": "When?"}
    assert holds_answers(write(tmp_path, bare, question(**changes))) is expected
    assert not holds_answers(write(tmp_path, bare))
    with pytest.raises(InputError, match="'q2' is there twice"):
        holds_answers(write(tmp_path, bare, bare))


def test_real_files(test_data):
    answers = read_answers(test_data / "squad/dev-v1.1.json")
    assert len(answers) == 10570 and min(map(len, answers.values())) >= 1
    answers = read_answers(test_data / "squad/cs224n-dev-v2.0.json")
    assert len(answers) == 6078 and sum(not texts for texts in answers.values()) == 3168
    pieces = list(read_pieces(test_data / "squad/dev-v1.1.json", True, size=3000))
    assert len(pieces) == 4 and not any(p.skipped for piece in pieces for p in piece)
    assert sum(len(p.questions) for piece in pieces for p in piece) == 10570
