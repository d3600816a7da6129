"""Spans of SQuAD's paragraphs, their records, Chinese, and other tokenizers than WordPiece."""

import hashlib
import itertools
import json
import pathlib
import tracemalloc

import numpy as np
import pytest
import squad_case
from squad_case import VOCABULARY

from bert_tf.data.records import features, tfrecord
from bert_tf.errors import InputError
from bert_tf.tasks.answer_spans import SpanOptions, SquadRecords, cut_spans
from bert_tf.tasks.squad import Paragraph, Question, passage_words, read_paragraphs, word_spans
from bert_tf.tasks.squad_answers import AnswerOptions, find_answers, find_file_answers
from bert_tf.tokenization import WordpieceTokenizer, byte_bpe, open_tokenizer
from bert_tf.tokenization.vocabulary import Layout, Vocabulary
from tests.goldens import at_hand


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


# Records

@pytest.fixture(name="case")
def fixture_case(tmp_path):
    """The golden case of v2.0."""
    return squad_case.load("lower_v2", tmp_path)


def records(case, folder, is_training=True, **changes):
    folder.mkdir(exist_ok=True)
    return SquadRecords(case.path, str(folder / "squad.tfrecord"), case.tokenizer, is_training,
                        case.negative, changes.get("options", case.span_options))


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def read(manifest, folder):
    return [tfrecord.parse_example(message) for shard in manifest["shards"]
            for message in tfrecord.read_records(folder / shard["name"])]


@pytest.mark.parametrize("mode", ["train", "predict"])
def test_records_hold_the_features(case, tmp_path, mode):
    manifest = records(case, tmp_path / "out", mode == "train").make(1)[0]
    golden = case.golden[mode]["features"]
    assert manifest["counts"]["records"] == len(golden)
    wanted = features.ANSWER_SPAN + (features.ANSWER_SPAN_LABELS if mode == "train" else ())
    for example, row in zip(read(manifest, tmp_path / "out"), golden, strict=True):
        assert list(example) and set(example) == {feature.name for feature in wanted}
        for feature in wanted:
            assert len(example[feature.name]) == feature.length(case.span_options.max_seq_length, 0)
        assert [example["unique_ids"][0], example["input_ids"].tolist()] == [row[0], row[5]]
        if mode == "train":
            assert [example["start_positions"][0], example["end_positions"][0]] == row[3:5]
    if mode == "train":
        impossible = sum(q["is_impossible"] for article in case.golden["dataset"]["data"]
                         for p in article["paragraphs"] for q in p["qas"])
        marked = [e for e in read(manifest, tmp_path / "out") if e["is_impossible"][0]]
        assert len(marked) >= impossible > 0 and not any(e["end_positions"][0] for e in marked)


def test_skipped_and_cut_questions_are_counted_and_named(case, tmp_path):
    manifest, _ = records(case, tmp_path / "out").make(1)
    counts = manifest["counts"]
    assert counts["questions"] == len(case.golden["train"]["ids"])
    assert counts["skipped"] == 48 - counts["questions"] > 0 and counts["cut"] > 0
    assert len(manifest["notes"]) == counts["skipped"] + counts["cut"]
    assert all(note.startswith(f"{case.path}: question '") for note in manifest["notes"])


def test_workers_and_repetition_change_nothing(case, tmp_path, monkeypatch):
    monkeypatch.setattr(SquadRecords, "piece_questions", 10)
    for workers in (1, 2):
        manifest, was_there = records(case, tmp_path / str(workers)).make(workers)
        assert not was_there
    assert len(manifest["shards"]) > 3
    assert digests(tmp_path / "1") == digests(tmp_path / "2")
    ids = [example["unique_ids"][0] for example in read(manifest, tmp_path / "2")]
    assert ids == list(range(1000000000, 1000000000 + manifest["counts"]["records"]))
    assert records(case, tmp_path / "2").make(2) == (manifest, True)

    # Another text under the same name is other work.
    path = pathlib.Path(case.path)
    path.write_text(path.read_text(encoding="utf-8").replace("museum", "kingdom"), encoding="utf-8")
    other, was_there = records(case, tmp_path / "2").make(1)
    assert not was_there and other["fingerprint"] != manifest["fingerprint"]


def test_another_setting_of_the_tokenizer_is_other_work(case, tmp_path):
    manifest, _ = records(case, tmp_path / "out").make(1)
    case.tokenizer = WordpieceTokenizer(case.tokenizer.vocabulary, tokenize_chinese_chars=False)
    with pytest.raises(InputError, match="other records"):
        records(case, tmp_path / "out").make(1, may_replace=False)
    other, was_there = records(case, tmp_path / "out").make(1)
    assert not was_there and other["fingerprint"] != manifest["fingerprint"]


