"""Raw texts through models of every kind, against the models themselves."""

import copy
import dataclasses
import functools
import gc
import json
import multiprocessing
import os
import pickle
import random
import signal
import string
import weakref
from collections import UserString

import keras
import numpy as np
import pandas
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import checkpoints, objectives
from bert_tf.config import GPTConfig, XLNetConfig
from bert_tf.errors import InputError, opened_again, warn
from bert_tf.finetuning.model import ModelFlags
from bert_tf.metrics import entities
from bert_tf.networks import build
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import open_tokenizer
from bert_tf.training.distribution import open_strategy
from bert_tf.training.settings import FineTuneSettings
from bert_tf.training.train import save_model
from run_scripts import finetune
from tests import sentencepieces

LENGTH = 32
LETTERS = string.ascii_lowercase
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,?!", *LETTERS,
              *(f"##{letter}" for letter in LETTERS)]
LABELS = ("no", "perhaps", "yes")
TAGS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
TASKS = {
    "classification": (Task("own", "classification", {}, LABELS),
                       lambda config: bert_tf.Classification(config, 3)),
    "multi_label": (Task("own", "multi_label", {}, LABELS),
                    lambda config: bert_tf.MultiLabel(config, 3)),
    "regression": (Task("own", "regression", {}), bert_tf.Regression),
    "tagging": (Task("own", "tagging", {}, TAGS), lambda config: bert_tf.Tagging(config, 5)),
    "multiple_choice": (Task("own", "multiple_choice", {}), bert_tf.MultipleChoice),
    "span": (Task("squad", "span", {}), bert_tf.AnswerSpan),
}
SPAN_OPTIONS = {"doc_stride": 5, "max_query_length": 6, "n_best_size": 4, "max_answer_length": 3}


def make_learner(kind, dtype=None):
    keras.utils.set_random_seed(4)      # with which every passage has an answer
    config = bert_tf.EncoderConfig.preset(
        "tiny", vocab_size=len(VOCABULARY), num_hidden_layers=1, hidden_size=32,
        intermediate_size=64, max_position_embeddings=LENGTH, initializer_range=0.3)
    return bert_tf.Learner(bert_tf.BertEncoder(config, dtype=dtype), [TASKS[kind][1](config)])


