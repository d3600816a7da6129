"""--squad_style=cmrc: passages without blanks, cut into characters."""

import json

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.squad import passage_words, read_paragraphs, word_spans
from bert_tf.tasks.squad_answers import AnswerOptions, find_answers, find_file_answers
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

PASSAGE = "上海是中国的城市。北京是中国的首都，\u200b李㛃在2008年 写了New York的e\u0301te\u0301。"
WORDS = ("上 海 是 中 国 的 城 市 。 北 京 是 中 国 的 首 都 ， \u200b 李 㛃 在 2008 年 "
         "写 了 New York 的 e\u0301te\u0301 。").split(" ")
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"上海是中国的城市。北京首都，",
          *"李在年写了谁?", "2008", "new", "york", "et", "##e"]
# The last of these texts in the passage.
ANSWERS = {text: PASSAGE.rindex(text) for text in (
    "中国", "李㛃", "2008", "New York", "e\u0301te\u0301", "都，")}
OPTIONS = SpanOptions(64, 32, 8, squad_style="cmrc")


def tokenizer():
    return WordpieceTokenizer(Vocabulary(TOKENS))


def paragraphs(folder, answers, **options):
    questions = [{"id": text, "question": "谁?", "answers": [{"text": text, "answer_start": start}]}
                 for text, start in answers.items()]
    path = folder / "train.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [
        {"context": PASSAGE, "qas": questions}]}]}), encoding="utf-8")
    return list(read_paragraphs(str(path), True, squad_style="cmrc", **options))


def test_words():
    assert passage_words(PASSAGE, "cmrc") == WORDS
    assert [PASSAGE[first:last] for first, last in word_spans(PASSAGE, "cmrc")] == WORDS
    assert passage_words(PASSAGE) == PASSAGE.split(" ")
    assert passage_words("", "cmrc") == passage_words(" \u3000", "cmrc") == []


def test_answers_are_learned_where_they_stand_and_found_as_they_stand(tmp_path):
    spans = cut_spans(paragraphs(tmp_path, ANSWERS), tokenizer(), OPTIONS)
    features = spans.features(0, len(spans.start), OPTIONS, tokenizer().vocabulary)
    rows, length = np.arange(len(ANSWERS)), OPTIONS.max_seq_length
    logits = np.zeros((2, len(rows), length), np.float32)
    for kind, name in enumerate(("start_positions", "end_positions")):
        logits[kind, rows, features[name][:, 0]] = 9
    found = find_answers(spans, {"start_logits": logits[0], "end_logits": logits[1]}, tokenizer(),
                         AnswerOptions())
    assert [each.describe(0.0)["answer"] for each in found] == list(ANSWERS)
    # As the commands read them, from the file.
    found = find_file_answers(str(tmp_path / "train.json"), {
        "start_logits": logits[0], "end_logits": logits[1]}, tokenizer(), OPTIONS, AnswerOptions())
    assert [each.describe(0.0)["answer"] for each in found] == list(ANSWERS)
    ids = dict(enumerate(TOKENS))
    first = features["start_positions"][0, 0]
    assert [ids[token] for token in features["input_ids"][0, first - 3:first + 2]] == [
        "北", "京", "是", "中", "国"]


def test_an_answer_that_is_not_where_it_should_be_is_left_out(tmp_path):
    paragraph, = paragraphs(tmp_path, {"中国": 3, "上海": 1})
    assert [question.id for question in paragraph.questions] == ["中国"]
    assert len(paragraph.skipped) == 1


def test_other_vocabularies_are_refused(tmp_path):
    class Other:
        name, word_prefix = "byte_bpe", " "

    with pytest.raises(InputError, match="--squad_style=cmrc needs a WordPiece vocabulary"):
        cut_spans(paragraphs(tmp_path, ANSWERS), Other(), OPTIONS)
