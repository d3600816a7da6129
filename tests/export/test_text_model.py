"""Models of raw text in a graph, against the Python models; long texts; packing."""

import functools
import json
import os
import random
import types
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.records.features import pack_pairs, truncate_pairs
from bert_tf.errors import InputError
from bert_tf.export.answer_model import AnswerModel
from bert_tf.export.packing import Packer
from bert_tf.export.saving import save_model
from bert_tf.export.text_model import ChoiceModel, TaggerModel, TextModel
from bert_tf.tasks import squad
from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.kinds import windows
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.squad_answers import AnswerOptions, find_answers
from bert_tf.tasks.task import Task
from bert_tf.tokenization.encoding import HEAD_TAIL, MAX, MEAN
from bert_tf.tokenization.vocabulary import Layout
from bert_tf.tokenization.wordpiece_graph import words_graph
from tests import processes
from tests.export.conftest import features_of, named
from tests.tokenization.hard_lines import HARD_LINES, random_lines

# No lone surrogates here, and nothing that is refused; lines that JSON and UTF-8 can carry.
LINES = HARD_LINES + random_lines(40, seed=2)
SERVE = """
import json, sys
import numpy as np
import tensorflow as tf
import tensorflow_text
path, inputs, out = sys.argv[1:]
function = tf.saved_model.load(path).signatures["serving_default"]
outputs = function(**{k: tf.constant(v) for k, v in json.loads(inputs).items()})
np.savez(out, **{k: v.numpy().astype("S" if v.dtype == tf.string else v.numpy().dtype)
                 for k, v in outputs.items()})
assert "bert_tf" not in sys.modules
"""


# How `exported` makes each kind.
SETTINGS = {TextModel: {"max_seq_length": 40}, ChoiceModel: {"max_seq_length": 30},
            TaggerModel: {"max_seq_length": 16, "labels": "ABC"},
            AnswerModel: {"max_seq_length": 64, "max_answer_length": 4, "doc_stride": 9,
                          "max_query_length": 20}}


@pytest.fixture(scope="module")
def exported(make_model, vocabulary):
    """A function that gives the text model of a kind and a task, built once."""
    @functools.cache
    def make(kind, task):
        return kind(make_model(task, vocabulary.size), vocabulary, **SETTINGS[kind])
    return make


def test_one_text(make_model, vocabulary, tokenizer, exported, check_equal):
    outputs = exported(TextModel, "encoder").functions["serving_default"](tf.constant(LINES))
    check_equal(outputs, make_model("encoder", vocabulary.size), tokenizer,
                [(line, "") for line in LINES], longest=40)


def test_two_texts(eagerly, make_model, vocabulary, tokenizer, check_equal):
    model = make_model("regression", vocabulary.size)
    pairs = list(zip(LINES, LINES[7:] + LINES[:7]))
    a, b = map(list, zip(*pairs))
    module = TextModel(model, vocabulary, max_seq_length=25)
    outputs = module.functions["pair"](tf.constant(a), tf.constant(b))
    check_equal(outputs, model, tokenizer, pairs, longest=25)


def test_choices(make_model, vocabulary, tokenizer, exported):
    model, count = make_model("multiple_choice", vocabulary.size), 3
    contexts = LINES[::count][:20]
    choices = [[LINES[(row * 5 + i) % len(LINES)] for i in range(count)]
               for row in range(len(contexts))]
    choose = exported(ChoiceModel, "multiple_choice").functions["serving_default"]
    outputs = {name: value.numpy() for name, value in choose(
        tf.constant(contexts), tf.constant(choices)).items()}
    features = features_of(tokenizer, [(context, choice) for context, row in zip(contexts, choices)
                                       for choice in row], 30)
    features = {name: rows.reshape(len(contexts), count, -1) for name, rows in features.items()}
    assert np.array_equal(outputs["input_ids"], features["input_ids"])
    logits = np.asarray(model(features)["multiple_choice"])
    assert outputs["logits"].shape == (len(contexts), count)
    assert np.abs(outputs["logits"] - logits).max() < 1e-5
    assert outputs["choice"].tolist() == logits.argmax(axis=1).tolist()
    assert len(set(outputs["choice"])) == count


def test_a_tagger_tells_where_its_tokens_stand(
        eagerly, make_model, vocabulary, tokenizer, exported, check_equal):
    model, lines = make_model("tagging", vocabulary.size), ["", "Plaining, WORDé", "a 中b", " the"]
    outputs = exported(TaggerModel, "tagging").functions["serving_default"](tf.constant(lines))
    outputs = {name: value.numpy() for name, value in outputs.items()}
    check_equal(outputs, model, tokenizer, [(line, "") for line in lines])
    for row, line in enumerate(lines):
        ids, offsets = tokenizer.encode_with_offsets(line)
        spans = list(zip(outputs["start"][row], outputs["end"][row]))
        expected = [(len(line[:i].encode()), len(line[:j].encode())) for i, j in offsets]
        assert spans == [(-1, -1), *expected] + [(-1, -1)] * (len(spans) - 1 - len(ids))
    assert outputs["is_word_start"][1].tolist() == [0, 1, 0, 0, 1, 0, 0]
    assert set(outputs["label"].ravel()) <= {b"A", b"B", b"C"}


