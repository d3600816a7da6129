"""Random draws that are pure functions of a seed, so that a resumed run repeats them."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import lazy_loader
import numpy as np
from keras import ops

from bert_tf.layers.functions import Tensor, custom_gradient

tf = lazy_loader.load("tensorflow")     # only where it is Keras's backend

# The seeds of this many replicas and parts of one step differ in the low bits of their first
# number.
PARTS_OF_A_STEP = 1 << 7


class _Given(keras.random.SeedGenerator):
    """Passes a seed that is a tensor to Keras's random functions."""

    def __init__(self, seed):
        # The base class would create a variable, which a compiled function can't do.
        if keras.config.backend() == "torch":
            # Keras adds both numbers there, so that [1, 2] and [2, 1] would draw alike.
            seed = ops.cast(seed, "int64") * np.array([0x9E3779B1, 1])
        self._seed = seed

    def next(self, ordered=True):
        return self._seed


def split_seed(seed: Tensor | None, count: int) -> list[Tensor] | list[None]:
    """Returns a list of `count` seeds, integer [2], that are independent of each other and of other
    seeds' parts. If `seed` is None, the list has `count` times None."""
    if seed is None:
        return [None] * count
    dtype = "uint32" if keras.config.backend() == "jax" else "int32"
    seeds = keras.random.randint((count, 2), 0, 2**31 - 1, dtype, _Given(ops.cast(seed, dtype)))
    return list(ops.unstack(seeds, count))


def seed_of_pass(seed: Tensor | None, training: bool,
                 generator: keras.random.SeedGenerator) -> Tensor | None:
    """Returns the dropout seed of one pass of a model: the given one, integer [2], or the
    generator's next; None outside training."""
    if not training:
        return None
    return generator.next() if seed is None else seed


def shared_seed(seed: Tensor) -> Tensor:
    """The common seed of all replicas and parts of a step, integer [2], from any one's seed."""
    first = ops.floor_divide(seed[0], PARTS_OF_A_STEP) * PARTS_OF_A_STEP
    return ops.stack([first, seed[1]])


def _mixed(x):
    """Integers, uint32, half of whose bits change with one bit of x: the end of MurmurHash3."""
    x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(13))) * np.uint32(0xC2B2AE35)
    return ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))


def mixed_seed(seed: Tensor) -> Tensor:
    """Returns the seed of `keys_of_rows`, uint32 [2], from a seed, integer [2]."""
    seed = ops.cast(seed, "uint32")
    return _mixed(ops.bitwise_xor(seed, ops.flip(_mixed(seed + np.uint32(0x9E3779B9)))))


def keys_of_rows(rows: Tensor, seed: Sequence[Tensor]) -> Tensor:
    """Returns the keys of `bits_in_rows` for the numbers of some rows, uint32, and the two numbers
    of `mixed_seed`."""
    return _mixed(_mixed(ops.bitwise_xor(rows, seed[0])) + seed[1])


def bits_in_rows(keys: Tensor, columns: Tensor) -> Tensor:
    """The random bits of some columns of some rows, uint32; arguments, uint32, are broadcast."""
    # The keys are mixed, so one product with them is enough for a number's high bits.
    x = ops.bitwise_xor(keys, columns * np.uint32(0x9E3779B1))
    x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))
    return x * ops.bitwise_or(keys, np.uint32(1))


def least_kept(rate: float) -> np.uint32:
    """Returns the least of `bits_in_rows` whose number in `uniform` is at least `rate`."""
    return np.uint32(math.ceil(np.float32(rate) * 2.0**24) << 8)


def uniform(shape: Sequence, seed: Tensor) -> Tensor:
    """Returns numbers in [0, 1), float32 of `shape`, a pure function of the seed, integer [2]."""
    if keras.config.backend() == "jax":
        # JAX's own draws take 2.6 times as long on a GPU, where they were a tenth of a step.
        *rows, columns = shape or (1,)
        keys = keys_of_rows(ops.arange(math.prod(rows), dtype="uint32"), mixed_seed(seed))
        bits = bits_in_rows(keys[:, None], ops.arange(columns, dtype="uint32"))
        numbers = ops.cast(ops.right_shift(bits, np.uint32(8)), "float32") * 2.0**-24
        return ops.reshape(numbers, shape)
    return keras.random.uniform(shape, seed=_Given(seed), dtype="float32")


