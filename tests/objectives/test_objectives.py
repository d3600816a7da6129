"""Objectives: heads, gathering, and losses as sums and counts."""

import keras
import numpy as np
import pytest
from keras import ops

from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.config import EncoderConfig

CONFIG = EncoderConfig.preset("tiny", vocab_size=40, hidden_size=24, num_attention_heads=2)
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype("float32")


def make_batch():
    return {"masked_lm_positions": np.array([[1, 4, 0], [3, 0, 0]]),
            "masked_lm_ids": np.array([[5, 39, 0], [7, 0, 0]]),
            "masked_lm_weights": np.array([[1, 1, 0], [1, 0, 0]], "float32"),
            "next_sentence_labels": np.array([[1], [0]])}


def test_gathering_before_the_head_equals_gathering_after_it():
    objective, table, sequence = MaskedLM(CONFIG), normal(40, 24), normal(2, 6, 24)
    objective.output_bias.assign(normal(40))
    batch = make_batch()
    everywhere = {"masked_lm_positions": np.tile(np.arange(6), (2, 1))}
    every = np.array(objective({"sequence_output": sequence}, everywhere, table))
    some = np.array(objective({"sequence_output": sequence}, batch, table))
    rows = np.arange(2)[:, None]
    assert some.shape == (2, 3, 40)
    assert np.allclose(some, every[rows, batch["masked_lm_positions"]], atol=1e-5)


def test_loss_and_accuracy_are_sums_over_used_slots():
    objective, logits = MaskedLM(CONFIG), normal(2, 3, 40)
    labels, weights = objective.targets(make_batch())
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -(log_probs[0, 0, 5] + log_probs[0, 1, 39] + log_probs[1, 0, 7])
    loss, count = objective.loss(logits, labels, weights)
    assert float(loss) == pytest.approx(expected, rel=1e-5) and float(count) == 3
    logits[0, 0, 5] = logits[0, 2, 0] = 99
    logits[0, 1, 39] = logits[1, 0, 7] = -99
    assert [float(x) for x in objective.accuracy(logits, labels, weights)] == [1, 3]


def test_large_logits_stay_finite():
    objective = MaskedLM(CONFIG)
    logits = np.array([[[1e4, -1e4, 0.0]]], "float32")
    loss, _ = objective.loss(logits, np.array([[1]]), np.ones((1, 1), "float32"))
    assert float(loss) == pytest.approx(2e4)


@pytest.mark.parametrize("num_labels", [2, 3])
def test_sentence_prediction(num_labels):
    objective, pooled = SentencePrediction(CONFIG, num_labels), normal(2, 24)
    objective.classifier.bias.assign(normal(num_labels))
    logits = np.array(objective({"pooled_output": pooled}, {}))
    kernel, bias = objective.get_weights()
    assert np.allclose(logits, pooled @ kernel + bias, atol=1e-6)
    labels, weights = objective.targets(make_batch())
    assert np.array_equal(labels, [1, 0]) and np.array_equal(weights, [1, 1])
    assert float(objective.loss(logits, labels, weights)[1]) == 2


@pytest.mark.parametrize("objective", [MaskedLM, SentencePrediction])
def test_low_precision_gives_float32_logits(objective):
    low = objective(CONFIG, dtype="mixed_bfloat16")
    outputs = {"sequence_output": ops.cast(normal(2, 6, 24), "bfloat16"),
               "pooled_output": ops.cast(normal(2, 24), "bfloat16")}
    logits = low(outputs, make_batch(), keras.Variable(normal(40, 24)))
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    assert low.dtype_policy.name == "mixed_bfloat16"


def test_configurations_round_trip():
    for objective in (MaskedLM(CONFIG, loss_weight=50.0), SentencePrediction(CONFIG, 3, name="x")):
        same = type(objective).from_config(objective.get_config())
        assert same.get_config() == objective.get_config()
        assert same.loss_weight == objective.loss_weight
