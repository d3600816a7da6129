"""Attention with its dropout as one kernel: for NVIDIA's GPUs, on JAX.

As in FlashAttention-2 (arXiv:2307.08691), scores and probabilities never leave the processor. The
backward pass computes them again, with the same dropout: its mask is a pure function of the seed
and the place. The kernels are written in Pallas, and Triton compiles them.

Shapes: B batch, S sequence, N heads, D width of a head.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp
from jax.experimental import pallas

from bert_tf.bert import layers
from bert_tf.layers.base import Tensor
from bert_tf.layers.functions import bits_in_rows, keys_of_rows, least_kept, mixed_seed

try:
    from jax.experimental.pallas import triton
except ImportError:             # JAX has announced that it will remove it.
    triton = None               # type: ignore[assignment]

_BLOCKS = (64, 32, 16)          # queries or keys that a kernel takes at a time
_AT_ONCE = 128                  # keys that a kernel can take at once
_WIDTHS = (16, 32, 64)
_LOG2E = math.log2(math.e)


def takes(query: Tensor, bias: Tensor | None) -> bool:
    """Returns whether `attention` takes these arguments, and JAX computes on one GPU. XLA can't
    divide a kernel among several."""
    if triton is None or jax.default_backend() != "gpu" or jax.device_count() > 1:
        return False
    # NVIDIA's GPUs have such a number, and Triton compiles for 8.0 (A100) and later ones.
    capability = getattr(jax.devices()[0], "compute_capability", "")
    length, _, width = query.shape[1:]
    return (capability.replace(".", "", 1).isdecimal() and float(capability) >= 8
            and query.dtype.itemsize == 2 and width in _WIDTHS and length % _BLOCKS[-1] == 0
            and (bias is None or (len(bias.shape) == 4 and bias.shape[-1] == length)))


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, rate: float,
              seed: Tensor | None, interpret: bool = False) -> Tensor:
    """Returns dropout(softmax(query key^T + bias)) value, [B, S, N, D] in the value's dtype.

    Args:
        query, key, value: [B, S, N, D]; S is a multiple of 16, and D is 16, 32 or 64.
        bias: float with four axes, broadcast to [B, N, S, S] but for the last axis; it gets no
            gradient. None: 0.
        rate: share of the probabilities that dropout removes, as `seeds.dropout` does.
        seed: integer [2]; None: no dropout.
        interpret: whether to run the kernels without compiling them, on any device.
    """
    if bias is None:
        bias = jnp.zeros((1, 1, 1, query.shape[1]))
    if seed is None:
        seed, rate = jnp.zeros(2, "uint32"), 0.0
    function = _differentiable(query.shape, bias.shape, rate, interpret)
    return function(query, key, value, bias, mixed_seed(seed))


def attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, rate: float,
           dropout_seed: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
    """As `bert.layers.attend`, with the kernel where it takes the arguments."""
    context, maps = layers.attend(query, key, value, bias, rate, dropout_seed)
    if query.shape == key.shape and takes(query, bias):
        # Then XLA leaves out scores and probabilities, unless somebody reads them.
        context = attention(query, key, value, bias, rate, dropout_seed)
    return context, maps


@functools.cache
def _differentiable(*setting: Any) -> Callable:
    kernels = _Kernels(*setting)

    @jax.custom_vjp
    def function(*inputs):
        return kernels.forward(*inputs)[0]

    def forward(*inputs):
        out, total = kernels.forward(*inputs)
        return out, (inputs, out, total)

    def backward(kept, upstream):
        inputs, out, total = kept
        return (*kernels.backward(inputs, out, total, upstream), None, None)

    function.defvjp(forward, backward)
    return function


class _Kernels:
    """The kernels for one shape. Each program of a kernel takes a block of one head of one record.

    Programs read and write whole heads by reference: queries, keys, values and their gradients
    [S, D]; the bias [1 or S, S]; a number for each query [S]. `shape` is B, S, N, D; for `rate` and
    `interpret` see `attention`.
    """

    def __init__(self, shape: tuple[int, ...], bias_shape: tuple[int, ...], rate: float,
                 interpret: bool):
        self.shape, self.bias_shape = shape, bias_shape
        self.rate, self.interpret = rate, interpret
        self.block = next(size for size in _BLOCKS if shape[1] % size == 0)
        at_once = shape[1] <= _AT_ONCE and shape[1].bit_count() == 1
        self.keys = shape[1] if at_once else self.block

    def forward(self, query, key, value, bias, seed):
        """The output, and log2 of the sum of each query's exponentials, [B, N, S]."""
        batch, length, heads, _ = self.shape
        return self._run(self._attend, self.block, [
            jax.ShapeDtypeStruct(query.shape, query.dtype),
            jax.ShapeDtypeStruct((batch, heads, length), "float32")],
            query, key, value, bias, seed)

    def backward(self, inputs, out, total, upstream):
        like = jax.ShapeDtypeStruct(out.shape, out.dtype)
        # For each query, the sum over the keys of a probability times its gradient.
        slope = jnp.sum(out.astype("float32") * upstream.astype("float32"), -1).transpose(0, 2, 1)
        arrays = (*inputs, upstream, total, slope)
        at_once = self.keys == self.shape[1]
        of_key, of_value, *of_query = self._run(
            self._differentiate_keys, self.keys, [like] * (2 + at_once), *arrays)
        if not at_once:
            of_query = self._run(self._differentiate_queries, self.block, [like], *arrays)
        return of_query[0], of_key, of_value

    def _run(self, kernel, block, outputs, *inputs):
        batch, length, heads, width = self.shape
        records, own_heads, *bias_shape = self.bias_shape
        specs = {4: pallas.BlockSpec((None, length, None, width), lambda i, b, n: (b, 0, n, 0)),
                 3: pallas.BlockSpec((None, None, length), lambda i, b, n: (b, n, 0)),
                 1: pallas.BlockSpec((2,), lambda i, b, n: (0,))}
        of_inputs = [specs[len(value.shape)] for value in inputs]
        of_inputs[3] = pallas.BlockSpec((None, None, *bias_shape), lambda i, b, n: (
            b if records > 1 else 0, n if own_heads > 1 else 0, 0, 0))
        options = {}
        if not self.interpret:
            options["compiler_params"] = triton.CompilerParams(
                num_warps=8 if block > _BLOCKS[0] else 4, num_stages=3)
        return pallas.pallas_call(
            kernel, grid=(length // block, batch, heads), in_specs=of_inputs,
            out_specs=[specs[len(value.shape)] for value in outputs], out_shape=outputs,
            interpret=self.interpret, **options)(*inputs)

    def _bias(self, ref, queries, keys):
        """The bias of some queries and keys, with base 2."""
        return ref[queries if self.bias_shape[2] > 1 else pallas.ds(0, 1), keys] * _LOG2E

    def _row_keys(self, seed_ref):
        """Returns a function from queries to the keys of their draws, uint32 [queries]."""
        head = pallas.program_id(1) * self.shape[2] + pallas.program_id(2)
        seed = seed_ref[0], seed_ref[1]

        def keys(queries):
            rows = head * self.shape[1] + queries.start + jnp.arange(queries.size)
            return keys_of_rows(rows.astype("uint32"), seed)
        return keys

    def _dropped(self, x, row_keys, keys, axis):
        """`x` after dropout, without its scale. `axis` is the one of the keys."""
        if not self.rate:
            return x
        columns = (keys.start + jnp.arange(keys.size)).astype("uint32")
        bits = bits_in_rows(jnp.expand_dims(row_keys, axis), jnp.expand_dims(columns, 1 - axis))
        return jnp.where(bits >= least_kept(self.rate), x, 0.0)

    def _attend(self, query_ref, key_ref, value_ref, bias_ref, seed_ref, out_ref, total_ref):
        queries = self._own_slice(self.block)
        query, row_keys = query_ref[queries, :], self._row_keys(seed_ref)(queries)

        def add(block, found):
            context, total, high = found
            keys = pallas.ds(block * self.block, self.block)
            value = value_ref[keys, :]
            scores = triton.dot(query, key_ref[keys, :], trans_b=True) * _LOG2E
            scores += self._bias(bias_ref, queries, keys)
            higher = jnp.maximum(high, jnp.max(scores, 1))
            probs, shrink = jnp.exp2(scores - higher[:, None]), jnp.exp2(high - higher)
            dropped = self._dropped(probs, row_keys, keys, 1).astype(value.dtype)
            return (context * shrink[:, None] + triton.dot(dropped, value),
                    total * shrink + jnp.sum(probs, 1), higher)

        context, total, high = jax.lax.fori_loop(0, self.shape[1] // self.block, add, (
            jnp.zeros(query.shape), jnp.zeros(self.block), jnp.full(self.block, -jnp.inf)))
        context = context / (total * (1 - self.rate))[:, None]
        out_ref[queries, :] = context.astype(out_ref.dtype)
        total_ref[queries] = high + jnp.log2(total)

    def _differentiate_keys(self, query_ref, key_ref, value_ref, bias_ref, seed_ref, up_ref,
                            total_ref, slope_ref, key_out, value_out, query_out=None):
        """The gradients of a block of keys and values; the queries' too if it has all keys."""
        keys, row_keys_of = self._own_slice(self.keys), self._row_keys(seed_ref)
        key, value = key_ref[keys, :], value_ref[keys, :]

        def add(block, found):
            of_keys, of_values = found
            queries = pallas.ds(block * self.block, self.block)
            query, up, row_keys = query_ref[queries, :], up_ref[queries, :], row_keys_of(queries)
            scores = triton.dot(key, query, trans_b=True) * _LOG2E              # [keys, queries]
            scores += self._bias(bias_ref, queries, keys).T
            probs = jnp.exp2(scores - total_ref[queries][None])
            dropped = self._dropped(probs, row_keys, keys, 0)
            of_probs = self._dropped(triton.dot(value, up, trans_b=True), row_keys, keys, 0)
            of_scores = probs * (of_probs / (1 - self.rate) - slope_ref[queries][None])
            of_scores = of_scores.astype(query.dtype)
            if query_out is not None:
                of_query = triton.dot(of_scores, key, trans_a=True)
                query_out[queries, :] = of_query.astype(query_out.dtype)
            return (of_keys + triton.dot(of_scores, query),
                    of_values + triton.dot(dropped.astype(up.dtype), up))

        of_keys, of_values = jax.lax.fori_loop(
            0, self.shape[1] // self.block, add, (jnp.zeros(key.shape), jnp.zeros(key.shape)))
        key_out[keys, :] = of_keys.astype(key_out.dtype)
        value_out[keys, :] = (of_values / (1 - self.rate)).astype(value_out.dtype)

    def _differentiate_queries(self, query_ref, key_ref, value_ref, bias_ref, seed_ref, up_ref,
                               total_ref, slope_ref, query_out):
        queries = self._own_slice(self.block)
        query, up = query_ref[queries, :], up_ref[queries, :]
        row_keys = self._row_keys(seed_ref)(queries)
        total, slope = total_ref[queries][:, None], slope_ref[queries][:, None]

        def add(block, gradient):
            keys = pallas.ds(block * self.block, self.block)
            key, value = key_ref[keys, :], value_ref[keys, :]
            scores = triton.dot(query, key, trans_b=True) * _LOG2E
            probs = jnp.exp2(scores + self._bias(bias_ref, queries, keys) - total)
            of_probs = self._dropped(triton.dot(up, value, trans_b=True), row_keys, keys, 1)
            of_scores = probs * (of_probs / (1 - self.rate) - slope)
            return gradient + triton.dot(of_scores.astype(key.dtype), key)

        gradient = jax.lax.fori_loop(0, self.shape[1] // self.block, add, jnp.zeros(query.shape))
        query_out[queries, :] = gradient.astype(query_out.dtype)

    @staticmethod
    def _own_slice(size):
        return pallas.ds(pallas.program_id(0) * size, size)