def test_a_tagger_reads_the_tokens_that_the_python_model_reads(eagerly, tokenizer, exported):
    lines = ["a\x00b \x00 c", "\x7f\x80\x9f ab", "the \ufffd 20 \u200b", "a\x85b\xad",
             "plaining, a.b. c-d"]
    tag = exported(TaggerModel, "tagging").functions["serving_default"]
    kind = KINDS["tagging"]
    features, _ = kind.encode(Task("own", kind, {}, tuple("ABC")),
                              [kind.example(line, 0) for line in lines], tokenizer, 16)
    found = tag(tf.constant(lines))
    for name, feature in (("input_ids", "input_ids"), ("is_word_start", "label_weights")):
        rows = found[name].numpy()
        assert rows.tolist() == features[feature][:, :rows.shape[1]].astype(int).tolist()


def answers_of_run_squad(model, tokenizer, pairs, threshold=None, **settings):
    """The answers as run_squad gives them, from spans that hold no word of the graph."""
    paragraphs = [squad.Paragraph(
        squad.passage_words(passage), [squad.Question(str(row), question)], [], passage)
        for row, (question, passage) in enumerate(pairs)]
    options = SpanOptions(**{name: value for name, value in settings.items()
                             if name != "max_answer_length"})
    spans = cut_spans(paragraphs, tokenizer, options)
    features = spans.features(0, len(spans.start), options, tokenizer.vocabulary)
    features = {name: features[name].astype("int32") for name in
                ("input_ids", "input_mask", "segment_ids")}
    logits = np.where(features["input_mask"][:, None], model(features)["answer_span"], -1e30)
    logits = {"start_logits": logits[:, 0], "end_logits": logits[:, 1]}
    found = find_answers(spans, logits, tokenizer, AnswerOptions(
        max_answer_length=settings["max_answer_length"],
        version_2_with_negative=threshold is not None))
    return [each.answer(threshold or 0.0) for each in found], np.diff(spans.first_span)


def test_answers_are_those_of_run_squad_in_passages_of_any_length(
        make_model, vocabulary, tokenizer, exported, tmp_path):
    """Which a saved module gives in a process without this package."""
    model, rng = make_model("answer_span", vocabulary.size), random.Random(4)
    refused = words_graph(True).is_unsure(LINES).numpy()
    passages = [line for line, is_refused in zip(LINES, refused) if tokenizer.encode(line)
                and not is_refused and not any(map(unicodedata.combining, line))]
    passages += [rng.choice([" ", "\n", "\u202f "]).join(
        rng.choices(passages, k=rng.randint(2, 40))) for _ in range(20)]
    questions = [f"what {'is ' * (row % 30)}{row}?" for row in range(len(passages))]
    path = save_model(exported(AnswerModel, "answer_span"), tmp_path / "served")
    processes.Process(SERVE, [path, json.dumps({"question": questions, "passage": passages}),
                              str(tmp_path / "out")], cwd=tmp_path).finish()
    outputs = np.load(tmp_path / "out.npz")
    expected, windows = answers_of_run_squad(model, tokenizer, list(zip(questions, passages)),
                                             **SETTINGS[AnswerModel])
    # NumPy's strings lose the zero bytes at their end.
    assert [answer.decode() for answer in outputs["answer"]] == [
        answer.rstrip("\0") for answer in expected]
    assert max(windows) > 9 and sum(windows > 1) > 15 and len(set(expected)) > 30
    # Alone, a passage has the same answer.
    ask = exported(AnswerModel, "answer_span").functions["serving_default"]
    longest = int(np.argmax(windows))
    alone = ask(tf.constant([questions[longest]]), tf.constant([passages[longest]]))
    assert alone["answer"].numpy()[0].decode() == expected[longest]
    assert abs(alone["score"] - outputs["score"][longest]) < 1e-5


