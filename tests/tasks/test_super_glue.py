"""Tasks of SuperGLUE whose lines are no rows of texts: files written by hand after the descriptions
of super.gluebenchmark.com, scores against the formulas of arXiv:1905.00537, section 3, and what the
server takes.
"""

import collections
import json

import numpy as np
import pytest
from sklearn.metrics import f1_score

from bert_tf.compression.teachers import Teacher
from bert_tf.errors import InputError, warn
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.span_comparison import SpanComparison
from bert_tf.predictor import Predictor
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import Example, read_examples
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.split_records import Source
from bert_tf.tokenization import open_tokenizer
from bert_tf.training.learners.learner import Learner
from bert_tf.training.train import save_model
from tests.tasks import library_sets
from tests.test_metrics import official_normalize
from tests.training import tiny

MULTIRC = [{"idx": 7, "passage": {"text": "<b>Sent 1: </b>A cat.<br><b>Sent 2: </b>A dog.<br>",
                                  "questions": [
    {"idx": 3, "question": "who?", "answers": [
        {"idx": 20, "text": "cat", "label": 1}, {"idx": 21, "text": "cow", "label": 0}]},
    {"idx": 4, "question": "what?", "answers": [{"idx": 22, "text": "dog", "label": 1}]}]}},
    {"idx": 8, "passage": {"text": "B.", "questions": [
        {"idx": 5, "question": "b?", "answers": [{"idx": 23, "text": "b", "label": 0}]}]}}]
TEXT = library_sets.PASSAGE
RECORD = [{"idx": 0, "passage": {"text": TEXT, "entities": [
    {"start": 0, "end": 2}, {"start": 8, "end": 9}, {"start": 14, "end": 17},
    {"start": 31, "end": 32}]}, "qas": [
        {"idx": 10, "query": "@placeholder went away", "answers": [
            {"start": 8, "end": 9, "text": "Bo"}, {"start": 31, "end": 32, "text": "Bo"}]},
        {"idx": 11, "query": "in @placeholder", "answers": [
            {"start": 14, "end": 17, "text": "Rome"}, {"start": 0, "end": 2, "text": "Ann B"}]}]}]
_bat, _b = library_sets.WIC
WIC = [_bat, {**_b, "label": "false"}]
_cat, _use = library_sets.WSC
WSC = [_cat, {**_use, "target": {**_use["target"], "span2_index": 1}}]      # it is word 3


@pytest.fixture(name="write")
def fixture_write(tmp_path):
    """function(rows) -> the path of a file of these JSON lines."""
    def make(rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)
    return make


def read(write, task, rows, split="dev"):
    return list(read_examples(TASKS[task], split, write(rows)))


def test_examples_of_candidates(write):
    found = read(write, "multirc", MULTIRC)
    assert [(e.texts, e.label, e.document) for e in found] == [
        (["A cat. A dog.", "who? cat"], 1, 0), (["A cat. A dog.", "who? cow"], 0, 0),
        (["A cat. A dog.", "what? dog"], 1, 1), (["B.", "b? b"], 0, 2)]
    found = read(write, "record", RECORD)
    text = "Ann met Bo in Rome. Bo left. Ann stayed"
    assert [(*e.texts, e.label, e.document) for e in found] == [
        (text, "Ann went away", 0, 0), (text, "Bo went away", 1, 0),
        (text, "Rome went away", 0, 0), (text, "in Ann", 0, 1), (text, "in Bo", 0, 1),
        (text, "in Rome", 1, 1)]


def test_marked_words_are_found(write):
    assert [(e.texts, e.label) for e in read(write, "wic", WIC)] == [
        (["a ", "bat", " flew", "my ", "bats", ""], 1), (["", "b", " c", "d ", "b", ""], 0)]
    # Case may differ; of equal words the nearest to the index counts; an index may be wrong.
    assert [(e.texts, e.label) for e in read(write, "wsc", WSC)] == [
        (["", "the cat", " saw it , but it hid", "the cat saw it , but ", "it", " hid"], 0),
        (["", "a", " use of it", "a use of ", "it", ""], 1)]
    odd = [{**WSC[1], "target": {**WSC[1]["target"], "span1_text": "some x"}}]
    assert read(write, "wsc", odd)[0].texts[:3] == ["", "a use", " of it"]
    # As in fairseq and T5's code a blank ends each word; tensorflow_datasets repairs such spans.
    odd = [{"text": "it ran.  The  old\nfox, as it hid", "label": True, "target": {
        "span1_index": 3, "span1_text": "Old fox.", "span2_index": 7, "span2_text": "it"}}]
    assert read(write, "wsc", odd)[0].texts == [
        "it ran.  The  ", "old\nfox", ", as it hid", "it ran.  The  old\nfox, as ", "it", " hid"]


