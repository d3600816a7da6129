"""TriviaQA and MRQA in SQuAD's form, against a slow reading of the same files and by hand."""

import gzip
import json
import random
import types

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks import question_files
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.question_files import find_aliases, form_of
from bert_tf.tasks.squad import holds_answers, read_answers, read_paragraphs, read_references
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

MRQA = [{"header": {"dataset": "T"}},
        {"context": "Ann met Bo. Bo left Rome .", "qas": [
            {"qid": "a", "question": "who?", "answers": ["Bo", "Robert"], "detected_answers": [
                {"text": "Bo", "char_spans": [[12, 13], [8, 9]], "token_spans": [[4, 4], [2, 2]]}]},
            {"qid": "b", "question": "where?", "answers": ["Paris"], "detected_answers": []}]}]


def slow(text, aliases):
    """Every place where an alias stands between characters that are no part of words."""
    found = {}
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            words = " ".join(text[start:end].lower().split())
            before, after = text[start - 1:start], text[end:end + 1]
            if (words in {" ".join(alias.lower().split()) for alias in aliases if alias.split()}
                    and not text[start].isspace() and not text[end - 1].isspace()
                    and not any(c.isalnum() or c == "_" for c in before + after)):
                found[start] = end
    return sorted(found.items())


@pytest.mark.parametrize("seed", range(20))
def test_aliases_are_found_where_a_slow_search_finds_them(seed):
    rng = random.Random(seed)
    text = "".join(rng.choice(["a", "b", "A", " ", "  ", "-", ".", "\n"]) for _ in range(60))
    aliases = ["".join(rng.choice("ab -") for _ in range(rng.randint(1, 4))) + "b"
               for _ in range(5)] + ["", "A a"]
    assert find_aliases(text, aliases) == slow(text, aliases)


def test_lines_of_mrqa(tmp_path):
    path = tmp_path / "dev.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, MRQA)).encode()))
    assert form_of(str(path)) == "mrqa" and holds_answers(str(path))
    assert read_answers(str(path)) == {"a": ["Bo", "Robert"], "b": ["Paris"]}
    [paragraph] = read_paragraphs(str(path), True)      # "b" has no place to learn
    [question] = paragraph.questions
    assert (question.answer, question.start, question.first_word) == ("Bo", 8, 2)
    [paragraph] = read_paragraphs(str(path), False)
    assert [one.id for one in paragraph.questions] == ["a", "b"]
    assert [row[2] for row in read_references(str(path))] == [["Bo", "Robert"], ["Paris"]]
    path.write_bytes(gzip.compress(b'{"context": "x", "qas": [{"qid": "a"}]}'))
    with pytest.raises(InputError, match="line 1 is not in MRQA's format .KeyError"):
        list(read_paragraphs(str(path), False))


@pytest.mark.parametrize(("begin", "between", "end"), [("", "\n", "\n"), ("[", ",\n ", "]")])
def test_rows_as_the_library_datasets_writes_them(tmp_path, begin, between, end):
    """JSON lines, or one list: as the same questions in SQuAD's file."""
    asked = [("a", "who?", {"text": ["Bo", "Bo left"], "answer_start": [12, 12]}),
             ("b", "when?", {"text": [], "answer_start": []})]
    context, path, squad = MRQA[1]["context"], tmp_path / "rows.json", tmp_path / "squad.json"
    rows = [json.dumps({
        "id": name, "title": "t", "context": context, "question": question, "answers": answers
    }) for name, question, answers in asked]
    path.write_text(begin + between.join(rows) + end)
    squad.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": [{
        "id": name, "question": question, "is_impossible": not answers["text"], "answers": [
            {"text": text, "answer_start": start} for text, start in zip(*answers.values())]}
        for name, question, answers in asked]}]}]}))
    assert form_of(str(path)) == "rows" and form_of(str(squad)) is None
    for read in (read_answers, lambda path: list(read_paragraphs(path, True, True))):
        assert read(str(path)) == read(str(squad))
    for row, message in (
            ('["c"]', f"rows.json, {'row' if begin else 'line'} 3 is not a JSON object"),
            ('{"id": "c"}', "rows.json does not have the usual columns .*'context'.*rename its")):
        path.write_text(begin + between.join([*rows, row]) + end)
        with pytest.raises(InputError, match=message):
            read_answers(str(path))
    if begin:
        path.write_text(begin + between.join(rows))
        with pytest.raises(InputError, match="rows.json is not a JSON list .*the file ends"):
            read_answers(str(path))


@pytest.mark.parametrize("answers", [None, [{"text": "Bo", "answer_start": 12}]])
def test_rows_without_answers_or_with_squads_own(tmp_path, answers):
    path, context = tmp_path / "rows.jsonl", MRQA[1]["context"]
    row = {"lang": "en", "id": 7, "question": "who?", "context": context}
    path.write_text(json.dumps(row if answers is None else {**row, "answers": answers}))
    assert read_answers(str(path)) == {"7": [answer["text"] for answer in answers or ()]}
    (paragraph,) = read_paragraphs(str(path), False)
    assert paragraph.questions[0].text == "who?" and holds_answers(str(path)) == bool(answers)
    if answers is None:
        with pytest.raises(InputError, match="question 7 has no answer to train on"):
            list(read_paragraphs(str(path), True))


