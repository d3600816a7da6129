"""Spans and labels against the original's."""

import json
import tracemalloc

import numpy as np
import pytest
import squad_case

from bert_tf.errors import InputError
from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.squad import Paragraph, Question, read_paragraphs
from bert_tf.tokenization.vocabulary import Layout, Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from tests.make_squad_golden import VOCABULARY


@pytest.mark.parametrize("mode", ["train", "predict"])
@pytest.mark.parametrize("name", squad_case.NAMES)
def test_hard_questions(tmp_path, name, mode):
    case = squad_case.load(name, tmp_path)
    spans = case.spans(mode)
    assert [q.id for q in spans.questions] == case.golden[mode]["ids"]
    block = spans.features(0, len(spans.start), case.span_options, case.tokenizer.vocabulary)
    rows = zip(*(block[key].tolist() for key in (
        "input_ids", "input_mask", "segment_ids", "start_positions", "end_positions")))
    found = [[1000000000 + row, sum(mask), sum(segments), start, end, ids]
             for row, (ids, mask, segments, (start,), (end,)) in enumerate(rows)]
    assert found == case.golden[mode]["features"]
    some = spans.features(3, 11, case.span_options, case.tokenizer.vocabulary)
    assert all((some[key] == block[key][3:11]).all() for key in block)


@pytest.mark.parametrize("mode", ["train", "predict"])
@pytest.mark.parametrize("name, options, negative", [
    ("squad_v1_seed1", SpanOptions(128, 48, 32), False),
    ("squad_v2_seed1", SpanOptions(192, 64, 32), True)])
def test_real_paragraphs(test_data, name, options, negative, mode):
    golden = dict(np.load(test_data / f"golden/{name}_{mode}.npz"))
    vocabulary = Vocabulary.from_file(test_data / "vocabs/bert-base-uncased/vocab.txt")
    paragraphs = read_paragraphs(test_data / f"golden/{name}.json", mode == "train", negative)
    spans = cut_spans(list(paragraphs), WordpieceTokenizer(vocabulary), options)
    block = spans.features(0, len(spans.start), options, vocabulary)
    for key in ("input_ids", "input_mask", "segment_ids"):
        assert (block[key] == golden[key]).all(), key
    if mode == "train":
        assert (block["start_positions"][:, 0] == golden["start_position"]).all()
        assert (block["end_positions"][:, 0] == golden["end_position"]).all()
    assert (spans.question == golden["example_index"]).all()
    turn = np.arange(len(spans.start)) - spans.first_span[spans.question]
    assert (turn == golden["doc_span_index"]).all()
    for row, question in enumerate(spans.question):
        offset = spans.query_length[question] + 2
        context = spans.most_context(question) == turn[row]
        places = range(spans.start[row], spans.start[row] + spans.length[row])
        positions = [str(offset + place - spans.start[row]) for place in places]
        words = spans.passages.token_words[spans.doc_start[question]:]
        assert json.loads(str(golden["max_context"][row])) == {
            position: context[place] for position, place in zip(positions, places)}
        assert json.loads(str(golden["token_to_orig"][row])) == {
            position: words[place] for position, place in zip(positions, places)}


def test_a_long_question_is_cut_and_a_blank_paragraph_has_no_span():
    vocabulary = Vocabulary(VOCABULARY)
    paragraphs = [Paragraph([], [Question("q1", "king king")], []),
                  Paragraph(["king"], [Question("q2", "king king"), Question("q3", "")], [])]
    spans = cut_spans(paragraphs, WordpieceTokenizer(vocabulary), SpanOptions(8, 2, 1))
    assert spans.query_cut.tolist() == [True, True, False]
    assert spans.query_length.tolist() == [1, 1, 0]
    assert spans.question.tolist() == [1, 2]
    king = vocabulary.ids["king"]
    ids = spans.features(0, 2, SpanOptions(8, 2, 1), vocabulary)["input_ids"]
    cls, sep = vocabulary.cls_id, vocabulary.sep_id
    assert ids.tolist() == [[cls, king, sep, king, sep, 0, 0, 0], [cls, sep, king, sep, *[0] * 4]]


def test_a_stride_beyond_a_span_goes_on_at_its_end():
    """The original's `start_offset += min(length, doc_stride)`."""
    paragraph = Paragraph(["king"] * 10, [Question("q", "king")], [])
    spans = cut_spans([paragraph], WordpieceTokenizer(Vocabulary(VOCABULARY)),
                      SpanOptions(8, 128, 3))
    assert (spans.start.tolist(), spans.length.tolist()) == ([0, 4, 8], [4, 4, 2])


@pytest.mark.parametrize("options, words", [
    (SpanOptions(67, 1, 64), "--max_seq_length is 67.*at least 68"),
    (SpanOptions(384, 0, 64), "--doc_stride is 0"), (SpanOptions(384, 1, 0), "max_query_length 0")])
def test_options_that_cannot_work(options, words):
    with pytest.raises(InputError, match=words):
        options.check(Layout())
    SpanOptions(68, 1, 64).check(Layout())


def test_a_long_passage_takes_no_table_of_spans_and_tokens():
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    spans = cut_spans([Paragraph(["a"] * 30_000, [Question("0", "a")], [], "")],
                      WordpieceTokenizer(vocabulary), SpanOptions(max_seq_length=64, doc_stride=16))
    tracemalloc.start()
    context = spans.most_context(0)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()
    middles = spans.start + spans.length // 2
    assert context[middles].tolist() == list(range(len(middles)))
