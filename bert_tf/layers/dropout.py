"""Dropout whose masks are a pure function of a seed.

Then a resumed run draws the masks of the uninterrupted one, replicas draw different ones, and XLA
can compile the step. A seed is an integer tensor of shape [2].
"""

import keras
from keras import ops


class _Given(keras.random.SeedGenerator):
    """Hands Keras's random functions a seed that is a tensor."""

    def __init__(self, seed):
        # The base class would create a variable, which can't be done inside a compiled function.
        self._seed = seed

    def next(self, ordered=True):
        return self._seed


def split_seed(seed, count):
    """`count` seeds, as unrelated to each other and to those of other seeds as random numbers are.

    Args:
        seed: integer [2], or None.

    Returns:
        A list of `count` integer tensors [2]; of `count` None if `seed` is None.
    """
    if seed is None:
        return [None] * count
    dtype = "uint32" if keras.config.backend() == "jax" else "int32"
    seeds = keras.random.randint((count, 2), 0, 2**31 - 1, dtype, _Given(ops.cast(seed, dtype)))
    return list(ops.unstack(seeds, count))


def dropout(x, rate, seed):
    """`x` with elements zeroed at `rate` and the rest scaled up; `x` itself if `seed` is None."""
    if seed is None or not rate:
        return x
    # Not keras.random.dropout: in bfloat16 it draws from 128 numbers, in twice the time.
    kept = keras.random.uniform(ops.shape(x), seed=_Given(seed), dtype="float32") >= rate
    return x * (ops.cast(kept, x.dtype) * (1 / (1 - rate)))
