"""Activations by the names of `config.ACTIVATIONS`.

The GELUs (arXiv:1606.08415) have their derivatives written out: a little faster than those of the
single steps, and no sum of three gradients that TensorFlow might add up in another order.
"""

import math

from keras import ops

_C, _K = math.sqrt(2 / math.pi), 0.044715


def _gelu(twice_phi_and_slope):
    """The function x * phi(x), from a function that gives 2 phi(x) and a function of its slope."""

    @ops.custom_gradient
    def gelu(x):
        twice_phi, slope = twice_phi_and_slope(x)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return (0.5 * upstream) * (twice_phi + x * slope())

        # In this order LiteRT knows it as one operation of its own.
        return (0.5 * x) * twice_phi, gradient

    return gelu


def _tanh_form(x):
    """google-research/bert's: phi(x) = (1 + tanh(c (x + k x^3))) / 2."""
    square = x * x
    tanh = ops.tanh(x * (_C + (_C * _K) * square))
    return 1.0 + tanh, lambda: (1.0 - tanh * tanh) * (_C + (3 * _C * _K) * square)


def _erf_form(x):
    """The normal distribution's cumulative function."""
    return 1.0 + ops.erf(x * math.sqrt(0.5)), lambda: (
        ops.exp(-0.5 * x * x) * math.sqrt(2 / math.pi))


ACTIVATIONS = {
    "gelu": _gelu(_tanh_form),
    "gelu_erf": _gelu(_erf_form),
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": lambda x: x,
}