@pytest.mark.parametrize("task, rows, part", [
    ("multirc", [{"label": 1}], "line 1 is not an example of this SuperGLUE task"),
    ("multirc", [MULTIRC[0], {"passage": {"text": "", "questions": [
        {"question": "", "answers": [{"text": ""}]}]}}], "line 2 has no label"),
    ("record", [{**RECORD[0], "qas": [{"query": "x", "idx": 0}]}], "has no @placeholder"),
    ("record", [{**RECORD[0], "passage": {"text": TEXT, "entities": [{"start": 0, "end": 90}]}}],
     "characters 0 to 91 are not in a text of 60"),
    ("record", [{**RECORD[0], "passage": {"text": TEXT, "entities": [{"start": -3, "end": -2}]}}],
     "characters -3 to -1 are not in a text of 60"),
    ("record", [{**RECORD[0], "passage": {"text": TEXT, "entities": []}}], "has no entities"),
    ("wic", [{**WIC[0], "end2": 90}], "characters 3 to 90 are not in a text of 7"),
    ("wic", [{**WIC[0], "label": None}], "line 1 has no label"),
    ("wsc", [{**WSC[0], "label": "perhaps"}], "label 'Perhaps' is none of False, True"),
    ("wsc", [{**WSC[0], "target": {**WSC[0]["target"], "span2_index": 8}}],
     "word 8 is not in a text of 8"),
    ("wsc", [{**WSC[0], "target": {**WSC[0]["target"], "span2_text": " "}}], "a span is empty")])
def test_lines_that_are_no_examples_are_named(write, task, rows, part):
    with pytest.raises(InputError, match=part):
        read(write, task, rows)


def span_tokens(made, tokenizer, row, part):
    start, end = (made[name][row, part] for name in ("span_starts", "span_ends"))
    return "".join(tokenizer.tokens(made["input_ids"][row, start:end + 1]))


def test_spans_are_the_tokens_of_the_marked_words(write, tokenizer):
    """A vocabulary of letters, so that tokens are the words' letters."""
    for task, rows, texts in (
            ("wic", WIC, [("abatflew", "mybats"), ("bc", "db")]),
            ("wsc", WSC, [("thecatsawit[UNK]butithid",), ("auseofit",)])):
        kind, examples = TASKS[task].kind, read(write, task, rows)
        made, cut = kind.encode(TASKS[task], examples, tokenizer, 40)
        assert cut == 0 and {f.name for f in kind.features} == set(made)
        for row, example in enumerate(examples):
            ids = made["input_ids"][row][made["input_mask"][row]]
            letters = "".join(tokenizer.tokens(ids)).replace("##", "")
            assert letters == "[CLS]" + "[SEP]".join(texts[row]) + "[SEP]"
            for part in range(2):
                assert span_tokens(made, tokenizer, row, part).replace(
                    "##", "") == example.texts[3 * part + 1].replace(" ", "")
    made, cut = TASKS["wic"].kind.encode(TASKS["wic"], read(write, "wic", WIC), tokenizer, 8)
    assert cut == 1                     # [CLS] a ba [SEP] my [SEP]: "bats" was lost
    assert span_tokens(made, tokenizer, 0, 0) == "b##a"
    assert span_tokens(made, tokenizer, 0, 1) == "##y"
    assert (made["span_ends"] < made["input_mask"].sum(1, keepdims=True)).all()


@pytest.mark.parametrize("name", ["albert/spiece.model", "roberta-base"])
def test_other_tokenizers_mark_the_same_words(write, test_data, name):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / name))
    for task, rows in (("wic", WIC), ("wsc", WSC)):
        examples = read(write, task, rows)
        made, _ = TASKS[task].kind.encode(TASKS[task], examples, tokenizer, 40)
        for row, example in enumerate(examples):
            for part in range(2):
                start, end = (made[key][row, part] for key in ("span_starts", "span_ends"))
                found = "".join(map(tokenizer.readable, made["input_ids"][row, start:end + 1]))
                assert found.strip().lower() == example.texts[3 * part + 1].strip().lower()