def write(folder, kind, options=None):
    """Writes what a fine-tuning script leaves; returns the Learner."""
    folder.mkdir(parents=True, exist_ok=True)
    learner = make_learner(kind)
    save_model(folder, learner)
    SavedTask(TASKS[kind][0], LENGTH, True, options or {}).write(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    return learner


@pytest.fixture(scope="module", name="saved")
def _saved(tmp_path_factory):
    @functools.cache
    def get(kind):
        folder = tmp_path_factory.mktemp(kind)
        learner = write(folder, kind, SPAN_OPTIONS if kind == "span" else {})
        return folder, learner, bert_tf.Predictor(folder, batch_size=3)
    return get


@pytest.mark.parametrize("kind", ["classification", "tagging"])
def test_a_text_that_the_vocabulary_does_not_know_is_named_once(saved, kind, capsys):
    warn.cache_clear()      # the other kind has said the same
    predictor = bert_tf.Predictor(saved(kind)[0])
    predictor([text(random.Random(1)) for _ in range(5)])
    assert not capsys.readouterr().err
    for _ in range(2):
        predictor(["좋은 영화", "나쁜 영화"])
    assert capsys.readouterr().err.count("in words that the vocabulary does not know") == 1
    counts = predictor.coverage.counts
    assert (counts["texts"], counts["unknown_texts"], counts["unknown_tokens"]) == (9, 4, 8)


def test_that_texts_are_cut_to_fit_is_told_once(saved, capsys):
    warn.cache_clear()
    long = text(random.Random(3), 100)
    saved("tagging")[-1](long)
    saved("classification")[-1](["ab c", "d"])
    saved("span")[-1](("ab?", long))
    assert not capsys.readouterr().err
    for _ in range(2):
        saved("classification")[-1](["ab c", long])
        saved("span")[-1]((long, "ab"))
    assert [line for line in capsys.readouterr().err.splitlines() if "cut" in line] == [
        f"warning: texts of more than {LENGTH} tokens are cut to fit, as in training "
        "(--max_seq_length, --long_text).", "warning: questions of more than "
        f"{SPAN_OPTIONS['max_query_length']} tokens are cut to fit, as in training "
        "(--max_query_length)."]


def text(rng, words=None):
    return " ".join("".join(rng.choices(LETTERS, k=rng.randint(1, 4))) + rng.choice(["", "", "."])
                    for _ in range(words or rng.randint(1, 8)))


def make_examples(kind, count, seed=0):
    """Examples of all the shapes that a kind takes."""
    rng = random.Random(seed)
    if kind == "tagging":
        return [text(rng, rng.randint(1, 60)) for _ in range(count)] + [("one", "two three")]
    if kind == "multiple_choice":
        return [tuple(text(rng) for _ in range(rng.randint(3, 6))) for _ in range(count)]
    if kind == "span":
        return [(text(rng), text(rng, rng.randint(1, 40))) for _ in range(count)]
    return [rng.choice([text(rng), (text(rng), text(rng))]) for _ in range(count)]


def tokenizer():
    return bert_tf.WordpieceTokenizer(bert_tf.Vocabulary(VOCABULARY))


def forward(learner, *texts):
    """The logits of one sequence that needs no padding."""
    parts = [tokenizer().encode(part) + [3] for part in texts]
    ids = np.array([[2, *(index for part in parts for index in part)]], np.int32)
    segments = np.zeros_like(ids)
    segments[0, len(parts[0]) + 1:] = 1
    outputs = learner({"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": segments})
    return keras.ops.convert_to_numpy(*outputs.values())[0]


def softmax(logits):
    powers = np.exp(logits - np.max(logits))
    return powers / powers.sum(-1, keepdims=True)


def close(one, other):
    """Whether two answers are equal but for rounding."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    return abs(one - other) < 2e-4 if isinstance(one, float) else one == other


@pytest.mark.parametrize("kind", TASKS)
def test_each_example_is_answered_in_its_place_whatever_stands_beside_it(saved, kind):
    folder, learner, predictor = saved(kind)
    examples = make_examples(kind, 23)
    one_by_one = [predictor(example) for example in examples]
    assert len({json.dumps(answer) for answer in one_by_one}) > 5      # they do differ
    assert close(predictor(examples), one_by_one)
    assert close(predictor(examples[::-1]), one_by_one[::-1])
    in_memory = bert_tf.Predictor.from_learner(learner, tokenizer(), SavedTask.read(folder), 100)
    assert close(in_memory(examples), one_by_one)
    assert close(predictor([examples[0]]), [one_by_one[0]])
    assert predictor([]) == []


def test_names_of_numbered_labels_are_given(tmp_path):
    write(tmp_path, "classification")
    saved = SavedTask.read(str(tmp_path))
    task = dataclasses.replace(saved.task, labels=("0", "1", "2"), label_names=LABELS)
    dataclasses.replace(saved, task=task).write(str(tmp_path))
    answer = bert_tf.Predictor(tmp_path)("a b")
    assert answer["name"] == LABELS[int(answer["label"])]


def test_scores_that_are_nan_are_told(capsys):
    learner = make_learner("classification")
    predictor = bert_tf.Predictor.from_learner(
        learner, tokenizer(), SavedTask(TASKS["classification"][0], LENGTH, True))
    predictor("a b")
    assert "NaN" not in capsys.readouterr().err
    for variable in learner.weights:
        variable.assign(np.full(variable.shape, np.nan))
    predictor("a b")
    assert "the scores of the model are NaN" in capsys.readouterr().err


def test_many_pieces_are_put_together(saved, monkeypatch):
    _, _, predictor = saved("classification")
    examples = make_examples("classification", 11)
    whole = predictor(examples)
    monkeypatch.setattr("bert_tf.predictor._PIECE", 2)
    assert close(predictor(examples), whole)


@pytest.mark.parametrize("texts", [("abc de.",), ("",), ("a b c", "d e?"), ("a", "")])
def test_labels_are_those_of_the_unpadded_model(saved, texts):
    _, learner, predictor = saved("classification")
    said = predictor(texts if len(texts) > 1 else texts[0])
    expected = softmax(forward(learner, *filter(None, texts) if any(texts) else ("",)))
    assert said["label"] == LABELS[expected.argmax()]
    assert tuple(said["probabilities"]) == LABELS
    assert np.allclose(list(said["probabilities"].values()), expected, atol=1e-5)


@pytest.mark.parametrize("head, options", [
    ("StochasticAnswer", {"turns": 2}),
    ("AttentiveClassification", {"lstm_size": 3, "hidden_size": 4, "pairs": True})])
def test_a_head_reads_where_the_second_text_is_if_the_network_does_not(head, options, eagerly):
    keras.utils.set_random_seed(4)
    config = GPTConfig(
        vocab_size=len(VOCABULARY), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=LENGTH, initializer_range=0.3)
    learner = bert_tf.Learner(build(config), [getattr(objectives, head)(config, 3, **options)])
    predictor = bert_tf.Predictor.from_learner(
        learner, tokenizer(), SavedTask(TASKS["classification"][0], LENGTH, True))
    found = predictor(("a b c", "d e?"))["probabilities"]
    assert np.allclose(list(found.values()), softmax(forward(learner, "a b c", "d e?")), atol=2e-6)
    assert [*learner.feature_axes] == ["input_ids", "input_mask", "segment_ids"]


def test_several_labels_and_numbers(saved):
    _, learner, predictor = saved("multi_label")
    for example in ("ab c", "?", ("d e f.", "g"), ("a", "bcd !")):
        parts = example if isinstance(example, tuple) else (example,)
        likely = 1 / (1 + np.exp(-forward(learner, *parts)))
        said = predictor(example)
        assert said["labels"] == [label for label, p in zip(LABELS, likely) if p > 0.5]
        assert np.allclose(list(said["probabilities"].values()), likely, atol=1e-5)
    _, learner, predictor = saved("regression")
    said = predictor("ab c")
    assert abs(said["value"] - forward(learner, "ab c")[0]) < 1e-4 and list(said) == ["value"]


def test_words_are_tagged_by_their_first_piece(saved):
    _, learner, predictor = saved("tagging")
    words = ["ab", "c.", "def", "g"]
    pieces = [tokenizer().encode(word) for word in words]
    starts = 1 + np.cumsum([0, *map(len, pieces[:-1])])
    likely = softmax(forward(learner, " ".join(words)))[starts]
    expected = [TAGS[best] for best in likely.argmax(-1)]
    said, given = predictor(tuple(words)), "  ab c.\ndef\tg "
    assert said["words"] == words and said["tags"] == expected
    for entity, (start, end, kind) in zip(said["entities"], entities(expected), strict=True):
        assert entity == {"type": kind, "text": " ".join(words[start:end]), "first": start,
                          "last": end - 1, "probability": pytest.approx(
                              likely[start:end].max(-1).mean(), abs=2e-6)}
    in_text = predictor(given)
    assert in_text["tags"] == expected
    for entity, one in zip(in_text["entities"], said["entities"], strict=True):
        assert entity["text"] == given[entity["start"]:entity["end"]]
        assert entity["text"].split() == words[one["first"]:one["last"] + 1]
        assert entity.items() >= {**one, "text": entity["text"]}.items()


def test_no_word_of_a_long_text_is_left_without_a_tag(saved):
    _, _, predictor = saved("tagging")
    words = tuple(text(random.Random(3), 100).split())
    # The control character is a word without a piece.
    said = predictor([words, (), "", words[:3], "a \x00 b", (" ",)])
    assert [len(answer["tags"]) for answer in said] == [100, 0, 0, 3, 3, 1]
    assert len(set(said[0]["tags"][-40:])) > 1
    assert predictor("") == {"words": [], "tags": [], "entities": []}
    assert [answer["tags"] for answer in predictor(["", "a", "", "b"])] == [
        predictor(one)["tags"] for one in ("", "a", "", "b")]


def test_rows_of_tables_are_examples(saved):
    table = pandas.DataFrame({"body": ["ab c", "d"], "more": ["e", "f g"]})
    for kind in ("tagging", "classification"):
        predictor = saved(kind)[-1]
        for values in (table[["body"]], table[["body"]].to_numpy(), table.body):
            assert predictor(values) == predictor(["ab c", "d"])
        assert predictor(table) == predictor([("ab c", "e"), ("d", "f g")])
    with pytest.raises(InputError, match="^example 0 has 1 text.*question and a passage"):
        saved("span")[-1](table[["body"]])


def test_a_choice_is_scored_beside_its_context(saved):
    _, learner, predictor = saved("multiple_choice")
    example = ("ab", "c d", "ef.", "g h", "i")
    inputs = [tokenizer().encode(part) for part in example]
    scores = []
    for choice in inputs[1:]:
        ids = np.array([[[2, *inputs[0], 3, *choice, 3]]], np.int32)
        segments = (np.arange(ids.shape[2]) > len(inputs[0]) + 1).astype(np.int32)[None, None]
        batch = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": segments}
        scores.append(float(learner(batch)["multiple_choice"][0, 0]))
    said = predictor(example)
    assert said["choice"] == np.argmax(scores)
    assert np.allclose(said["probabilities"], softmax(scores), atol=1e-5)


def test_the_answer_is_the_likeliest_part_of_the_passage(saved):
    _, learner, _ = saved("span")
    question, words = "a b?", "c d e f g h i j".split()
    start, end = forward(learner, question, " ".join(words))[:, 5:5 + len(words)]
    wide = {**SPAN_OPTIONS, "n_best_size": 40}
    predictor = bert_tf.Predictor.from_learner(
        learner, tokenizer(), SavedTask(TASKS["span"][0], LENGTH, True, wide))
    scores = {" ".join(words[i:j + 1]): start[i] + end[j]
              for i in range(8) for j in range(i, min(i + 3, 8))}
    said = predictor((question, " ".join(words)))
    assert said["answer"] == max(scores, key=scores.get)
    likely = dict(zip(scores, softmax(np.array(list(scores.values())))))
    assert abs(said["probability"] - likely[said["answer"]]) < 1e-5
    assert {entry["text"] for entry in said["n_best"]} == set(scores)
    assert "null_odds" not in said


def test_an_answer_may_stand_at_the_end_of_a_long_passage(saved):
    _, _, predictor = saved("span")
    examples = make_examples("span", 40, seed=2)
    places = []
    for (_, passage), said in zip(examples, predictor(examples)):
        assert said["answer"] in passage or said["answer"] == "empty"
        places.append(passage.find(said["answer"]))
    assert max(places) > 40      # further than one window reaches


def test_no_answer_where_the_threshold_says_so(saved):
    _, learner, _ = saved("span")
    found = {}
    for threshold in (-1e9, 0.0, 1e9):
        task = SavedTask(TASKS["span"][0], LENGTH, True, {
            **SPAN_OPTIONS, "version_2_with_negative": True,
            "null_score_diff_threshold": threshold})
        found[threshold] = bert_tf.Predictor.from_learner(learner, tokenizer(), task)(
            make_examples("span", 20))
    assert {said["answer"] for said in found[-1e9]} == {""}
    assert all(said["answer"] for said in found[1e9])
    for low, said, high in zip(*found.values()):
        assert said["null_odds"] == low["null_odds"]
        assert said["answer"] == ("" if said["null_odds"] > 0 else high["answer"])
        assert said["probability"] == next(
            e["probability"] for e in said["n_best"] if e["text"] == said["answer"])


def test_it_is_traced_once(saved, monkeypatch):
    folder, _, _ = saved("classification")
    predictor, traced = bert_tf.Predictor(folder), []
    answers = bert_tf.Classification.answers
    monkeypatch.setattr(bert_tf.Classification, "answers",
                        lambda *args: traced.append(1) or answers(*args))
    for count in range(1, 6):
        predictor(make_examples("classification", 3 * count, seed=count))
        predictor("ab " * count)
    assert len(traced) == 1


def test_dtype(saved):
    folder, learner, _ = saved("regression")
    half = bert_tf.Predictor(folder, dtype="mixed_bfloat16")("ab c")["value"]
    assert 0 < abs(half - forward(learner, "ab c")[0]) < 0.2


@pytest.mark.parametrize("kind, example, message", [
    ("classification", None, "^the example: found a value of type NoneType in place of a text"),
    ("classification", b"a", "type bytes"),
    ("classification", 3, "type int"),
    ("classification", UserString("a"), "^the example: .* type UserString"),
    ("classification", tf.constant("a"), "^the example: .* type EagerTensor"),
    ("classification", ["a", "b", float("nan")], "^example 2: .* type float"),
    ("classification", [["a", "b"]], "^example 0: .* type list"),
    ("classification", [("a", None)], "^example 0: .* type NoneType"),
    ("classification", ["a", "b \ud800"], r"^example 1: character 2 of a text, '\\ud800', is half"),
    ("classification", ("a", "b", "c"), r"^the example has 3 texts; give a text, or a tuple"),
    ("regression", (), "has 0 text"),
    ("tagging", ("a", 1), "type int"),
    ("multiple_choice", [("a", "b", "c"), "abc"], "^example 1 has 1 .* context and two choices"),
    ("span", "a", "has 1 text.*question and a passage"),
    ("span", [("a", "b"), ("a", " \x00 ")], "^example 1 has an empty passage"),
])
def test_what_is_no_example_is_refused(saved, kind, example, message):
    with pytest.raises(bert_tf.InputError, match=message):
        saved(kind)[-1](example)


@pytest.mark.parametrize("given, message", [
    ({"batch_size": 1.5}, "^batch_size is 1.5; it must be a whole number of at least 1"),
    ({"batch_size": "3"}, "^batch_size is '3'; "), ({"batch_size": None}, "^batch_size is None; "),
    ({"batch_size": 0}, "^batch_size is 0; "), ({"dtype": "spam"}, "^dtype is 'spam'; give a "),
    ({"dtype": "int8"}, "^dtype is 'int8'; "), ({"dtype": "int32"}, "^dtype is 'int32'; "),
    ({"path": b"path"}, "^the path is b'path'; give the name"), ({"path": None}, "path is None; "),
    ({"path": ["a"]}, r"^the path is \['a'\]; "),
])
def test_what_opens_no_model_is_refused(saved, given, message):
    with pytest.raises(InputError, match=message):
        bert_tf.Predictor(**{"path": saved("regression")[0], **given})


def test_marks_of_line_ends_are_read_as_in_training(tmp_path):
    write(tmp_path, "classification")
    text = " a b<br /><br />c d<br />"
    plain = bert_tf.Predictor(tmp_path)
    task = dataclasses.replace(plain.saved_task.task, name="imdb")
    dataclasses.replace(plain.saved_task, task=task).write(tmp_path)
    found = bert_tf.Predictor(tmp_path)([text, "a b c d"])
    assert found[0] == found[1] and plain(text) != found[0]


def test_a_copy_opens_the_folder_again(saved):
    folder, learner, predictor = saved("classification")
    opened = bert_tf.Predictor(folder, batch_size=2, dtype="float32")
    for other in (pickle.loads(pickle.dumps(opened)), copy.deepcopy(opened)):
        assert other(np.array(["ab c", "d"])) == opened(["ab c", "d"]) and other is not opened
    in_memory = bert_tf.Predictor.from_learner(learner, tokenizer(), predictor.saved_task)
    with pytest.raises(bert_tf.InputError, match="in memory alone and can't be copied"):
        pickle.dumps(in_memory)


def test_a_fork_does_not_wait_without_end(saved):
    folder, _, predictor = saved("classification")
    for use in (lambda: predictor("ab"), lambda: bert_tf.Predictor(folder),
                lambda: bert_tf.FillMask(folder),
                lambda: open_strategy(FineTuneSettings(output_dir=str(folder)))):
        if not (child := os.fork()):
            signal.alarm(20)
            try:
                use()
            except InputError as error:
                os._exit(3 if "before this process was forked" in str(error) else 4)
            finally:
                os._exit(5)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for model in (predictor, predictor.predict):
            with pytest.raises(InputError, match="before this process was forked"):
                pool.map_async(model, ["ab"]).get(20)


def test_a_copy_that_cannot_be_opened_raises_the_error_when_it_is_called():
    """Not before: a Pool waits without end for a worker that can't read its task."""
    copy = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(Gone()))))
    for call in (copy, copy.predict):
        with pytest.raises(InputError, match="no .*nowhere"):
            call(["ab"])


