"""Updates of a variable in one pass over its numbers, compiled by XLA.

TensorFlow runs the operations of an update one by one, each over all numbers of the variable. XLA
makes one loop of them, which reads and writes each number once.
"""

import functools
from collections.abc import Callable
from typing import Any

import lazy_loader

from bert_tf.training.compiler import silence_compiler

tf = lazy_loader.load("tensorflow")


def one_pass(update: Callable, arrays: int, scalars: int) -> Callable:
    """Compiles an elementwise update, with the bits of its operations one by one.

    Processors multiply and add in one instruction, which rounds once instead of twice. XLA divides
    once by a product instead of twice. So the update must give these to `rounded`: products that it
    adds, and products and quotients that it divides.

    Args:
        update: function (arrays, scalars, rounded) -> list of new arrays. `rounded` returns its
            float32 array.
        arrays: number of arrays, float32 of one shape.
        scalars: number of float32 scalars.

    Returns:
        A function (arrays, scalars, never) -> new arrays, which is called in a graph. `never` is a
        bool tensor that is False, which the compiler cannot know.
    """
    def flat(never, *values):
        change = tf.cast(never, tf.int32)

        def rounded(product):
            bits = tf.bitwise.bitwise_xor(tf.bitcast(product, tf.int32), change)
            return tf.bitcast(bits, tf.float32)

        return update(values[:arrays], values[arrays:], rounded=rounded)

    @functools.cache        # made when it is first called: optimizers also run without TensorFlow
    def compiled():
        silence_compiler()
        return tf.function(flat, jit_compile=True, autograph=False, input_signature=[
            tf.TensorSpec([], tf.bool), *[tf.TensorSpec([None], tf.float32)] * arrays,
            *[tf.TensorSpec([], tf.float32)] * scalars])

    def call(arrays: list, scalars: list, never: Any) -> list:
        found = compiled()(never, *(tf.reshape(array, [-1]) for array in arrays), *scalars)
        return [tf.reshape(new, array.shape) for new, array in zip(found, arrays[1:])]

    return call