def test_a_table_of_questions_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("id,question,context\n1,who?,Bo\n")
    with pytest.raises(InputError, match="a.csv is a table.*JSON lines with id, question, context"):
        read_answers(str(tmp_path / "a.csv"))


@pytest.fixture(name="trivia")
def fixture_trivia(tmp_path):
    for name, text in (("wikipedia/Bo.txt", "x " * 398 + "by THE  bo\tand Bo."),
                       ("web/1.txt", "nobody"), ("web/2.txt", "It was\nRobert's; Bo went.")):
        path = tmp_path / "evidence" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "qa").mkdir()
    path = tmp_path / "qa" / "web-dev.json"
    path.write_text(json.dumps({"Data": [{
        "Answer": {"Aliases": ["The Bo", "Robert"], "NormalizedAliases": ["bo"], "Value": "Bo"},
        "EntityPages": [{"Filename": "Bo.txt"}],
        "SearchResults": [{"Filename": "1.txt"}, {"Filename": "2.txt"}],
        "Question": "Who?", "QuestionId": "q"}], "Domain": "Web"}))
    return path


def test_documents_of_trivia_qa(trivia):
    """arXiv:1810.04805, section 4.2: the first 400 words, and to train on those with an answer."""
    path = str(trivia)
    assert form_of(path) == "trivia_qa"
    found = list(read_paragraphs(path, True))
    assert [(p.questions[0].id, p.questions[0].answer) for p in found] == [("q--2.txt", "Robert")]
    assert found[0].words[found[0].questions[0].first_word] == "Robert's;"
    every = list(read_paragraphs(path, False))
    assert [p.questions[0].id for p in every] == ["q--Bo.txt", "q--1.txt", "q--2.txt"]
    assert len(every[0].words) == 400 and every[0].words[-2:] == ["by", "THE"]
    assert read_answers(path)["q--1.txt"] == ["bo"]
    (trivia.parent.parent / "evidence" / "web" / "1.txt").unlink()
    with pytest.raises(InputError, match="names the document .*1.txt, which is missing"):
        list(read_paragraphs(path, False))


def test_a_document_that_a_question_names_twice_is_read_once(trivia):
    content = json.loads(trivia.read_text())
    content["Data"][0]["SearchResults"] *= 2
    trivia.write_text(json.dumps(content))
    assert [p.questions[0].id for p in read_paragraphs(str(trivia), True)] == ["q--2.txt"]
    assert list(read_answers(str(trivia))) == ["q--Bo.txt", "q--1.txt", "q--2.txt"]


def test_equal_names_in_both_folders_are_two_documents(trivia):
    content = json.loads(trivia.read_text())
    content["Data"][0]["EntityPages"].append({"Filename": "2.txt"})
    (trivia.parent.parent / "evidence" / "wikipedia" / "2.txt").write_text("Robert came.")
    trivia.write_text(json.dumps(content))
    assert {p.questions[0].id: p.words[0] for p in read_paragraphs(str(trivia), False)} == {
        "q--Bo.txt": "x", "q--wikipedia/2.txt": "Robert", "q--1.txt": "nobody",
        "q--web/2.txt": "It"}
    assert len(read_answers(str(trivia))) == 4


def test_answers_of_people_are_right_but_not_sought(trivia):
    """triviaqa_evaluation.py, get_ground_truths: NormalizedAliases and HumanAnswers."""
    content = json.loads(trivia.read_text())
    content["Data"][0]["Answer"]["HumanAnswers"] = ["nobody", "Bobby"]
    trivia.write_text(json.dumps(content))
    assert read_answers(str(trivia))["q--2.txt"] == ["bo", "nobody", "Bobby"]
    assert [p.questions[0].id for p in read_paragraphs(str(trivia), True)] == ["q--2.txt"]


def test_a_page_that_was_not_fetched_is_left_out(trivia):
    content = json.loads(trivia.read_text())
    del content["Data"][0]["SearchResults"][0]["Filename"]
    trivia.write_text(json.dumps(content))
    assert list(read_answers(str(trivia))) == ["q--Bo.txt", "q--2.txt"]


@pytest.mark.parametrize(("domain", "names"), [
    ("Web", ["q--Bo.txt", "q--2.txt"]),
    ("Wikipedia", ["q"])])
