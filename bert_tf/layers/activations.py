"""The activations of all networks, by the names of their configurations."""

import contextlib
import contextvars
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

from keras import ops

_C, _K = math.sqrt(2 / math.pi), 0.044715
# Above this width the backward pass computes tanh and erf again: the wider a layer, the less of its
# time they take, and the more memory.
_NARROW = 1024


def _gelu(twice_phi_and_slope: Callable) -> Callable:
    """Returns the function x * phi(x) (arXiv:1606.08415), from a function that returns 2 phi(x) and
    a function that returns it again with its slope."""
    # The derivative is written out: it is a little faster, and has no sum of three gradients, whose
    # order TensorFlow may choose. The backward pass computes cheap values again, in another form,
    # since TensorFlow keeps a value that two equal operations compute.
    @ops.custom_gradient
    def gelu(x):
        twice_phi, slope_at = twice_phi_and_slope(x)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            again, slope = slope_at()
            return (0.5 * upstream) * (again + x * slope)

        # LiteRT recognizes the exact form's product in this order as one operation.
        return (0.5 * x) * twice_phi, gradient

    return gelu


def _tanh_form(x):
    """google-research/bert's approximation: phi(x) = (1 + tanh(c (x + k x^3))) / 2."""
    def tanh_from(square):
        return ops.tanh(x * (_C + (_C * _K) * square))

    def again():
        square = ops.square(-x)
        value = tanh_from(square) if _is_wide(x) else tanh
        return value - -1.0, (1.0 - value * value) * (_C + (3 * _C * _K) * square)

    tanh = tanh_from(ops.square(x))
    return 1.0 + tanh, again


def _erf_form(x):
    """The cumulative function of the normal distribution."""
    def again():
        value = 1.0 - ops.erf(x * -math.sqrt(0.5)) if _is_wide(x) else erf - -1.0
        return value, ops.exp(-0.5 * x * x) * math.sqrt(2 / math.pi)

    erf = ops.erf(x * math.sqrt(0.5))
    return 1.0 + erf, again


def _is_wide(x):
    return isinstance(x.shape[-1], int) and x.shape[-1] > _NARROW


# By the names of `config.ACTIVATIONS`.
ACTIVATIONS = {
    "gelu": _gelu(_tanh_form),
    "gelu_erf": _gelu(_erf_form),
    "relu": ops.relu, "relu6": ops.relu6, "tanh": ops.tanh, "silu": ops.silu,
    "linear": lambda x: x}
# The same functions in forms that TensorFlow computes together with the product and the bias before
# them. The last bits differ, so training has the forms above.
_IN_PREDICTION = {ACTIVATIONS["gelu"]: functools.partial(ops.gelu, approximate=True)}
_is_training_step = contextvars.ContextVar("is_training_step", default=False)


@contextlib.contextmanager
def training_forms() -> Iterator[None]:
    """Within this context, layers have the activations of training, also frozen networks and
    teachers, which a training step calls without `training`."""
    token = _is_training_step.set(True)
    try:
        yield
    finally:
        _is_training_step.reset(token)


def form_of(activation: Any, training: bool | None) -> Any:
    """Returns the form of an activation for a call of a layer. `training` is None outside of a
    model's call, such as when the backward pass computes a layer again: None means training."""
    if training is not False or _is_training_step.get():
        return activation
    return _IN_PREDICTION.get(activation, activation)
