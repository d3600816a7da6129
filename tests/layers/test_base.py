"""Activations, and what layers compute in prediction."""

import math

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from bert_tf import config
from bert_tf.bert.layers import LayerNorm
from bert_tf.layers.base import Dense
from bert_tf.layers.functions import ACTIVATIONS, argmax, cross_entropy, training_forms

ON_TENSORFLOW = pytest.mark.skipif(keras.config.backend() != "tensorflow",
                                   reason="a form for TensorFlow")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(5, 1), (40, 7), (3, 4, 2000)])
def test_argmax_is_numpys_also_of_equal_elements(shape, dtype):
    values = np.random.default_rng(1).integers(-2, 3, shape).astype("float32")
    values[..., :1][values[..., :1] == 0] = -0.0        # negative zeros equal zeros
    found = argmax(keras.ops.cast(values, dtype))
    assert keras.backend.standardize_dtype(found.dtype) == "int32"
    np.testing.assert_array_equal(found, values.argmax(-1))


@ON_TENSORFLOW
@pytest.mark.parametrize("spread", [1, 30, 300])     # up to labels that are nearly (im)possible
@pytest.mark.parametrize("shape", [(40, 2), (5, 6, 700)])
def test_the_cross_entropy_and_its_gradient_are_those_of_float64(shape, spread):
    import tensorflow as tf

    rng = np.random.default_rng(spread)
    logits = rng.normal(0, spread, shape).astype("float32")
    labels, factors = rng.integers(0, shape[-1], shape[:-1]), rng.normal(size=shape[:-1])
    likely = log_softmax(logits.astype(float), axis=-1)
    wanted = -np.take_along_axis(likely, labels[..., None], axis=-1)[..., 0]
    variable = keras.Variable(logits)
    with tf.GradientTape() as tape:
        found = cross_entropy(labels, variable.value)
    slope = tape.gradient(found, variable.value, tf.constant(factors, "float32"))
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-7)
    np.testing.assert_allclose(
        slope, (np.exp(likely) - np.eye(shape[-1])[labels]) * factors[..., None], atol=2e-6)


@ON_TENSORFLOW
@pytest.mark.parametrize("dtype", ["uint8", "bool", "float32"])
@pytest.mark.parametrize("jit", [False, True])
def test_the_cross_entropy_of_labels_of_any_type_and_sizes_that_a_graph_does_not_know(dtype, jit):
    import tensorflow as tf

    @tf.function(jit_compile=jit, autograph=False, input_signature=[
        tf.TensorSpec([None], dtype), tf.TensorSpec([None, None])])
    def run(labels, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = cross_entropy(labels, logits)
        return losses, tape.gradient(losses, logits)

    rng = np.random.default_rng(3)
    logits, labels = rng.normal(size=(6, 5)).astype("float32"), np.array([0, 1] * 3).astype(dtype)
    likely = log_softmax(logits.astype(float), axis=-1)
    losses, slope = run(labels, logits)
    np.testing.assert_allclose(losses, -likely[range(6), labels.astype(int)], rtol=1e-5)
    np.testing.assert_allclose(slope, np.exp(likely) - np.eye(5)[labels.astype(int)], atol=1e-6)


@ON_TENSORFLOW
@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_that_is_no_class_has_no_cross_entropy(label):
    import tensorflow as tf

    logits = tf.Variable(np.zeros((2, 3), "float32"))
    with pytest.raises(tf.errors.InvalidArgumentError):
        cross_entropy(np.array([label, 1]), logits)

    @tf.function(jit_compile=True, autograph=False)
    def run():
        with tf.GradientTape() as tape:
            losses = cross_entropy(np.array([label, 1]), logits)
        return losses, tape.gradient(losses, logits)

    for values in run():
        np.testing.assert_array_equal(np.isnan(values).reshape(2, -1).all(1), [True, False])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_prediction_may_compute_the_same_activation_in_another_form(name):
    rng = np.random.default_rng(2)
    layer = Dense(16, ACTIVATIONS[name], bias_initializer="random_normal")
    x = rng.normal(0, 3, (4, 5, 16)).astype("float32")
    trained, predicted = layer(x, training=True), layer(x, training=False)
    product = np.reshape(x, (-1, 16)) @ layer.kernel.numpy() + layer.bias.numpy()
    wanted = np.reshape(ACTIVATIONS[name](product), (4, 5, 16))
    for found in (trained, predicted):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)
    # The backward pass computes layers again outside of any call; a training step calls frozen
    # networks and teachers without `training`.
    np.testing.assert_array_equal(layer(x), trained)
    with training_forms():
        np.testing.assert_array_equal(layer(x, training=False), trained)
    np.testing.assert_array_equal(layer(x, training=False), predicted)
    assert np.array_equal(trained, predicted) or name == "gelu"


@ON_TENSORFLOW
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_the_gradient_of_a_bias_is_the_sum_over_all_tokens(dtype):
    """TensorFlow's own sum stops at 256 in bfloat16, and at 2,048 in float16."""
    import tensorflow as tf

    layer = Dense(3, dtype=dtype)
    x = np.random.default_rng(4).normal(size=(10, 300, 5)).astype("float32")
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(tf.cast(layer(x, training=True), "float32"))
    np.testing.assert_allclose(tape.gradient(total, layer.bias.value), [3000] * 3, rtol=4e-3)


def test_every_name_of_the_configuration_is_built():
    assert tuple(ACTIVATIONS) == config.ACTIVATIONS


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.0, 0.7, 2.5])
def test_gelu_is_the_tanh_form_and_gelu_erf_the_exact_one(x):
    tanh_form = 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    erf_form = 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
    value = np.array([x], "float32")
    assert np.allclose(ACTIVATIONS["gelu"](value), tanh_form, atol=1e-6)
    assert np.allclose(ACTIVATIONS["gelu_erf"](value), erf_form, atol=1e-6)


@ON_TENSORFLOW
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["gelu", "gelu_erf"])
def test_the_gradient_of_a_wide_layer_has_the_bits_of_narrow_ones(name, dtype):
    import tensorflow as tf

    @tf.function(autograph=False)
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ACTIVATIONS[name](x)
        return tf.cast(tape.gradient(y, x), "float32")

    x = tf.cast(np.random.default_rng(3).normal(0, 2, (5, 2048)), dtype)
    narrow = [slope(part) for part in tf.split(x, 2, axis=1)]
    assert np.array_equal(slope(x), np.concatenate(narrow, 1))


@ON_TENSORFLOW
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_the_gradient_of_a_norm_is_that_of_its_operations(policy):
    import tensorflow as tf

    sizes = config.BertConfig(vocab_size=9, hidden_size=24, num_attention_heads=2)
    norm = LayerNorm(sizes, dtype=policy)
    norm.build()
    rng, results = np.random.default_rng(3), []
    norm.gamma.assign(rng.normal(size=24))
    x, factors = (tf.cast(rng.normal(1, 2, (3, 5, 24)), norm.compute_dtype) for _ in range(2))
    for training in (True, False):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = norm(x, training=training)
            loss = tf.reduce_sum(tf.cast(y * factors, "float32"))
        results.append([y, *tape.gradient(loss, [x, norm.gamma.value, norm.beta.value])])
    np.testing.assert_array_equal(*(result[0] for result in results))
    for own, automatic in zip(*(result[1:] for result in results)):
        own, automatic = (tf.cast(value, "float32") for value in (own, automatic))
        np.testing.assert_allclose(own, automatic, rtol=1e-5 if policy == "float32" else 1e-2,
                                   atol=1e-5)
