"""Activations by the names of `config.ACTIVATIONS`."""

import functools

from keras import ops

ACTIVATIONS = {
    "gelu": functools.partial(ops.gelu, approximate=True),
    "gelu_erf": functools.partial(ops.gelu, approximate=False),
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": lambda x: x,
}
