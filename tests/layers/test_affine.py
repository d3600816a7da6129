"""MobileBERT with 8 bits, beside TensorFlow's own rounding and moving averages, which the original
(google-research, mobilebert/modeling.py) is made of."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.training import moving_averages

from bert_tf.config import MobileBertConfig
from bert_tf.config.quantisation import QUANTISATIONS, Quantisation
from bert_tf.errors import InputError
from bert_tf.models.mobilebert.affine import AffineDense, fake_affine
from bert_tf.models.mobilebert.layers import Attended, MobileAttention, RoundedNoNorm

HOW = Quantisation(**{**QUANTISATIONS["mobilebert"], "ema_decay": 0.9})
SIZES = {"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 12, "normalization_type": "no_norm", "hidden_act": "relu6",
         "attention_probs_dropout_prob": 0.0}
ROUND = tf.quantization.fake_quant_with_min_max_vars
pytestmark = pytest.mark.usefixtures("eagerly")


def random(*shape, seed=0):
    return tf.random.stateless_normal(shape, [seed, 1])


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("low, high, is_narrow", [
    (-1.3, 2.7, False), (0.0, 3.1, False), (-2.2, 0.0, False), (-1.7, 1.7, True),
    (0.0, 0.0, False)])
def test_rounded_tensors_and_gradients_are_tensorflows(bits, low, high, is_narrow):
    x, upstream = 2 * random(40, 25), random(40, 25, seed=1)
    found = []
    for function in (lambda x: fake_affine(x, tf.constant(low), tf.constant(high), bits, is_narrow),
                     lambda x: ROUND(x, low, high, bits, is_narrow)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        found.append((y, tape.gradient(y, x, upstream)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6, atol=1e-6)
    if high > low:
        np.testing.assert_array_equal(found[0][1], found[1][1])
        assert 0 < np.mean(found[0][1] == 0) < 0.8


class Reference:
    """The original's `quantize` of an activation."""

    def __init__(self):
        self.tensors = {}

    def __call__(self, name, x, training=True):
        if name not in self.tensors:
            self.tensors[name] = [0.0, 0.0, 0]
        state = self.tensors[name]
        if training:
            state[2] += 1
            for i, value in enumerate((min(float(tf.reduce_min(x)), 0),
                                       max(float(tf.reduce_max(x)), 0))):
                state[i] -= (state[i] - value) * (1 - HOW.ema_decay)
        share = 1 - HOW.ema_decay ** state[2]
        return ROUND(x, state[0] / share, state[1] / share)


def test_averages_are_tensorflows():
    """They begin with the first value, wherever the variable does."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("low", initializer=-6.0)
        value = tf.compat.v1.placeholder(tf.float32, [])
        moved = moving_averages.assign_moving_average(variable, value, HOW.ema_decay)
        session.run(tf.compat.v1.global_variables_initializer())
        expected = [session.run(moved, {value: each}) for each in (-1.5, -3.0, -2.0)]
    layer = AffineDense(3, how=HOW, bits=8)
    layer.build((None, 2))
    assert float(layer.ranges._average("input", "low")) == -6
    for value, wanted in zip((-1.5, -3.0, -2.0), expected):
        layer(tf.constant([[value, 1.0]]), training=True)
        assert float(layer.ranges._average("input", "low")) == pytest.approx(wanted, rel=1e-5)


def test_dense_layers_and_norms_round_where_the_original_does():
    keras.utils.set_random_seed(3)
    config = MobileBertConfig(**SIZES, quantisation=HOW)
    layer, norm, reference = AffineDense(8, how=HOW, bits=8), RoundedNoNorm(config), Reference()
    layer.build((None, 5))
    norm.build()
    layer.bias.assign(random(8, seed=7))
    norm.gamma.assign(1 + 0.3 * random(8, seed=8))
    norm.beta.assign(0.3 * random(8, seed=9))
    greatest = tf.reduce_max(tf.abs(layer.kernel.value))
    kernel = ROUND(layer.kernel.value, -greatest, greatest, narrow_range=True)
    for step, training in enumerate((True, True, True, False)):
        x = (1 + step) * random(4, 6, 5, seed=step)
        expected = reference("x", x, training) @ kernel + layer.bias.value
        found = layer(x, training=training)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        inner, beta, gamma = (reference(name, value, training) for name, value in (
            ("input", found), ("beta", norm.beta.value), ("gamma", norm.gamma.value)))
        expected = reference("product", inner * gamma, training) + beta
        # A number halfway between two others may go either way.
        differs = np.abs(np.array(norm(found, training=training)) - expected) > 1e-5
        assert differs.mean() < 0.02


def test_attention_rounds_where_the_original_does():
    keras.utils.set_random_seed(3)
    config = MobileBertConfig(**SIZES, initializer_range=0.5, quantisation=HOW)
    attention, reference = MobileAttention(config), Reference()
    attention.build()
    x, mask = 3 * random(2, 5, 8), np.ones((2, 1, 1, 5), np.float32)
    mask[1, ..., 3:] = 0
    for _ in range(2):
        found, maps = attention(x, x, Attended(tf.constant(mask), None), training=True)
        rows = []
        for name in ("query", "key", "value"):
            dense = getattr(attention, name)
            greatest = tf.reduce_max(tf.abs(dense.kernel.value))
            rows.append(reference(name, x) @ ROUND(dense.kernel.value, -greatest, greatest,
                                                   narrow_range=True))
        query, key, value = (tf.transpose(tf.reshape(y, (2, 5, 2, 4)), (0, 2, 1, 3)) for y in rows)
        scores = reference("scores", query @ tf.transpose(key, (0, 1, 3, 2))) / 2
        scores = reference("masked", scores * mask) - 6 * (1 - mask)
        scores = tf.clip_by_value(reference("summed", scores), -6, 60)
        np.testing.assert_allclose(maps["attention_scores"], scores, rtol=1e-5, atol=1e-5)
        context = reference("context", tf.nn.softmax(scores) @ value)
        np.testing.assert_allclose(
            found, tf.reshape(tf.transpose(context, (0, 2, 1, 3)), (2, 5, 8)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes, how, message", [
    ({"hidden_act": "relu"}, {}, "hidden_act relu6"),
    ({"normalization_type": "layer_norm"}, {}, "normalization_type no_norm"),
    ({}, {"embedding_bits": 8}, "embedding_bits must be 32"),
    ({}, {"activations": "dynamic"}, "activations must be ema")])
def test_other_networks_and_settings_are_refused(sizes, how, message):
    with pytest.raises(InputError, match=message):
        MobileBertConfig(**{**SIZES, **sizes}, quantisation={**dataclasses.asdict(HOW), **how})