class Gone:
    def __reduce__(self):
        return opened_again, (bert_tf.Predictor, "nowhere")


@pytest.mark.parametrize("kind", ["classification", "multi_label", "span"])
def test_a_predictor_leaves_no_graph_in_memory(saved, kind):
    gc.freeze()     # so that nobody looks through what other tests made, which takes seconds
    learner = make_learner(kind)
    predictor = bert_tf.Predictor.from_learner(learner, tokenizer(), SavedTask.read(saved(kind)[0]))
    predictor(("ab", "c d e") if kind == "span" else "ab c")
    gc.collect()
    own = [weakref.ref(one) for one in gc.get_objects() if type(one).__name__ == "FuncGraph"]
    assert own
    del learner, predictor
    gc.collect()
    assert not any(graph() for graph in own)


def test_examples_unlike_those_of_training_are_refused(saved):
    folder, learner, _ = saved("classification")
    task = dataclasses.replace(SavedTask.read(folder), num_texts=2)
    predictor = bert_tf.Predictor.from_learner(learner, tokenizer(), task)
    assert predictor(("ab", "c")) == predictor([("ab", "c")])[0]
    with pytest.raises(bert_tf.InputError, match=r"^example 1 has 1 text, but the model was "
                                                 "trained on examples of 2"):
        predictor([("ab", "c"), "ab"])


