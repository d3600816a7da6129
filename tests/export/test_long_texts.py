"""Long texts in a graph: the records and the answers of Python's `windows`."""

import random

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.export.text_model import ChoiceModel, TextModel
from bert_tf.tasks.kinds import windows
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tokenization.packing import HEAD_TAIL, MAX, MEAN
from tests.export.conftest import named

LENGTH = 23


@pytest.fixture(name="texts", scope="module")
def fixture_texts():
    """Texts of 0 to 60 tokens, each letter a token."""
    rng = random.Random(5)
    return [" ".join(rng.choices("abcdefghij", k=rng.choice([0, 1, 9, 10, 11, 20, 21, 60])))
            for _ in range(240)]


def check(outputs, examples, model, kind, tokenizer, way):
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
    ("classification", HEAD_TAIL), ("classification", MAX), ("multi_label", MAX),
    ("multi_label", MEAN), ("regression", MEAN)])
def test_one_text_and_two(make_model, vocabulary, tokenizer, texts, kind, way):
    model = make_model(kind, vocabulary.size)
    module = TextModel(model, vocabulary, max_seq_length=LENGTH, long_text=way)
    # Plain: what is in this graph is in that of pairs.
    outputs = module.functions["serving_default"].python_function(tf.constant(texts))
    check(outputs, [[(text,)] for text in texts], model, kind, tokenizer, way)
    first, second = texts[:120], texts[120:]
    outputs = module.functions["pair"](tf.constant(first), tf.constant(second))
    check(outputs, [[pair] for pair in zip(first, second)], model, kind, tokenizer, way)


@pytest.mark.parametrize("way", [HEAD_TAIL, MAX])
def test_choices(make_model, vocabulary, tokenizer, texts, way):
    model = make_model("multiple_choice", vocabulary.size)
    module = ChoiceModel(model, vocabulary, max_seq_length=LENGTH, long_text=way)
    contexts, choices = texts[:60], np.reshape(texts[60:], (60, 3))
    outputs = module.functions["serving_default"](tf.constant(contexts), tf.constant(choices))
    check(outputs, [[(context, choice) for choice in row]
                    for context, row in zip(contexts, choices.tolist())],
          model, "multiple_choice", tokenizer, way)
    assert outputs["choice"].numpy().tolist() == outputs["logits"].numpy().argmax(-1).tolist()


def test_labels_and_no_text(make_model, vocabulary):
    module = TextModel(make_model("classification", vocabulary.size), vocabulary,
                       max_seq_length=LENGTH, labels=["no", "maybe", "yes"], long_text="max")
    outputs = module.functions["serving_default"](tf.constant([], tf.string))
    assert {name: len(values) for name, values in outputs.items()} == dict.fromkeys(
        ("logits", "probabilities", "windows", "label", "input_ids"), 0)
    outputs = module.functions["serving_default"](tf.constant(["a " * 50, "b"]))
    best = np.argmax(outputs["probabilities"], axis=1)
    assert outputs["label"].numpy().tolist() == [[b"no", b"maybe", b"yes"][i] for i in best]
    assert np.allclose(np.sum(outputs["probabilities"], axis=1), 1)