def test_a_model_may_answer_that_there_is_no_answer(
        eagerly, make_model, vocabulary, tokenizer, exported):
    model, settings = make_model("answer_span", vocabulary.size), SETTINGS[AnswerModel]
    pairs = [(f"what {row}?", " ".join(["plain word the"] * (1 + 3 * row)) + f" {row}.")
             for row in range(20)]
    ask = exported(AnswerModel, "answer_span").functions["serving_default"]
    outputs = ask(*map(tf.constant, zip(*pairs)))
    odds = np.sort(outputs["no_answer_score"] - outputs["score"])
    threshold = float(odds[9:11].mean())
    ask = AnswerModel(model, vocabulary, null_score_diff_threshold=threshold, **settings
                      ).functions["serving_default"]
    answers = [each.decode() for each in ask(*map(tf.constant, zip(*pairs)))["answer"].numpy()]
    expected, _ = answers_of_run_squad(model, tokenizer, pairs, threshold, **settings)
    assert answers == expected and answers.count("") == 10


@pytest.mark.parametrize("passage", ["", " "])
def test_an_answer_needs_a_passage(passage, exported):
    ask = exported(AnswerModel, "answer_span").functions["serving_default"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="a passage is empty"):
        ask(tf.constant(["what?"]), tf.constant([passage]))


@pytest.mark.parametrize("long_text", ["truncate", "mean"])
def test_texts_come_in_pairs(eagerly, make_model, vocabulary, long_text):
    ask = TextModel(make_model("classification", vocabulary.size), vocabulary, max_seq_length=30,
                    long_text=long_text).functions["pair"]
    for counts in ((1, 2), (2, 1), (1, 0), (0, 1)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="as many second texts as first"):
            ask(*(tf.constant(["a b"] * count, tf.string) for count in counts))