def test_folders_that_hold_no_fine_tuned_model_are_refused(tmp_path):
    folder = tmp_path / "model"
    write(folder, "classification")
    with pytest.raises(bert_tf.InputError, match="no checkpoint itself; name .*: .*/model"):
        bert_tf.Predictor(tmp_path)
    task = json.loads((folder / "task.json").read_text())
    task["task"]["labels"].pop()
    (folder / "task.json").write_text(json.dumps(task))
    with pytest.raises(bert_tf.InputError, match="3 labels, but .* has 2: no, perhaps; use"):
        bert_tf.Predictor(folder)
    (folder / "vocab.txt").write_text("\n".join([*VOCABULARY, "more"]))
    with pytest.raises(bert_tf.InputError, match="62 tokens, but the model has 61; give"):
        bert_tf.Predictor(folder)
    (folder / "task.json").unlink()
    with pytest.raises(bert_tf.InputError, match="there is no task.json in .*fine-tune it with "
                                                 "bert-finetune --init_checkpoint=.*from_learner"):
        bert_tf.Predictor(folder)


def test_a_task_of_hugging_face_comes_before_a_masked_lm_in_the_same_file(saved, tmp_path):
    """As in transformers, whose BertForSequenceClassification leaves the other head out."""
    folder, learner, predictor = saved("classification")
    checkpoints.convert(str(folder), str(tmp_path / "hf"), "huggingface")
    masked = bert_tf.Learner(learner.encoder, [bert_tf.MaskedLM(learner.encoder.config)])
    masked.save(tmp_path / "model.keras")
    checkpoints.convert(str(tmp_path / "model.keras"), str(tmp_path / "lm"), "huggingface")
    path = tmp_path / "hf" / "model.safetensors"
    save_file(load_file(tmp_path / "lm" / "model.safetensors") | load_file(path), path)
    assert len(bert_tf.FillMask(tmp_path / "hf")("a [MASK]")["masks"]) == 1
    examples = make_examples("classification", 4, seed=7)
    assert close(bert_tf.Predictor(tmp_path / "hf")(examples), predictor(examples))


