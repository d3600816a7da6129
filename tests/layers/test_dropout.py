"""Dropout: a pure function of its seed, and different for different seeds."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from scipy import stats

from bert_tf.bert.layers import rematerialized
from bert_tf.layers.functions import (
    at_least,
    attend_with_dropout,
    dropout,
    lean_softmax_and_dropout,
    softmax_and_dropout,
    split_seed,
    uniform,
)

ONES = np.ones((200, 500), "float32")


def mask(seed, rate=0.5):
    return np.array(dropout(ONES, rate, ops.convert_to_tensor(seed, "int32"))) > 0


def test_what_is_kept_is_uniform_and_unrelated():
    """At any rate, in neighbours and in shapes with an odd number of elements."""
    seed = ops.convert_to_tensor([3, 5], "int32")
    for rate in (0.001, 0.1, 0.25, 0.9):
        kept = np.array(at_least(rate, (333, 501), seed)).ravel()
        assert np.mean(~kept) == pytest.approx(rate, abs=4 * np.sqrt(rate / kept.size))
        related = [np.corrcoef(kept[:-lag], kept[lag:])[0, 1] for lag in (1, 2, 3, 4, 8, 501)]
        assert np.max(np.abs(related)) * np.sqrt(kept.size) < 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_rate_and_scale_over_many_draws(rate, dtype):
    ones = ops.convert_to_tensor(ONES, dtype)
    x = np.stack([ops.cast(dropout(ones, rate, ops.convert_to_tensor([7, step], "int32")),
                           "float32") for step in range(10)])
    assert np.mean(x == 0) == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / x.size))
    assert np.allclose(x[x > 0], 1 / (1 - rate), rtol=1e-6 if dtype == "float32" else 4e-3)


def test_same_seed_same_mask():
    assert np.array_equal(mask([3, 5]), mask([3, 5]))


def test_no_seed_or_no_rate_is_the_identity():
    assert dropout(ONES, 0.5, None) is ONES
    assert dropout(ONES, 0.0, ops.convert_to_tensor([1, 2], "int32")) is ONES
    assert split_seed(None, 2) == [None, None]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_split_seeds_differ_between_layers_and_steps(dtype):
    seeds = {tuple(np.array(seed).tolist())
             for run, step in itertools.product(range(10), range(10))
             for seed in split_seed(ops.convert_to_tensor([run, step], dtype), 40)}
    assert len(seeds) == 10 * 10 * 40


def test_masks_of_neighbouring_layers_and_steps_are_unrelated():
    masks = [mask(seed) for step in range(2)
             for seed in split_seed(ops.convert_to_tensor([1, step], "int32"), 3)]
    for one, other in itertools.combinations(masks, 2):
        assert np.mean(one == other) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(one.size))


def test_draws_are_uniform_and_unrelated():
    # Seeds that differ in a bit or two, as those of neighbouring steps do.
    seeds = list(itertools.product(range(6), range(6)))
    draws = [np.array(uniform((40, 1000), ops.convert_to_tensor(seed, "int32"))).ravel()
             for seed in seeds]
    assert min(map(np.min, draws)) >= 0 and max(map(np.max, draws)) < 1
    counts = [np.bincount((256 * draw).astype(int), minlength=256) for draw in draws]
    assert stats.kstest(stats.chisquare(counts, axis=1).pvalue, "uniform").pvalue > 1e-4
    related = [np.corrcoef(draw[:-lag], draw[lag:])[0, 1] for draw in draws
               for lag in (1, 2, 16, 512, 1000, 8192)]
    related += list(np.corrcoef(draws)[np.triu_indices(len(seeds), 1)])
    # The bound is the normal distribution's at one failure in 10,000 for all of them.
    assert np.max(np.abs(related)) * np.sqrt(30_000) < stats.norm.isf(0.5e-4 / len(related))


def gradient(function, x):
    """The gradient of sum(function(x) * weights), for weights that differ."""
    weights = np.random.default_rng(1).standard_normal(x.shape).astype("float32")

    def total(x):
        return ops.sum(ops.cast(function(x), "float32") * weights)

    if keras.config.backend() == "jax":
        import jax
        return np.array(jax.grad(total)(x))
    import tensorflow as tf
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = total(x)
    return tape.gradient(loss, x).numpy()


@pytest.mark.parametrize("dtype, bound", [("float32", 1e-6), ("bfloat16", 2e-2)])
def test_the_lean_gradient_is_the_gradient_of_softmax_and_dropout(dtype, bound):
    scores = 3 * np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("float32")
    scores[..., 5:] -= 1e4                                      # padding: probabilities of 0
    seed = ops.convert_to_tensor([3, 5], "int32")

    def plain(x):
        return dropout(ops.cast(ops.softmax(x), dtype), 0.3, seed)

    def lean(x):
        return lean_softmax_and_dropout(x, 0.3, seed, dtype)

    assert np.array_equal(ops.cast(lean(scores), "float32"), ops.cast(plain(scores), "float32"))
    expected = gradient(plain, scores)
    assert np.abs(expected).max() > 0.1 and not expected[..., 5:].any()
    np.testing.assert_allclose(gradient(lean, scores), expected, atol=bound, rtol=bound)


@pytest.mark.skipif(keras.config.backend() != "tensorflow", reason="a form for TensorFlow")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_the_backward_pass_computes_again_has_the_same_bits(dtype):
    import tensorflow as tf
    rng = np.random.default_rng(0)
    scores, weights = (tf.constant(rng.standard_normal((2, 3, 8, 8)), "float32") for _ in range(2))
    value = tf.cast(rng.standard_normal((2, 3, 8, 4)), dtype)
    seed = tf.constant([3, 5])
    stays = at_least(0.3, scores.shape, seed)
    plain = tf.cast(stays, dtype) * (1 / 0.7)

    @tf.function(autograph=False)
    def results(look):
        with tf.GradientTape() as tape:
            tape.watch([scores, value])
            probs, context = look()
            loss = tf.reduce_sum(tf.cast(context, "float32") * weights[..., :4])
        return [probs, context, *tape.gradient(loss, [scores, value])]

    def by_steps():
        probs = tf.cast(tf.nn.softmax(scores), dtype)
        return probs, tf.matmul(probs * plain, value)

    for ours, automatic in zip(results(lambda: attend_with_dropout(scores, 0.3, seed, value)),
                               results(by_steps), strict=True):
        assert np.array_equal(tf.cast(ours, "float32"), tf.cast(automatic, "float32"))
    x = tf.cast(scores, dtype)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        pair = dropout(x, 0.3, seed), x * plain
    slopes = [tape.gradient(one, x) for one in pair]
    assert np.array_equal(*(tf.cast(slope, "float32") for slope in slopes))


def test_a_layer_that_is_computed_again_draws_the_same_masks():
    scores = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("float32")
    seed = ops.convert_to_tensor([2**31 - 2, 2**30 + 1], "uint32" if keras.config.backend() == "jax"
                                 else "int32")

    def layer(x, bias, seed):
        del bias
        first, second = split_seed(seed, 2)
        return dropout(softmax_and_dropout(x, 0.3, first, "float32")[1], 0.3, second), {}

    def outputs(x):
        return layer(x, None, seed)[0]

    def outputs_again(x):
        return rematerialized(layer, x, None, seed)[0]

    assert np.array_equal(outputs(scores), outputs_again(scores))
    np.testing.assert_allclose(gradient(outputs_again, scores), gradient(outputs, scores),
                               atol=1e-7)
