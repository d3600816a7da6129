"""Muon: which variables it takes for matrices, and its steps against numpy, Keras and PyTorch."""

import contextlib
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import networks, recipes
from bert_tf.config import CONFIGS
from bert_tf.training import resume
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.optimizers.muon import (
    FIVE_STEPS,
    THREE_STEPS,
    Muon,
    as_matrix,
    orthogonalised,
)
from tests.rounding import assert_same
from tests.training import tiny

RATE, DECAY, STEPS = 0.1, 0.3, 4
BERT = {f"attention/{name}/kernel" for name in ("self/query", "self/key", "self/value",
                                                "output/dense")} | {
    "intermediate/dense/kernel", "output/dense/kernel"}
OF_T5 = {f"{part}/kernel" for part in ("query", "key", "value", "output")}
ENCODER = {f"encoder/layer_N/attention/{name}" for name in OF_T5} | {
    "encoder/layer_N/feed_forward/wi/kernel", "encoder/layer_N/feed_forward/wo/kernel"}


def matrices(network):
    """The paths of the variables of a network that take orthogonal steps, without its name."""
    optimizer = Muon()
    return {v.path.split("/", 1)[1] for v in network.trainable_variables if optimizer.is_matrix(v)}


@pytest.mark.parametrize("recipe, layers, expected", [
    ("bert", (0, 1), {f"encoder/layer_N/{name}" for name in BERT}),
    ("electra", (0, 1), {f"encoder/layer_N/{name}" for name in BERT}),
    ("albert", (0,), {f"encoder/layer_N/{name}" for name in BERT}),
    ("t5", (0, 1), ENCODER | {name.replace("encoder", "decoder", 1) for name in ENCODER} | {
        f"decoder/layer_N/cross_attention/{name}" for name in OF_T5}),
    ("modernbert", (0, 1), {f"encoder/layer_N/{name}" for name in BERT
                            if "/self/" not in name} | {
        "encoder/layer_N/attention/self/qkv/kernel"}),
    ("xlnet", (0, 1), {f"encoder/layer_N/{name}" for name in BERT} | {
        "encoder/layer_N/attention/self/position/kernel"}),
    ("lm_lstm", (), set())])
def test_it_takes_the_kernels_in_the_layers(recipe, layers, expected):
    """Not embeddings, positions, poolers, biases and LayerNorm, nor the gates of an LSTM."""
    if recipe == "modernbert":
        config = CONFIGS[recipe].preset("tiny", vocab_size=50, hidden_size=32,
                                        intermediate_size=64, num_attention_heads=2)
    else:
        config = tiny.config_of(recipes.find(recipe))
    assert matrices(networks.build(config)) == {
        name.replace("layer_N", f"layer_{number}") for number in layers for name in expected}


def test_it_takes_one_kernel_of_the_heads():
    learner = tiny.trainer().learner
    heads = {v.path for v in learner.trainable_variables if "/layer_" not in v.path}
    assert {"masked_lm/transform/dense/kernel", "bert/pooler/dense/kernel",
            "next_sentence/dense/kernel"} <= heads
    assert [v.path for v in learner.trainable_variables if Muon().is_matrix(v)
            and v.path in heads] == ["masked_lm/transform/dense/kernel"]


@pytest.mark.parametrize("path, shape, expected", [
    ("layer_0/attention/self/query/kernel", (6, 8), (6, 8, 1)),
    ("layer_0/attention/self/qkv/kernel", (6, 18), (6, 18, 3)),
    ("layer_0/attention/self/qkv/kernel", (6, 10), (6, 10, 1)),     # a key for three queries
    ("transformer_layer_0/self_attention_layer/query/kernel", (6, 2, 3), (6, 6, 1)),
    ("transformer_layer_0/self_attention_layer/attention_output/kernel", (2, 3, 6), (6, 6, 1)),
    ("layer_0/convolution/kernel", (3, 6, 8), (18, 8, 1))])
def test_kernels_of_any_shape_are_matrices(path, shape, expected):
    assert as_matrix(path, shape) == expected


def test_the_kernels_of_keras_are_taken_and_their_biases_are_not():
    """Keras's Muon leaves the kernels to AdamW, and takes the biases, of shape [N, D]."""
    with keras.name_scope("transformer_layer_0"):
        layer = keras.layers.MultiHeadAttention(2, 3, name="attention")
        layer.build((None, 4, 6), (None, 4, 6))
    taken = {v.path for v in layer.trainable_variables if Muon().is_matrix(v)}
    assert len(taken) == 4 and all(path.endswith("/kernel") for path in taken)


@pytest.mark.parametrize("steps, share, low, high, most", [
    (THREE_STEPS, 0.01, 0.72, 1.27, 79), (FIVE_STEPS, 0.002, 0.68, 1.21, 485)])
@pytest.mark.parametrize("shape", [(24, 24), (16, 40), (40, 16), (1, 5)])
def test_singular_vectors_stay_and_values_become_nearly_one(shape, steps, share, low, high, most):
    """U V^T of the singular value decomposition, within the bounds of the iteration."""
    x = np.random.default_rng(0).normal(size=shape)
    left, values, right = np.linalg.svd(x, full_matrices=False)
    found = left.T @ np.asarray(orthogonalised(keras.ops.convert_to_tensor(x), steps)) @ right.T
    large = values > share * np.linalg.norm(values)
    assert np.all((np.diag(found)[large] > low) & (np.diag(found)[large] < high))
    assert np.all(np.diag(found) <= most * values / np.linalg.norm(values))
    assert np.abs(found - np.diag(np.diag(found))).max() < 1e-8
    assert not np.any(orthogonalised(keras.ops.zeros(shape)))


