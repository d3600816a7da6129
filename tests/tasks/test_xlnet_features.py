"""XLNet's features of fine-tuning and its answers, against those of the original."""

import gzip
import json

import numpy as np
import pytest

from bert_tf.data.batches.bucketing import pads_left
from bert_tf.data.batches.example_set import ExampleSet
from bert_tf.errors import InputError
from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.kinds.labelled import SplitPredictions
from bert_tf.tasks.kinds.sentence import encode_choices
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.split_records import RecordOptions, Source, SplitRecords
from bert_tf.tasks.squad import Paragraph, Question, read_pieces
from bert_tf.tasks.squad_answers import AnswerOptions, find_answers
from bert_tf.tokenization import open_tokenizer
from bert_tf.tokenization.encoding import encode_pairs
from data_prep import verify_records

OPTIONS = SpanOptions(128, 48, 24, "xlnet")


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return test_data / "golden" / "xlnet"


@pytest.fixture(name="tokenizer", scope="module")
def fixture_tokenizer(golden):
    return open_tokenizer(str(golden), False)


@pytest.mark.parametrize("size", [32, 64])
def test_texts_are_padded_on_the_left(golden, tokenizer, size):
    expected = np.load(golden / f"classifier_features_s{size}_seed1.npz")
    for row, pair in enumerate(zip(expected["text_a"], expected["text_b"])):
        found, _ = encode_pairs([[str(text) for text in pair if text]], tokenizer, size)
        for name in ("input_ids", "segment_ids"):
            np.testing.assert_array_equal(found[name][0], expected[name][row])
        np.testing.assert_array_equal(1 - found["input_mask"][0], expected["input_mask"][row])


def test_choices_of_race(golden, tokenizer):
    """Also those that carry others, which the original does by mistake."""
    with gzip.open(golden / "race_features_seed1.jsonl.gz", "rt", encoding="utf-8") as file:
        examples = [json.loads(line) for line in file]
    for expected in examples:
        found, _ = encode_choices([expected["context"]], [expected["qa_list"]], tokenizer, 96, 24,
                                  True)
        for name, values in found.items():
            values = 1 - values if name == "input_mask" else values
            assert values.ravel().tolist() == expected[name], name
    alone, is_cut = encode_choices(["a b"], [["c", "d"]], tokenizer, 16, 2, False)
    ends = [row[mask].tolist()[-3:] for row, mask in zip(alone["input_ids"], alone["input_mask"])]
    assert not is_cut.any() and ends[0][1:] == ends[1][1:] and ends[0] != ends[1]
    assert alone["input_mask"].sum(1).tolist() == [len(tokenizer.encode("a b")) + 3 + len(
        tokenizer.encode(choice)) for choice in "cd"]


def test_a_choice_without_tokens_has_its_separator(tokenizer):
    """4 is <sep>, 3 is <cls>; as the original's."""
    context, = tokenizer.encode("A")
    found, _ = encode_choices(["A"], [["\u200b", "A"]], tokenizer, 8, 4, True)
    assert found["input_ids"].tolist() == [[0, 0, 0, 0, context, 4, 4, 3],
                                           [context, 4, 4, 3, 4, context, 4, 3]]
    assert found["segment_ids"].tolist() == [[4, 4, 4, 4, 0, 0, 1, 2], [0, 0, 0, 0, 0, 1, 1, 2]]


@pytest.mark.parametrize("files, where", [([[3, 5]], "1.txt, question 2 .* 5 options"),
                                          ([[2, 2], [3]], "2.txt, question 1 .* 3 options")])
def test_questions_of_race_have_equally_many_options(files, where, tmp_path):
    for number, counts in enumerate(files, 1):
        (tmp_path / f"{number}.txt").write_text(json.dumps({
            "article": "a", "questions": ["q"] * len(counts), "answers": ["A"] * len(counts),
            "options": [["o"] * count for count in counts]}), encoding="utf-8")
    with pytest.raises(InputError, match=f"{where}, but the first has {files[0][0]}"):
        list(read_examples(find_task("RACE"), "dev", str(tmp_path)))


def test_articles_of_race(tmp_path):
    folder = tmp_path / "dev" / "middle"
    folder.mkdir(parents=True)
    (folder / "1.txt").write_text(json.dumps({
        "article": "A cat sat.", "questions": ["It was a _ .", "Who sat?"], "answers": ["B", "A"],
        "options": [["dog", "cat"], ["it", "she"]], "id": "1"}), encoding="utf-8")
    task = find_task("RACE")
    examples = list(read_examples(task, "dev", task.path(str(tmp_path), "dev")))
    assert [(example.texts, example.label) for example in examples] == [
        (["A cat sat.", "It was a dog .", "It was a cat ."], 1),
        (["A cat sat.", "Who sat? it", "Who sat? she"], 0)]
    source = Source(task, "dev", task.path(str(tmp_path), "dev"))
    assert SplitPredictions(source).score(np.array([1, 1])) == {"accuracy": 0.5}
    high = tmp_path / "dev" / "high"
    high.mkdir()
    (high / "1.txt").write_text((folder / "1.txt").read_text(), encoding="utf-8")
    source = Source(task, "dev", source.path)
    assert SplitPredictions(source).score(np.array([1, 1, 0, 1])) == {
        "accuracy": 0.25, "high_accuracy": 0.5, "middle_accuracy": 0.0}
    some = SplitPredictions(source)
    some.examples = some.examples[:3]
    assert some.score(np.array([1, 0, 1])) == {"accuracy": 1.0}
    row = json.loads((folder / "1.txt").read_text())
    for bad, message in (({}, "0 is not in RACE's format .KeyError: 'article'"),
                         ({**row, "article": 3}, "0 .*the article is 3"),
                         ({**row, "answers": ["A", "C"]}, "2 .*answer 'C' of 2 options"),
                         ({**row, "options": [["it"], ["she"]]}, "1 .*1 option, but the first")):
        (folder / "2.txt").write_text(json.dumps(bad), encoding="utf-8")
        with pytest.raises(InputError, match=f"2.txt, question {message}"):
            list(read_examples(task, "dev", source.path))