def at_least(rate: float, shape: Sequence, seed: Tensor) -> Tensor:
    """Returns whether numbers in [0, 1) are at least `rate`: bool of `shape`, a pure function of
    the seed, integer [2].

    On TensorFlow they have 16 bits, two from each number of its generator, whose draws take most of
    the time of dropout. Elsewhere they are those of `uniform`.
    """
    if keras.config.backend() != "tensorflow":
        return uniform(shape, seed) >= rate
    count = tf.reduce_prod(shape)
    draws = tf.random.stateless_uniform([(count + 1) // 2], seed, None, None, tf.uint32)
    numbers = tf.reshape(tf.bitcast(draws, tf.uint16), [-1])[:count]
    return tf.reshape(numbers, shape) >= tf.constant(min(round(rate * 2**16), 2**16 - 1), tf.uint16)


def softmax_and_dropout(scores: Tensor, rate: float, seed: Tensor | None, dtype: Any
                        ) -> tuple[Tensor, Tensor]:
    """Softmax(scores) over the last axis, and the same after `dropout`, both in `dtype`.

    On JAX, both together keep one number per probability for the backward pass, in `dtype`:
    negative where the probability was dropped. JAX by itself keeps two, one of them in float32.
    """
    probs = ops.cast(ops.softmax(scores), dtype)
    if keras.config.backend() != "jax" or seed is None or not rate:
        return probs, dropout(probs, rate, seed)
    return probs, lean_softmax_and_dropout(scores, rate, seed, dtype)


def attend_with_dropout(scores: Tensor, rate: float, seed: Tensor | None, value: Tensor
                        ) -> tuple[Tensor, Tensor]:
    """Returns softmax(scores), [..., I, J] in the type of `value`, and the product of its `dropout`
    with `value`, [..., J, O]. On TensorFlow the backward pass computes that dropout again."""
    if keras.config.backend() != "tensorflow" or seed is None or not rate:
        probs, dropped = softmax_and_dropout(scores, rate, seed, value.dtype)
        return probs, ops.matmul(dropped, value)
    probs = ops.cast(ops.softmax(scores), value.dtype)
    stays = at_least(rate, ops.shape(probs), seed)

    @ops.custom_gradient
    def function(probs, value):
        def gradient(upstream):
            factors = _factors(stays, rate, probs.dtype, again=True)
            return (tf.matmul(upstream, value, adjoint_b=True) * factors,
                    tf.matmul(probs * factors, upstream, adjoint_a=True))

        return ops.matmul(probs * _factors(stays, rate, probs.dtype), value), gradient

    return probs, function(probs, value)


def _factors(stays, rate, dtype, again=False):
    """The factors of dropout from `at_least`. The backward pass computes them `again`, from a byte
    for each, by another operation: TensorFlow keeps what two equal ones compute."""
    if again:
        stays = ops.cast(stays, "uint8")
    return ops.cast(stays, dtype) * (1 / (1 - rate))


def lean_softmax_and_dropout(scores: Tensor, rate: float, seed: Tensor, dtype: Any) -> Tensor:
    """dropout(softmax(scores)), with a gradient in less memory: see `softmax_and_dropout`."""
    scale = 1 / (1 - rate)

    @custom_gradient
    def function(scores, seed):
        probs = ops.cast(ops.softmax(scores), dtype)
        signed = ops.where(at_least(rate, ops.shape(scores), seed), probs, -probs)

        def gradient(upstream):
            upstream = ops.where(signed > 0, upstream * scale, 0)
            probs = ops.cast(ops.abs(signed), scores.dtype)
            slope = probs * ops.cast(upstream, scores.dtype)
            return slope - probs * ops.sum(slope, axis=-1, keepdims=True), None

        return ops.maximum(signed, 0) * scale, gradient

    # JAX refuses a seed that the function does not get as an argument, where it computes a layer
    # again for the backward pass.
    return function(scores, seed)


def dropout(x: Tensor, rate: float, seed: Tensor | None, shared: int | None = None) -> Tensor:
    """Sets elements of `x` to zero at `rate`, from 0 to below 1, and scales up the others.

    The mask is a pure function of the seed, integer [2]. So a resumed run draws the masks of an
    uninterrupted one, each replica draws its own, and XLA can compile the step. All elements along
    the axis `shared` have one mask.
    """
    if seed is None or not rate:
        return x
    shape = list(ops.shape(x))
    if shared is not None:
        shape[shared] = 1
    # In bfloat16, keras.random.dropout draws from 128 numbers only, and takes twice the time.
    stays = at_least(rate, shape, seed)
    if keras.config.backend() != "tensorflow":
        return x * _factors(stays, rate, x.dtype)

    @ops.custom_gradient
    def function(x):
        return x * _factors(stays, rate, x.dtype), lambda upstream: (
            upstream * _factors(stays, rate, x.dtype, again=True))

    return function(x)