@pytest.mark.parametrize("counts", [(3, 2), (1, 2), (2, 1), (2, 3)])
def test_inputs_have_as_many_rows(exported, counts):
    first, second = (["a b", "c", "d"][:count] for count in counts)
    ask = exported(AnswerModel, "answer_span").functions["serving_default"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many questions as passages"):
        ask(tf.constant(first), tf.constant(second))
    choose = exported(ChoiceModel, "multiple_choice").functions["serving_default"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many contexts as rows"):
        choose(tf.constant(first), tf.constant([[text, "b"] for text in second]))


def test_no_text_and_a_short_one(eagerly, exported):
    for kind, task, inputs in ((TextModel, "encoder", 1), (TaggerModel, "tagging", 1),
                               (AnswerModel, "answer_span", 2)):
        function = exported(kind, task).functions["serving_default"]
        for texts in ([], ["a"]):
            outputs = function(*[tf.constant(texts, tf.string)] * inputs)
            assert {len(value) for value in outputs.values()} == {len(texts)}


def test_a_tagger_cuts_nothing_off(eagerly, exported):
    tag = exported(TaggerModel, "tagging").functions["serving_default"]
    assert tag(tf.constant(["a " * 14]))["input_ids"].shape == (1, 16)
    with pytest.raises(tf.errors.InvalidArgumentError, match="too long; cut it"):
        tag(tf.constant(["a " * 15]))


def test_what_the_graph_is_not_sure_of_is_refused(exported):
    answer = exported(TextModel, "encoder").functions["serving_default"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="younger than .* leave it out"):
        answer(tf.constant(["fine", "\ua7c0"]))


def test_bad_settings(make_model, vocabulary):
    model = make_model("encoder", vocabulary.size - 1)
    with pytest.raises(InputError, match="give the vocabulary that the model was trained with"):
        TextModel(model, vocabulary)
    with pytest.raises(InputError, match="from 8 to the model's 64"):
        TextModel(make_model("encoder", vocabulary.size), vocabulary, max_seq_length=65)
    for task, way in (("classification", "window"), ("encoder", "mean"), ("tagging", "mean")):
        with pytest.raises(InputError, match=f"long_text is '{way}'; it must be one of truncate"):
            TextModel(make_model(task, vocabulary.size), vocabulary, max_seq_length=64,
                      long_text=way)


def test_a_version_is_never_overwritten_and_whole(make_model, vocabulary, tmp_path, monkeypatch):
    module = TextModel(make_model("encoder", vocabulary.size), vocabulary, max_seq_length=32)
    monkeypatch.setattr(tf.saved_model, "save", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_model(module, tmp_path / "m")
    assert not os.listdir(tmp_path / "m")
    monkeypatch.setattr(tf.saved_model, "save", lambda *_, **__: None)
    assert save_model(module, tmp_path / "m", 7) == str(tmp_path / "m" / "7")
    with pytest.raises(InputError, match="7 is there already; give another version"):
        save_model(module, tmp_path / "m", 7)
    assert os.listdir(tmp_path / "m") == ["7"]


# Long texts

LENGTH = 23


@pytest.fixture(name="texts", scope="module")
def fixture_texts():
    """Texts of 0 to 60 tokens, each letter a token."""
    rng = random.Random(5)
    return [" ".join(rng.choices("abcdefghij", k=rng.choice([0, 1, 9, 10, 11, 20, 21, 60])))
            for _ in range(240)]


def check_windows(outputs, examples, model, kind, tokenizer, way):
    """Compares what a graph gave for examples, each a list of texts or pairs, with Python."""
    features, counts, _ = windows.encode_long(examples, tokenizer, LENGTH, way)
    choices = len(examples[0])
    shape = (-1, choices, LENGTH) if kind == "multiple_choice" else (-1, LENGTH)
    features = {name: values.reshape(shape) for name, values in features.items()}
    length = outputs["input_ids"].shape[-1]
    assert np.array_equal(outputs["input_ids"], features["input_ids"][..., :length])
    assert not features["input_ids"][..., length:].any()
    wanted = windows.join_windows(KINDS[kind], named(model(features), model), counts, way)
    if way != HEAD_TAIL:
        assert outputs["windows"].numpy().tolist() == counts.tolist() and counts.max() > 3
    for name, values in wanted.items():
        assert outputs[name].shape == values.shape
        assert np.allclose(outputs[name], values, rtol=1e-5, atol=2e-5), name


@pytest.mark.parametrize("kind, way", [
    ("classification", HEAD_TAIL), ("classification", MAX), ("multi_label", MEAN),
    ("regression", MEAN)])
def test_one_text_and_two(eagerly, make_model, vocabulary, tokenizer, texts, kind, way):
    model = make_model(kind, vocabulary.size)
    module = TextModel(model, vocabulary, max_seq_length=LENGTH, long_text=way)
    outputs = module.functions["serving_default"](tf.constant(texts))
    check_windows(outputs, [[(text,)] for text in texts], model, kind, tokenizer, way)
    first, second = texts[:120], texts[120:]
    outputs = module.functions["pair"](tf.constant(first), tf.constant(second))
    check_windows(outputs, [[pair] for pair in zip(first, second)], model, kind, tokenizer, way)


@pytest.mark.parametrize("way", [HEAD_TAIL, MAX])
def test_long_choices(make_model, vocabulary, tokenizer, texts, way):
    model = make_model("multiple_choice", vocabulary.size)
    module = ChoiceModel(model, vocabulary, max_seq_length=LENGTH, long_text=way)
    contexts, choices = texts[:60], np.reshape(texts[60:], (60, 3))
    outputs = module.functions["serving_default"](tf.constant(contexts), tf.constant(choices))
    check_windows(outputs, [[(context, choice) for choice in row]
                    for context, row in zip(contexts, choices.tolist())],
          model, "multiple_choice", tokenizer, way)
    assert outputs["choice"].numpy().tolist() == outputs["logits"].numpy().argmax(-1).tolist()


@pytest.mark.parametrize("way, more", [("truncate", ()), (MAX, ("windows",))])
def test_labels_and_no_text(eagerly, make_model, vocabulary, way, more):
    module = TextModel(make_model("classification", vocabulary.size), vocabulary,
                       max_seq_length=LENGTH, labels=["no", "maybe", "yes"], long_text=way)
    outputs = module.functions["serving_default"](tf.constant([], tf.string))
    assert {name: len(values) for name, values in outputs.items()} == dict.fromkeys(
        ("logits", "probabilities", "label", "input_ids", *more), 0)
    outputs = module.functions["serving_default"](tf.constant(["a " * 50, "b"]))
    best = np.argmax(outputs["probabilities"], axis=1)
    assert outputs["label"].numpy().tolist() == [[b"no", b"maybe", b"yes"][i] for i in best]
    assert np.allclose(np.sum(outputs["probabilities"], axis=1), 1)


# Packing

@pytest.mark.parametrize("layout", [
    Layout(), Layout(1, 2, 1), Layout(0, 1, 2, cls_last=True),
    Layout(1, 2, 1, cls_between=True), Layout(1, 2, 1, cls_between=True, of_b=1)])
def test_packs_as_outside_the_graph(layout):
    vocabulary = types.SimpleNamespace(layout=layout, cls_id=90, start_id=90, sep_id=91, pad_id=92)
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 15, [40, 2])
    lengths[::3, 1] = 0
    tokens = rng.integers(1, 80, lengths.sum()).astype(np.int32)
    a, b = (tf.ragged.constant([tokens[end - n:end].tolist() for end, n in zip(ends, column)],
                               dtype=tf.int32)
            for ends, column in zip(np.cumsum(lengths).reshape(-1, 2).T.tolist(),
                                    lengths.T.tolist()))
    starts = np.cumsum(lengths).reshape(-1, 2) - lengths
    kept = truncate_pairs(*lengths.T, 16, layout)
    expected = pack_pairs(tokens, starts[:, 0], kept[0], starts[:, 1], kept[1], 16, vocabulary)
    found = Packer(vocabulary, 16)(a, b)
    for name, rows in expected.items():
        np.testing.assert_array_equal(found[name], rows)
