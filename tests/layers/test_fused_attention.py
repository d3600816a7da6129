"""Fused attention: the kernels, run without a GPU, equal the operations of self-attention."""

import keras
import numpy as np
import pytest

from bert_tf.bert.layers import SelfAttention
from bert_tf.config import EncoderConfig
from bert_tf.layers.functions import dropout

if keras.config.backend() != "jax":
    pytest.skip("tests/test_backends.py runs these tests on JAX", allow_module_level=True)

import jax
from jax import numpy as jnp

from bert_tf.layers import fused_attention


def plain(query, key, value, bias, rate, seed):
    """Attention by its definition, in float32."""
    query, key, value = (x.astype("float32").transpose(0, 2, 1, 3) for x in (query, key, value))
    scores = query @ key.swapaxes(2, 3)
    probs = jax.nn.softmax(scores if bias is None else scores + bias)
    return (dropout(probs, rate, seed) @ value).transpose(0, 2, 1, 3)


def drawn(shape, bias_shape, dtype="float32"):
    """Queries, keys, values and a bias that hides a third of the places."""
    rng = np.random.default_rng(sum(shape))
    arrays = [jnp.asarray(rng.standard_normal(shape) * scale, dtype)
              for scale in (shape[3]**-0.5, 1, 1)]
    return *arrays, None if bias_shape is None else jnp.asarray(
        np.where(rng.random(bias_shape) < 1 / 3, -10000.0, rng.standard_normal(bias_shape)))


def outputs_and_gradients(function, query, key, value, bias, *args):
    weights = np.random.default_rng(1).standard_normal(query.shape)

    def total(*inputs):
        out = function(*inputs, bias, *args).astype("float32")
        return jnp.sum(out * weights), out

    (_, out), gradients = jax.value_and_grad(total, (0, 1, 2), has_aux=True)(query, key, value)
    return [np.array(x, "float32") for x in (out, *gradients)]


# One block of keys; several blocks; a length that is no power of two; and each shape of a bias.
SHAPES = [((2, 128, 2, 16), (2, 1, 1, 128)), ((2, 32, 3, 64), (1, 3, 32, 32)),
          ((2, 192, 1, 32), (2, 1, 192, 192)), ((1, 256, 2, 16), (1, 1, 1, 256)),
          ((1, 48, 2, 16), None)]


@pytest.mark.parametrize("shapes, dtype, rate, bound", [
    *((shapes, "float32", rate, 1e-6) for shapes in SHAPES for rate in (0.0, 0.1, 0.5)),
    # They round as their numbers do.
    *((SHAPES[2], dtype, 0.1, float(jnp.finfo(dtype).eps)) for dtype in ("bfloat16", "float16"))])
def test_output_and_gradients(shapes, dtype, rate, bound):
    inputs = drawn(*shapes, dtype)
    seed = jnp.array([3, 5], "uint32")
    found = outputs_and_gradients(fused_attention.attention, *inputs, rate, seed, True)
    for one, other in zip(found, outputs_and_gradients(plain, *inputs, rate, seed), strict=True):
        assert np.linalg.norm(one - other) < bound * np.linalg.norm(other)


def test_no_seed_is_no_dropout():
    inputs = drawn(*SHAPES[0])
    found = fused_attention.attention(*inputs, 0.5, None, True)
    np.testing.assert_allclose(found, plain(*inputs, 0.0, None), atol=1e-5)


def test_the_kernels_can_be_compiled_for_a_gpu():
    def gradients(query, bias):
        return jax.grad(lambda x: jnp.sum(fused_attention.attention(
            x, x, x, bias, 0.1, jnp.array([1, 2], "uint32")).astype("float32")))(query)

    gpu = jax.sharding.AbstractMesh((1,), ("x",), abstract_device=jax.sharding.AbstractDevice(
        "NVIDIA H100", 132, "gpu"))
    for length, kernels in ((128, 2), (512, 3)):
        query = jax.ShapeDtypeStruct((8, length, 12, 64), "bfloat16")
        bias = jax.ShapeDtypeStruct((8, 1, length, length), "float32")
        with jax.sharding.use_abstract_mesh(gpu):
            text = jax.jit(gradients).trace(query, bias).lower(
                lowering_platforms=("cuda",)).as_text()
        assert text.count("xla.gpu.triton") == kernels


def test_a_layer_uses_the_kernels_where_it_can(monkeypatch):
    config = EncoderConfig(vocab_size=9, hidden_size=32, num_attention_heads=2,
                           attention_probs_dropout_prob=0.2)
    layer = SelfAttention(config)
    layer.build()
    x = np.random.default_rng(0).standard_normal((2, 32, 32)).astype("float32")
    bias = drawn((2, 32, 2, 16), (2, 1, 1, 32))[3]
    seed = jnp.array([3, 5], "uint32")

    def gradient():
        def total(x):
            context, maps = layer(x, bias, seed)
            return jnp.sum(context * x), (context, maps)
        (_, outputs), found = jax.value_and_grad(total, has_aux=True)(x)
        return jax.tree.leaves((outputs, found))

    assert not fused_attention.takes(jnp.zeros((2, 32, 2, 16), "bfloat16"), bias)   # on a CPU
    expected, calls = gradient(), []

    def attention(*args):
        calls.append(args[0].shape)
        return run(*args, interpret=True)

    run = fused_attention.attention
    monkeypatch.setattr(fused_attention, "takes", lambda *args: True)
    monkeypatch.setattr(fused_attention, "attention", attention)
    for one, other in zip(gradient(), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert calls == [(2, 32, 2, 16)]


def test_what_the_kernels_take(monkeypatch):
    class Gpu:
        compute_capability = "9.0"

    def takes(shape=(2, 128, 12, 64), dtype="bfloat16", bias=(2, 1, 1, 128)):
        return fused_attention.takes(jnp.zeros(shape, dtype), None if bias is None else
                                     jnp.zeros(bias))

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "devices", lambda: [Gpu])
    assert takes() and takes(dtype="float16") and takes(bias=None)
    assert takes((2, 48, 12, 64), bias=(2, 1, 48, 48))
    assert not takes(dtype="float32")
    assert not takes((2, 83, 12, 64), bias=None)            # no multiple of 16
    assert not takes((2, 128, 12, 128)) and not takes((2, 128, 12, 24))
    assert not takes(bias=(2, 1, 128, 1)) and not takes(bias=(128,))
    for capability in ("7.5", "gfx942", ""):
        Gpu.compute_capability = capability
        assert not takes()
    Gpu.compute_capability = "10.0"
    assert takes()
    monkeypatch.setattr(jax, "device_count", lambda: 2)
    assert not takes()