@pytest.mark.parametrize("reads_cls", [False, True])
def test_head_equals_the_formula(reads_cls):
    """arXiv:1707.07045, equations 1 to 4 of section 3, over each part alone."""
    rng, config = np.random.default_rng(0), tiny.config()
    head = SpanComparison(config, 3, reads_cls)
    for weight in head.weights:
        weight.assign(rng.normal(size=weight.shape))
    x, pooled = rng.normal(size=(2, 6, 32)), rng.normal(size=(2, 32))
    spans = [[(1, 1), (3, 5)], [(0, 2), (2, 4)]]
    batch = {"span_starts": np.array([[s for s, _ in row] for row in spans]),
             "span_ends": np.array([[e for _, e in row] for row in spans])}
    found = np.array(head({"sequence_output": x.astype("float32"),
                           "pooled_output": pooled.astype("float32")}, batch))
    weights = {weight.path.split("/", 1)[1]: np.array(weight, float) for weight in head.weights}
    for row, pair in enumerate(spans):
        parts = [pooled[row]] if reads_cls else []
        for start, end in pair:
            tokens = x[row, start:end + 1]
            scores = tokens @ weights["attention/kernel"] + weights["attention/bias"]
            share = np.exp(scores - scores.max())
            parts.append((share / share.sum() * tokens).sum(0))
        wanted = np.concatenate(parts) @ weights["dense/kernel"] + weights["dense/bias"]
        np.testing.assert_allclose(found[row], wanted, atol=1e-4)


def test_multirc_is_scored_by_answers_and_by_questions(write):
    """F1 over all answers, and the share of questions without a wrong answer, of random ones."""
    rng, task = np.random.default_rng(0), TASKS["multirc"]
    sizes = rng.integers(1, 5, 30)
    labels = [rng.integers(0, 2, size).tolist() for size in sizes]
    path = write([{"idx": 0, "passage": {"text": "t", "questions": [
        {"idx": number, "question": "q", "answers": [
            {"idx": i, "text": "a", "label": label} for i, label in enumerate(row)]}
        for number, row in enumerate(labels)]}}])
    examples = list(read_examples(task, "dev", path))
    found = [[label ^ int(rng.random() < 0.2) for label in row] for row in labels]
    scores = task.kind.score(task, path, examples, np.array(sum(found, [])))
    assert scores == pytest.approx({
        "f1": f1_score(sum(labels, []), sum(found, [])),
        "group_em": np.mean([a == b for a, b in zip(labels, found)])})


@pytest.mark.parametrize("labels, found", [
    ([0, 1, 2, 1], [0, 1, 1, 1]), ([0, 1, 1], [0, 1, 0]), ([2, 2], [2, 2]), ([1], [0])])
def test_the_f1_of_cb_is_a_mean_over_all_labels(labels, found, write):
    """nyu-mll/jiant, jiant/tasks/evaluate/core.py, CommitmentBankEvaluationScheme."""
    task = TASKS["cb"]
    path = write([{"premise": "p", "hypothesis": "h", "label": task.labels[label]}
                  for label in labels])
    examples = list(read_examples(task, "dev", path))
    labels, found = np.array(labels), np.array(found)
    assert task.kind.score(task, path, examples, found) == pytest.approx({
        "macro_f1": np.mean([f1_score(labels == label, found == label, zero_division=0)
                             for label in range(3)]), "accuracy": np.mean(labels == found)})


def overlap(wanted, found):
    wanted, found = (official_normalize(text).split() for text in (wanted, found))
    common = sum((collections.Counter(wanted) & collections.Counter(found)).values())
    return 2 * common / (len(wanted) + len(found))


def test_record_takes_the_likeliest_candidate_and_scores_its_words(write, tmp_path):
    path, task = write(RECORD), TASKS["record"]
    examples = list(read_examples(task, "dev", path))
    likely = np.array([0.9, 0.2, 0.3, 0.6, 0.6, 0.5])       # Ann; the first of Ann and Bo
    taken = task.kind.decode(task, {"probabilities": np.stack([1 - likely, likely], 1)}, examples,
                             {})
    assert taken.tolist() == [1, 0, 0, 1, 0, 0]
    texts, answers = ["Ann", "Ann"], [["Bo"], ["Rome", "Ann B"]]
    f1 = np.mean([max(overlap(answer, text) for answer in row)
                  for text, row in zip(texts, answers)])
    assert task.kind.score(task, path, examples, taken) == pytest.approx({"f1": f1, "em": 0.0})
    assert f1 == pytest.approx(1 / 3)
    for first in (2, 3):        # --examples: the first query alone, of two of its three candidates
        assert task.kind.score(task, path, examples[:first], np.eye(first, dtype=int)[1]) == {
            "f1": 1.0, "em": 1.0}
    source = Source(task, "dev", path)
    task.kind.write_submission(str(tmp_path / "ReCoRD.jsonl"), source.path, taken)
    assert [json.loads(line) for line in (tmp_path / "ReCoRD.jsonl").read_text().splitlines()] == [
        {"idx": 10, "label": "Ann"}, {"idx": 11, "label": "Ann"}]