def test_records_keep_the_side_of_the_padding(tokenizer, tmp_path, capsys):
    """On disk and in batches of every length."""
    path = tmp_path / "dev.tsv"
    path.write_text("sentence\tlabel\n" + "".join(
        f"{'a cat sat ' * count}\t{count % 2}\n" for count in range(1, 9)), encoding="utf-8")
    source = Source(find_task("sst-2"), "dev", str(path))
    SplitRecords(source, RecordOptions(16, False), tokenizer, str(tmp_path)).make(1)
    manifest = str(tmp_path / "dev.manifest.json")
    verify_records.main(verify_records.VerifyRecordsFlags(input_file=[manifest]))
    assert "sound" in capsys.readouterr().out
    records = ExampleSet(manifest)
    for length in (records.lengths[:3].max(), 16):
        batch = records.batch(np.arange(3), length)
        assert pads_left(batch["input_mask"])
        assert (batch["input_ids"][:, -1] == tokenizer.vocabulary.cls_id).all()
        assert (batch["segment_ids"][:, -1] == 2).all()
        np.testing.assert_array_equal(batch["input_mask"].sum(1), records.lengths[:3])


def spans_of(golden, tokenizer, is_training):
    paragraphs = [paragraph for piece in read_pieces(
        str(golden / "squad_seed1.json"), is_training, True, squad_style="xlnet")
        for paragraph in piece]
    return cut_spans(paragraphs, tokenizer, OPTIONS)


@pytest.mark.parametrize("split", ["train", "predict"])
def test_passages_come_before_questions(golden, tokenizer, split):
    expected = np.load(golden / f"squad_features_{split}_seed1.npz")
    spans = spans_of(golden, tokenizer, split == "train")
    found = spans.features(0, len(spans.start), OPTIONS, tokenizer.vocabulary)
    for ours, theirs in (("input_ids", "input_ids"), ("segment_ids", "segment_ids"), *([
            ("start_positions", "start_position"), ("end_positions", "end_position"),
            ("is_impossible", "is_impossible")] if split == "train" else [])):
        np.testing.assert_array_equal(found[ours].squeeze(), expected[theirs], err_msg=ours)
    np.testing.assert_array_equal(1 - found["input_mask"], expected["input_mask"])
    np.testing.assert_array_equal(spans.length, expected["paragraph_len"])
    # What the head knows of them: the class token is the last, the passage all of segment 0 but
    # for its separator.
    cls = found["input_mask"].sum(1, keepdims=True) - 1
    np.testing.assert_array_equal(cls[:, 0], expected["cls_index"])
    passage = (found["segment_ids"] == 0).sum(1, keepdims=True) - 1
    place = np.arange(OPTIONS.max_seq_length)
    np.testing.assert_array_equal((place >= passage) & (place != cls), expected["p_mask"])


def test_a_question_without_tokens_has_its_separator(tokenizer):
    passage = Paragraph(["A"], [Question("q", "\u200b", is_impossible=True)], [], "A")
    options = SpanOptions(8, 4, 4, "xlnet")
    spans = cut_spans([passage], tokenizer, options)
    found = spans.features(0, 1, options, tokenizer.vocabulary)
    token, = tokenizer.encode("A")
    assert found["input_ids"].tolist() == [[token, 4, 4, 3, 0, 0, 0, 0]]
    assert found["segment_ids"].tolist() == [[0, 0, 1, 2, 3, 3, 3, 3]]
    assert found["start_positions"].tolist() == found["end_positions"].tolist() == [[3]]


def test_golden_answers(golden, tokenizer):
    with gzip.open(golden / "squad_predictions_seed1.json.gz", "rt", encoding="utf-8") as file:
        expected = json.load(file)
    rows, starts, ends = (expected[name] for name in ("results", "start_n_top", "end_n_top"))
    found = {name: np.array([row[name] for row in rows])
             for name in ("start_top_log_probs", "start_top_index")}
    found |= {name: np.array([row[name] for row in rows]).reshape(-1, starts, ends)
              for name in ("end_top_log_probs", "end_top_index")}
    found["answerable_logits"] = np.array([row["cls_logits"] for row in rows])
    predicted = find_answers(spans_of(golden, tokenizer, False), found, tokenizer, AnswerOptions(
        expected["n_best_size"], expected["max_answer_length"], True, "xlnet"))
    assert {prediction.id: prediction.text for prediction in predicted} == expected["predictions"]
    for prediction in predicted:
        assert prediction.null_odds == expected["null_odds"][prediction.id]
        for mine, theirs in zip(prediction.n_best, expected["nbest"][prediction.id], strict=True):
            assert mine["text"] == theirs["text"]
            assert mine["probability"] == pytest.approx(theirs["probability"], abs=1e-12)
            assert (mine["start_logit"], mine["end_logit"]) == (
                theirs["start_log_prob"], theirs["end_log_prob"])
