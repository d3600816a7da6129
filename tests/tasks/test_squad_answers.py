"""Answers from logits, against the original's."""

import json
import random

import numpy as np
import pytest
import squad_case
from squad_case import VOCABULARY, WORDS, ends, make_logits

from bert_tf.errors import InputError
from bert_tf.tasks import squad
from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.squad_answers import (
    AnswerOptions,
    Prediction,
    combine_predictions,
    find_answers,
    find_file_answers,
    write_predictions,
)
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.vocabulary import Layout, Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer, project


def logits_of(case):
    spans = len(case.golden["predict"]["features"])
    options = case.golden["options"]
    return make_logits(spans, options["max_seq_length"], options["seed"])


@pytest.mark.parametrize("name", squad_case.NAMES)
def test_answers_lists_and_odds_are_the_originals(tmp_path, monkeypatch, name):
    monkeypatch.setattr(squad.read_pieces, "__defaults__", (False, 10))
    case = squad_case.load(name, tmp_path)
    predictions = list(find_file_answers(case.path, ends(*logits_of(case)), case.tokenizer,
                                         case.span_options, case.answer_options))
    threshold = case.golden["options"]["threshold"]
    assert {p.id: p.answer(threshold) for p in predictions} == case.golden["answers"]
    assert {p.id: p.n_best for p in predictions} == case.golden["n_best"]
    write_predictions(tmp_path, predictions, threshold)
    files = {"predictions": "answers", "nbest_predictions": "n_best"}
    if case.negative:
        files["null_odds"] = "null_odds"
    else:
        assert not (tmp_path / "null_odds.json").exists()
    for file, key in files.items():
        assert json.loads((tmp_path / f"{file}.json").read_text()) == case.golden[key]


@pytest.mark.parametrize("layout", [Layout(), Layout(0, 1, 2, cls_last=True)])
def test_no_answer_is_scored_where_it_is_learned(layout):
    tokenizer = WordpieceTokenizer(Vocabulary(VOCABULARY, layout=layout))
    texts = [" ".join(WORDS[:count]) for count in (2, 5, 30)]
    options = SpanOptions(max_seq_length=16, max_query_length=4, doc_stride=4)
    spans = cut_spans([squad.Paragraph(squad.passage_words(text), [
        squad.Question(str(number), WORDS[0], is_impossible=True)], [], text)
        for number, text in enumerate(texts)], tokenizer, options)
    learned = spans.features(0, len(spans.start), options, tokenizer.vocabulary)
    found = {name: np.zeros((len(spans.start), 16), np.float32)
             for name in ("start_logits", "end_logits")}
    for logits, places in zip(found.values(), ("start_positions", "end_positions")):
        np.put_along_axis(logits, learned[places], 20, 1)
    for one in find_answers(spans, found, tokenizer, AnswerOptions(version_2_with_negative=True)):
        assert one.null_odds == 40 and one.answer() == ""


def test_logits_of_another_file_are_refused(tmp_path):
    case = squad_case.load("cased_v1", tmp_path)
    logits = logits_of(case)
    for first, last in ((0, -1), (1, None)):
        with pytest.raises(InputError, match="questions have"):
            list(find_file_answers(case.path, ends(*logits[:, first:last]), case.tokenizer,
                                   case.span_options, case.answer_options))
    more = np.concatenate([logits, logits], 1)
    with pytest.raises(InputError, match="questions have"):
        list(find_file_answers(case.path, ends(*more), case.tokenizer, case.span_options,
                               case.answer_options))


def test_logits_that_are_no_numbers_are_refused(tmp_path):
    case = squad_case.load("cased_v1", tmp_path)
    logits = logits_of(case)
    logits[1, 2, 3] = np.nan
    with pytest.raises(InputError, match="infinite or NaN"):
        find_answers(case.spans("predict"), ends(*logits), case.tokenizer, case.answer_options)


@pytest.mark.parametrize("negative, text, odds", [(False, "empty", None), (True, "", 2.0)])
def test_no_answer_is_allowed_at_all(tmp_path, negative, text, odds):
    case = squad_case.load("lower_v2", tmp_path)
    spans = case.spans("predict")
    logits = np.zeros([2, len(spans.start), case.span_options.max_seq_length], np.float32)
    logits[:, :, 0] = 1
    predictions = find_answers(spans, ends(*logits), case.tokenizer, AnswerOptions(3, 0, negative))
    assert {(p.text, p.answer(-9), len(p.n_best), p.null_odds) for p in predictions} == {
        (text, text, 1, odds)}


@pytest.mark.parametrize("style, text", [("electra", "empty"), ("albert", ""), ("xlnet", "")])
def test_no_pair_of_beams_is_allowed(tmp_path, style, text):
    """What the originals' write_predictions writes then."""
    case = squad_case.load("lower_v2", tmp_path)
    spans = case.spans("predict")
    beams = {"start_top_index": [2], "start_top_log_probs": [2], "end_top_index": [2, 2],
             "end_top_log_probs": [2, 2], "answerable_logits": []}
    found = find_answers(spans, {name: np.zeros([len(spans.start), *shape], int)
                                 for name, shape in beams.items()}, case.tokenizer,
                         AnswerOptions(20, 30, True, style))
    assert {(p.text, p.null_odds) for p in found} == {(text, 0.0)}


