"""Random numbers of 16 bits on TensorFlow, two from each number of its generator, whose draws take
most of the time of dropout."""

from collections.abc import Sequence

import tensorflow as tf

_BITS = 16


def at_least(rate: float, shape: Sequence, seed: tf.Tensor) -> tf.Tensor:
    """Returns whether numbers in [0, 1) are at least `rate`, to the next 2**-16: bool of `shape`, a
    pure function of the seed, integer [2]."""
    count = tf.reduce_prod(shape)
    draws = tf.random.stateless_uniform([(count + 1) // 2], seed, None, None, tf.uint32)
    numbers = tf.reshape(tf.bitcast(draws, tf.uint16), [-1])[:count]
    return tf.reshape(numbers, shape) >= tf.constant(
        min(round(rate * 2**_BITS), 2**_BITS - 1), tf.uint16)