def test_a_question_longer_than_a_model_of_hugging_face_is_cut(saved, tmp_path):
    folder, _, _ = saved("span")
    checkpoints.convert(str(folder), str(tmp_path / "hf"), "huggingface")
    predictor = bert_tf.Predictor(tmp_path / "hf")
    long, short = (predictor(("a " * count, "b cd e")) for count in (500, LENGTH - 4))
    assert close(long, short) and long["answer"] in "b cd e"


@pytest.mark.parametrize("kind", TASKS)
def test_hugging_faces_files_describe_their_task(saved, tmp_path, kind, capsys):
    folder, _, predictor = saved(kind)
    checkpoints.convert(str(folder), str(tmp_path / "hf"), "huggingface")
    opened = bert_tf.Predictor(tmp_path / "hf")
    assert opened.saved_task.task.labels == predictor.saved_task.task.labels
    if kind == "span":      # config.json says nothing of windows and of the longest answer
        predictor = bert_tf.Predictor.from_learner(
            make_learner(kind), tokenizer(), opened.saved_task)
    examples = make_examples(kind, 12, seed=5)
    assert close(opened(examples), predictor(examples))
    if kind == "classification":
        path = tmp_path / "hf" / "tokenizer_config.json"
        given = json.loads(path.read_text())
        for told, length in ((9, 9), (10**30, LENGTH), (None, LENGTH)):
            path.write_text(json.dumps({**given, "model_max_length": told}))
            assert bert_tf.Predictor(tmp_path / "hf").saved_task.max_seq_length == length
        path = tmp_path / "hf" / "config.json"
        given = json.loads(path.read_text())
        path.write_text(json.dumps({**given, "id2label": {"0": "a", "1": "b"}}))
        opened = bert_tf.Predictor(tmp_path / "hf")
        assert opened.saved_task.task.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
        assert "has 3 labels, but id2label in the config.json" in capsys.readouterr().err
        for problem, message in (("regression", "gives 3 numbers .* regression here gives one"),
                                 ("multilabel", "json: problem_type must be .*'multilabel'")):
            path.write_text(json.dumps({**given, "problem_type": problem}))
            with pytest.raises(InputError, match=message):
                bert_tf.Predictor(tmp_path / "hf")
        return
    (tmp_path / "hf" / "vocab.txt").unlink()
    bert_tf.Predictor(tmp_path / "hf")      # with the vocabulary of tokenizer.json
    (tmp_path / "hf" / "tokenizer.json").unlink()
    with pytest.raises(InputError, match="no vocabulary beside .*model.safetensors .*put its"):
        bert_tf.Predictor(tmp_path / "hf")