def test_refusals(case, tmp_path):
    with pytest.raises(InputError, match="max_seq_length"):
        records(case, tmp_path / "out", options=squad_case.SpanOptions(max_seq_length=20)).make(1)
    case.path = str(tmp_path / "absent.json")
    with pytest.raises(InputError, match="absent.json"):
        records(case, tmp_path / "out").make(1)
    assert not list((tmp_path / "out").iterdir())


# Chinese

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


def test_other_vocabularies_are_refused(tmp_path):
    class Other:
        name, word_prefix = "byte_bpe", " "

    with pytest.raises(InputError, match="--squad_style=cmrc needs a WordPiece vocabulary"):
        cut_spans(paragraphs(tmp_path, ANSWERS), Other(), OPTIONS)


# Other tokenizers

PARAGRAPHS = {
    "The king's brother (1895–1943) drank café au lait in Zürich, the town of\u00a0banks.": [
        "The king's brother", "king", "1895–1943", "1943", "café au lait", "Zürich", "banks"],
    "  two   spaces\tand 東京 🙂 smile": ["two", "東京", "🙂", "smile"],
}
MERGES = ["Ġ t", "h e", "Ġt he", "k i", "n g", "ki ng", "Ġ king", "Ġ b", "Ã ©", "â Ģ"]


@pytest.fixture(name="bpe", scope="module", params=[False, True])
def fixture_tokenizer(request):
    """A byte-level BPE of ten merges; `add_prefix_space` changes whole texts alone."""
    tokens = [*byte_bpe.ANGLE_ROLES.values(), *byte_bpe.byte_characters(),
              *(pair.replace(" ", "") for pair in MERGES)]
    return byte_bpe.ByteBpeTokenizer(byte_bpe.make_vocabulary(
        tokens, "test", b"{}", "\n".join(MERGES).encode()), add_prefix_space=request.param)


def answer(folder, tokenizer, length):
    """The answers to all questions by a model that has learned where they are."""
    asked = []
    for number, (context, answers) in enumerate(PARAGRAPHS.items()):
        asked.append({"context": context, "qas": [
            {"id": f"{number}-{place}", "question": "what is it ?",
             "answers": [{"text": answer, "answer_start": context.index(answer)}]}
            for place, answer in enumerate(answers)]})
    path = folder / "squad.json"
    path.write_text(json.dumps({"data": [{"paragraphs": asked}]}), encoding="utf-8")
    options = SpanOptions(length, length // 4, 12)
    spans = cut_spans(list(read_paragraphs(str(path), is_training=True)), tokenizer, options)
    features = spans.features(0, len(spans.start), options, tokenizer.vocabulary)
    logits = np.zeros([2, len(spans.start), length], np.float32)
    found = np.flatnonzero(features["start_positions"][:, 0])
    for side, name in enumerate(("start_positions", "end_positions")):
        logits[side, found, features[name][found, 0]] = 9
    predictions = find_answers(spans, squad_case.ends(*logits), tokenizer, AnswerOptions(3, 40))
    # Every answer is whole in at least one span.
    return [prediction.text for prediction in predictions]


@pytest.mark.parametrize("length", [48, 128])
def test_an_answer_that_is_learned_is_found_again(tmp_path, bpe, length):
    assert answer(tmp_path, bpe, length) == list(itertools.chain.from_iterable(PARAGRAPHS.values()))


@pytest.mark.parametrize("name", at_hand("vocabs/{}/spiece.model", ["albert", "t5"]))
def test_with_sentencepiece_an_answer_is_at_least_whole_words(tmp_path, test_data, name):
    """A part of a word has other pieces than the same text after a space, as with WordPiece."""
    path = test_data / "vocabs" / name / "spiece.model"
    found = answer(tmp_path, open_tokenizer(str(path)), 64)
    for text, expected in zip(found, itertools.chain.from_iterable(PARAGRAPHS.values()),
                              strict=True):
        assert expected in text and len(text) <= len(expected) + 9
    assert found[:3] == ["The king's brother", "king", "(1895–1943)"]


def test_words_are_encoded_as_after_a_space(bpe):
    ids, lengths = bpe.encode_words(["the", "king"])
    assert bpe.tokens(ids.tolist()) == ["Ġthe", "Ġking"] and lengths.tolist() == [1, 1]
    assert bpe.excerpt(["the", "(king"], bpe.encode(" the ("), 0, 1) == "the ("