def kernel(shape, path="layer_0/dense/kernel", seed=0):
    rng, (*scopes, name) = np.random.default_rng(seed), path.split("/")
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        variable = keras.Variable(rng.normal(size=shape).astype("float32"), name=name)
    return variable, [rng.normal(size=shape).astype("float32") for _ in range(STEPS)]


def train(optimizer, variable, grads):
    optimizer.build([variable])
    for gradient in grads:
        optimizer.apply([tf.constant(gradient)], [variable])
    return variable.numpy()


def ours(shape, scale=0.2, path="layer_0/dense/kernel", **options):
    variable, grads = kernel(shape, path)
    return train(make_optimizer("muon", RATE, weight_decay=DECAY, clip_norm=0.0, scale=scale,
                                steps=FIVE_STEPS, **options), variable, grads)


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
@pytest.mark.parametrize("of_keras, scale", [
    ({}, 0.2), ({"rms_rate": None}, 1 / 3), ({"momentum": 0.8}, 0.2)])
def test_steps_are_those_of_keras(shape, of_keras, scale):
    expected = train(keras.optimizers.Muon(RATE, weight_decay=DECAY, **of_keras), *kernel(shape))
    found = ours(shape, scale, momentum=of_keras.get("momentum", 0.95))
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.peer
@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
@pytest.mark.parametrize("adjusts", ["original", "match_rms_adamw"])
def test_steps_are_those_of_pytorch(shape, adjusts):
    """Whose kernels are transposed, and whose iteration is in bfloat16."""
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    variable, grads = kernel(shape)
    theirs = torch.nn.Parameter(torch.tensor(variable.numpy().T))
    optimizer = torch.optim.Muon([theirs], RATE, weight_decay=DECAY, adjust_lr_fn=adjusts)
    for gradient in grads:
        theirs.grad = torch.tensor(gradient.T)
        optimizer.step()
    scale = math.sqrt(max(1, shape[1] / shape[0]) / 9) if adjusts == "original" else 0.2
    assert np.abs(ours(shape, scale) - theirs.detach().numpy().T).max() < 1e-2


def test_queries_keys_and_values_of_one_kernel_are_three_matrices():
    path = "layer_0/attention/self/qkv/kernel"
    found, (variable, grads) = ours((6, 18), path=path), kernel((6, 18), path)
    for columns in np.split(np.arange(18), 3):
        alone = keras.Variable(variable.numpy()[:, columns], name="kernel")
        expected = train(Muon(RATE, weight_decay=DECAY, clip_norm=0.0, matrices=["kernel"],
                              steps=FIVE_STEPS), alone,
                         [gradient[:, columns] for gradient in grads])
        assert np.allclose(found[:, columns], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [
    {"average": "ema"}, {"use_ema": True, "clip_norm": 0.5, "skip_nonfinite": True}])
def test_parts_of_a_step_are_one_step(options):
    variable, grads = kernel((6, 9))
    halves = [part for gradient in grads for part in (gradient * 1.5, gradient * 0.5)]
    found = train(make_optimizer("muon", RATE, gradient_accumulation_steps=2, **options), variable,
                  halves)
    expected = train(make_optimizer("muon", RATE, **options), *kernel((6, 9)))
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_gradient_that_is_not_finite_and_rates_of_variables():
    variable, grads = kernel((6, 9))
    before = variable.numpy()
    train(make_optimizer("muon", RATE, skip_nonfinite=True), variable, [grads[0] * np.inf])
    train(make_optimizer("muon", RATE, rate_factors=[("kernel", 0.0)]), variable, grads)
    assert np.array_equal(variable.numpy(), before)


@pytest.mark.parametrize("path, factor", [
    ("bert/embeddings/word_embeddings", 2), ("bert/embeddings/position_embeddings", 1),
    ("masked_lm/transform/dense/bias", 1)])
def test_the_table_of_words_learns_at_a_higher_rate(path, factor):
    variable, grads = kernel((6, 9), path)
    found = train(make_optimizer("muon", RATE, rate_factors=[("b", 0.5)]), variable, grads)
    expected = train(make_optimizer("adamw", 0.5 * factor * RATE), *kernel((6, 9), path))
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-7)


def batches(trainer, records):
    return iter(trainer.distribute(lambda *_: records.training_batches(3, 0, 8, 1)))


def test_a_compiled_run_learns(records):
    trainer = tiny.trainer(optimizer="muon", jit_compile=True)
    stream = batches(trainer, records)
    first, last = (trainer.train(stream, 2) for _ in range(2))
    assert last["loss"] < first["loss"]


def test_a_run_resumes_to_the_last_bit(eagerly, records, tmp_path):
    options = {"accumulation": 2, "dtype": "mixed_bfloat16"}
    whole = tiny.trainer(optimizer="muon", **options)
    stream = batches(whole, records)
    whole.train(stream, 1)
    path = tiny.save_checkpoint(tmp_path, whole, {}, 5)
    broken = tiny.trainer(optimizer="muon", **options)
    resume.restore(path, broken)
    again = batches(broken, records)
    next(again)
    whole.train(stream, 1)
    broken.train(again, 1)
    assert_same(tiny.weights(broken), tiny.weights(whole))