@pytest.mark.parametrize("kind, ending", [
    ("classification", "csv"), ("multi_label", "jsonl"), ("regression", "tsv")])
def test_run_classifier_predicts_the_same(saved, tmp_path, kind, ending):
    folder, _, predictor = saved(kind)
    texts = make_examples("tagging", 12, seed=4)[:-1]
    lines = ([json.dumps({"body": line}) for line in texts] if ending == "jsonl" else
             ["body", *texts])
    (tmp_path / f"test.{ending}").write_text("\n".join(lines) + "\n")
    finetune.main(
        TaskFlags(test_file=str(tmp_path / f"test.{ending}"), text_a_column="body"),
        ModelFlags(do_predict=True, init_checkpoint=str(folder), num_workers=1),
        FineTuneSettings(output_dir=str(tmp_path / "out")))
    written = (tmp_path / "out" / "test_predictions.jsonl").read_text().splitlines()
    assert close([{"index": index, **said} for index, said in enumerate(predictor(texts))],
                 list(map(json.loads, written)))


def test_a_pre_trained_model_in_the_place_of_a_fine_tuned_one_is_named(tmp_path):
    learner = write(tmp_path, "classification")
    config = learner.encoder.config
    save_model(tmp_path, bert_tf.Learner(learner.encoder, [
        bert_tf.objectives.MaskedLM(config), bert_tf.objectives.SentencePrediction(config)]))
    with pytest.raises(InputError, match="a pre-trained one with MaskedLM, SentencePrediction"):
        bert_tf.Predictor(tmp_path)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("head", ["AnswerSpan", "ConditionalSpan"])