@pytest.mark.parametrize("name", ["record", "multirc"])
def test_a_candidate_alone_is_judged_by_its_probability(name, tokenizer):
    task, likely = TASKS[name], np.array([[0.99, 0.01], [0.3, 0.7]])
    examples = [task.kind.example(("a text", text), number) for number, text in enumerate("ab")]
    found = task.kind.answer(task, examples, lambda features: {
        "logits": np.log(likely), "probabilities": likely}, tokenizer, 16, {})
    assert [one["label"] for one in found] == ["0", "1"]
    assert [one["probabilities"]["1"] for one in found] == [0.01, 0.7]


def test_multirc_is_submitted_by_passages(write, tmp_path):
    """super.gluebenchmark.com/faq: the numbers are those of the file."""
    rows = json.loads(json.dumps(MULTIRC))
    for row in rows:
        for question in row["passage"]["questions"]:
            for answer in question["answers"]:
                del answer["label"]
    task, path = TASKS["multirc"], write(rows)
    source, examples = Source(task, "test", path), read(write, "multirc", rows, "test")
    task.kind.write_submission(str(tmp_path / "MultiRC.jsonl"), source.path, np.array([0, 1, 1, 0]))
    lines = (tmp_path / "MultiRC.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"idx": 7, "passage": {"questions": [
            {"idx": 3, "answers": [{"idx": 20, "label": 0}, {"idx": 21, "label": 1}]},
            {"idx": 4, "answers": [{"idx": 22, "label": 1}]}]}},
        {"idx": 8, "passage": {"questions": [{"idx": 5, "answers": [{"idx": 23, "label": 0}]}]}}]
    # The whole test file has 9,693 answers.
    assert task.kind.write_more(str(tmp_path), source, examples, np.zeros(4, int), {}, True) == []


def test_a_predictor_reads_the_marked_words(tokenizer, capsys):
    """Its answers depend on which words are marked, and are those of the network and the head."""
    task, network = TASKS["wic"], BertEncoder(tiny.config(vocab_size=tokenizer.vocabulary.size))
    learner = Learner(network, [SpanComparison(network.config, 2, True)])
    predictor = Predictor.from_learner(learner, tokenizer, SavedTask(task, 16, True))
    rows = [("a ", "b", " c", "d", "e", ""), ("", "a", " b c", "d", "e", "")]
    found = [row["probabilities"]["True"] for row in predictor(rows)]
    made, _ = task.kind.encode(task, [Example(list(row), 0) for row in rows], tokenizer, 16)
    outputs = network({name: made[name].astype("int32") for name in network.reads})
    logits = np.array(learner.objectives[0](outputs, made))
    np.testing.assert_allclose(found, 1 / (1 + np.exp(logits[:, 0] - logits[:, 1])),
                               rtol=1e-5, atol=1e-5)
    assert found[0] != found[1]
    warn.cache_clear()
    predictor([("a ", "b", " c" * 16, "d", "e", "")])       # --long_text is not for this task
    assert "are cut to fit, as in training (--max_seq_length)." in capsys.readouterr().err


def test_a_teacher_reads_the_marked_words(tokenizer, tmp_path):
    """Of several texts, [CLS] vectors are not compared."""
    task, network = TASKS["wic"], BertEncoder(tiny.config(vocab_size=tokenizer.vocabulary.size))
    learner, saved = Learner(network, [SpanComparison(network.config, 2, True)]), SavedTask(
        task, 16, True)
    save_model(str(tmp_path), learner)
    saved.write(str(tmp_path))
    tokenizer.save(str(tmp_path))
    rows = [("a ", "b", " c", "d", "e", ""), ("", "a", " b c", "d", "e", "")]
    found = Teacher(str(tmp_path)).answer(task, [Example(list(row), 0) for row in rows])
    predictor = Predictor.from_learner(learner, tokenizer, saved)
    np.testing.assert_allclose(found["probabilities"][:, 1], [
        row["probabilities"]["True"] for row in predictor(rows)], atol=1e-5)
    SavedTask(TASKS["copa"], 16, True).write(str(tmp_path))
    with pytest.raises(InputError, match="has several .CLS. vectors per example"):
        Teacher(str(tmp_path), layers=(0,))