def test_two_questions_of_one_id(tmp_path):
    predictions = [Prediction(name, "x", []) for name in ("q1", "q2", "q1")]
    with pytest.raises(InputError, match="'q1' is 2 times"):
        write_predictions(tmp_path, predictions)


@pytest.mark.parametrize("text, original, expected", [
    ("steve smith", "Steve Smith's", "Steve Smith"), ("1895", "(1895-1943).", "1895"),
    ("cafe", "«Café»,", "Café"), ("", "All of it", "All of it"), ("other", "All of", "All of"),
    ("中", "x中y", "中"), ("a", "so\u00adft a", "so\u00adft a"),
    ("e - mail", "an e-mail!", "e-mail"),
])
def test_projection(text, original, expected):
    assert project(text, original, True) == expected


class ByOffsets(WordpieceTokenizer):
    """WordPiece whose answers are found as by tokenizers that only know offsets."""

    excerpt = Tokenizer.excerpt


class Letters(ByOffsets):
    """A token for each character; a word has a space before it, as with byte-level BPE."""

    word_prefix = " "

    def encode_lines(self, lines):
        return (np.array([5 for line in lines for _ in line], np.int32),
                np.array([*map(len, lines)], np.int32))

    def encode_with_offsets(self, text):
        # The space belongs to the first token, whose offsets leave it out.
        return [5] * len(text), [(max(i, 1), i + 1) for i in range(len(text))]


def test_offsets_and_the_original_find_the_same_plain_words():
    letters, rng = "abcd", random.Random(5)
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters,
                             *(f"##{letter}" for letter in letters)])
    paragraphs = [squad.Paragraph(
        ["".join(rng.choices(letters, k=rng.randint(1, 4))) for _ in range(20)],
        [squad.Question(str(number), "a b")], []) for number in range(20)]
    options = squad_case.SpanOptions(24, 8, 4)
    spans = cut_spans(paragraphs, WordpieceTokenizer(vocabulary), options)
    logits = np.random.default_rng(5).normal(size=[2, len(spans.start), 24]).astype(np.float32)
    found, original = (find_answers(spans, ends(*logits), kind(vocabulary), AnswerOptions(20, 9))
                       for kind in (ByOffsets, WordpieceTokenizer))
    assert found == original and len({prediction.text for prediction in found}) > 10


def test_the_words_of_an_answer_are_those_of_its_tokens():
    """Words are encoded with the space before them, so that offsets are shifted by it."""
    tokenizer = Letters(Vocabulary(VOCABULARY))
    paragraph = squad.Paragraph(["(1895-1943),", "a"],
                                [squad.Question("q", "when", False, "1895", 0, 0)], [])
    options = squad_case.SpanOptions(32, 32, 4)
    spans = cut_spans([paragraph], tokenizer, options)
    assert len(spans.passages.token_words) == len(" (1895-1943), a")
    for first, last, text in [(2, 5, "1895"), (0, 1, "("), (7, 10, "1943"), (11, 14, "), a"),
                              (0, 14, "(1895-1943), a")]:
        logits = np.zeros([2, 1, 32], np.float32)
        offset = tokenizer.vocabulary.layout.b_offset(spans.query_length[0])
        logits[0, 0, offset + first] = logits[1, 0, offset + last] = 9
        answer, = find_answers(spans, ends(*logits), tokenizer, AnswerOptions(2, 20))
        assert answer.text == text


def test_projection_of_any_text_is_a_part_of_it():
    rng = random.Random(3)
    for _ in range(2000):
        original = " ".join(rng.choices(WORDS, k=rng.randint(1, 6)))
        text = " ".join(rng.choices(original.lower().split(), k=rng.randint(1, 3)))
        assert project(text, original, rng.random() < 0.5) in original


def test_answers_of_several_models_have_the_mean_of_their_probabilities():
    def prediction(entries, odds):
        return Prediction("q", next((text for text, _ in entries if text), ""), [
            {"text": text, "probability": likely, "start_logit": 2 * likely, "end_logit": likely}
            for text, likely in entries], odds)

    first = prediction([("a", 0.5), ("", 0.3), ("b", 0.2)], -1.0)
    second = prediction([("b", 0.8), ("c", 0.1), ("a", 0.1)], -2.0)
    combined, = combine_predictions([[first], [second]], 3)
    assert [(entry["text"], round(entry["probability"], 6)) for entry in combined.n_best] == [
        ("b", 0.5), ("a", 0.3), ("", 0.15)]
    assert combined.n_best[1]["start_logit"] == pytest.approx(0.6)
    assert (combined.text, combined.null_odds) == ("b", -1.5)
    alone, = combine_predictions([[first]], 3)
    assert alone == first
    with pytest.raises(ValueError, match="zip"):
        combine_predictions([[first], []], 3)