def test_xlnet_of_hugging_face_reads_the_passage_first(tmp_path, head, version):
    """As zihangdai's run_squad.py, and transformers' pipeline for a tokenizer that pads left."""
    keras.utils.set_random_seed(4)
    (tmp_path / "spiece.model").write_bytes(sentencepieces.train(
        ["who wrote it", "jane wrote the novel", "the book is here"] * 9, 50, pad_id=5,
        control_symbols=["<cls>", "<sep>", "<mask>", "<eod>"]))
    made = open_tokenizer(tmp_path, False)
    config = XLNetConfig(
        vocab_size=made.vocabulary.size, d_model=8, n_layer=1, n_head=2, d_head=4, d_inner=12,
        initializer_range=0.6)
    form = {} if head == "AnswerSpan" else {"form": "xlnet", "num_starts": 3, "num_ends": 9}
    learner = bert_tf.Learner(build(config), [getattr(bert_tf, head)(config, **form)])
    learner.save(tmp_path / "model.keras")
    account = checkpoints.convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    assert ("the passage before the question" in str(account)) == (head == "AnswerSpan")
    if version == 5:        # of transformers, which writes tokenizer.json alone
        (tmp_path / "hf" / "spiece.model").unlink()
    predictor = bert_tf.Predictor(tmp_path / "hf")
    assert predictor.saved_task.max_seq_length == 512
    question, passage = "who wrote it", "jane wrote the novel the book is here"
    (logits,) = learner(made((passage, question))).values()
    found = predictor((question, passage))["n_best"]
    count = len(made.encode(passage))
    if head == "ConditionalSpan":
        # The three likeliest of all that it may choose.
        known = np.sort(np.log(softmax(logits["start"][0])[:count]))[-3:]
        assert len(found) > 3
        assert {"start_n_top": 3, "end_n_top": 9}.items() <= predictor.saved_task.options.items()
        assert all(np.abs(known - entry["start_logit"]).min() < 2e-4 for entry in found)
        config_file = tmp_path / "hf" / "config.json"
        values = json.loads(config_file.read_text())
        config_file.write_text(json.dumps({**values, "end_n_top": 0}))
        with pytest.raises(InputError, match="config.json: end_n_top must be a number from 1"):
            bert_tf.Predictor(tmp_path / "hf")
        config_file.write_text(json.dumps({
            name: value for name, value in values.items() if name != "end_n_top"}))
        assert bert_tf.Predictor(tmp_path / "hf").saved_task.options["end_n_top"] == 5
        return
    assert close(max(entry["start_logit"] for entry in found), float(np.max(logits[0, 0, :count])))
    assert close(max(entry["end_logit"] for entry in found), float(np.max(logits[0, 1, :count])))