def test_verified_files_hold_what_people_verified(trivia, domain, names):
    """dataset_utils.py, read_triviaqa_data: all documents of Wikipedia, the verified of the web."""
    content = json.loads(trivia.read_text())
    question = content["Data"][0]
    for page, verified in zip([*question["EntityPages"], *question["SearchResults"]], (1, 0, 1)):
        page["DocPartOfVerifiedEval"] = bool(verified)
    question["QuestionPartOfVerifiedEval"] = True
    content["Data"].append({**question, "QuestionId": "r", "QuestionPartOfVerifiedEval": False})
    for is_verified in (False, True):
        trivia.write_text(json.dumps({
            **content, "Domain": domain, "VerifiedEval": is_verified, "Version": 1.0}))
        found = list(read_answers(str(trivia)))
        assert found == (names if is_verified else ["q", "r"] if domain == "Wikipedia" else [
            f"{name}--{file}" for name in "qr" for file in ("Bo.txt", "1.txt", "2.txt")])
    trivia.write_text(json.dumps({"VerifiedEval": True, "Data": [{
        **question, "QuestionPartOfVerifiedEval": None}]}).replace(
            ', "QuestionPartOfVerifiedEval": null', ""))
    with pytest.raises(InputError, match="question 0 is not in TriviaQA's format .KeyError"):
        read_answers(str(trivia))


@pytest.mark.parametrize("seed", range(10))
def test_a_question_of_wikipedia_has_the_best_span_of_all_documents(tmp_path, seed):
    """triviaqa_evaluation.py, which knows a question of Wikipedia by its id alone: all spans of all
    documents are tried one by one, and the answer is that with the highest sum of logits."""
    rng, words = np.random.default_rng(seed), ["red", "green", "blue", "bo", "ann"]
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(1, 8, 6)]
    for folder in ("evidence/wikipedia", "qa"):
        (tmp_path / folder).mkdir(parents=True)
    for number, text in enumerate(texts):
        (tmp_path / "evidence" / "wikipedia" / f"{number}.txt").write_text(text)
    pages = {"q": [0, 1, 2], "r": [3], "s": [4, 5, 0]}
    content = {"Domain": "Wikipedia", "Data": [{
        "QuestionId": name, "Question": "bo ?", "Answer": {"NormalizedAliases": ["bo", "red ann"]},
        "EntityPages": [{"Filename": f"{page}.txt"} for page in of]} for name, of in pages.items()]}
    path = tmp_path / "qa" / "wikipedia-dev.json"
    path.write_text(json.dumps(content))
    tokenizer = WordpieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?",
                                          *words]), True)
    documents = [(name, texts[page]) for name, of in pages.items() for page in of]
    starts, ends = np.round(rng.normal(size=(2, len(documents), 16)), 1).astype("float32")
    options = KINDS["span"].options({"version_2_with_negative": None, "n_best_size": 400,
                                     "max_answer_length": 3}, {}, False, "")
    predictions = KINDS["span"].predictions(types.SimpleNamespace(path=str(path)), tokenizer, 16,
                                            options, True)
    found = predictions.decode({"start_logits": starts, "end_logits": ends}, None)
    assert [one.id for one in found] == list(pages)
    before = 4      # [CLS] bo ? [SEP]
    for one in found:
        sums: dict = {}
        for row, (name, text) in enumerate(documents):
            tokens = text.split()
            for first in range(len(tokens)):
                for last in range(first, min(first + 3, len(tokens))):
                    span = " ".join(tokens[first:last + 1])
                    score = float(starts[row, before + first]) + float(ends[row, before + last])
                    if name == one.id:
                        sums[span] = max(score, sums.get(span, -np.inf))
        assert sums[one.text] == max(sums.values())
        listed = {entry["text"]: entry["start_logit"] + entry["end_logit"] for entry in one.n_best}
        assert listed == pytest.approx(sums)
        assert list(listed.values()) == sorted(listed.values(), reverse=True)
    right = ["bo", "red ann"]
    exact = [one.text in right for one in found]
    assert predictions.score(found)["exact_match"] == pytest.approx(100 * np.mean(exact))
    predictions.write(str(tmp_path), {}, found, False)
    assert json.loads((tmp_path / "predictions.json").read_text()) == {
        one.id: one.text for one in found}
    content["Domain"] = "Web"       # there each document has an answer
    path.write_text(json.dumps(content))
    predictions = KINDS["span"].predictions(types.SimpleNamespace(path=str(path)), tokenizer, 16,
                                            options, True)
    assert len(predictions.decode({"start_logits": starts, "end_logits": ends}, None)) == 7


def test_what_is_verified_may_stand_between_blocks(trivia, monkeypatch):
    content = json.loads(trivia.read_text())
    content["Data"][0]["QuestionPartOfVerifiedEval"] = False
    text = json.dumps({**content, "Domain": "Wikipedia", "VerifiedEval": True})
    trivia.write_text(text)
    for size in (text.index('"VerifiedEval"') + 3, len(text) - 2):
        monkeypatch.setattr(question_files, "_BLOCK", size)
        with pytest.raises(InputError, match="holds no question"):
            read_answers(str(trivia))
