"""Gates of attention heads that learn to close (Voita et al., arXiv:1905.09418, section 5.1;
lena-voita/the-story-of-heads, lib/layers/concrete_gate.py): the hard concrete distribution of
arXiv:1712.01312.
"""

import math

from keras import ops

from bert_tf.layers.base import Tensor

TEMPERATURE = 0.33
STRETCH = (-0.1, 1.1)
_LEAST = 1e-6


def _stretched(opened, stretch):
    low, high = stretch
    return ops.clip(opened * (high - low) + low, 0.0, 1.0)


def draw_gates(log_a: Tensor, noise: Tensor, hard: bool = False, temperature: float = TEMPERATURE,
               stretch: tuple[float, float] = STRETCH) -> Tensor:
    """Returns gates in [0, 1] for a training step, float [L, N].

    Args:
        log_a: float [L, N], learned.
        noise: float [L, N], uniform between 0 and 1.
        hard: makes gates 0 or 1, with the gradient of soft gates.
        temperature: above 0; the lower it is, the more gates are near 0 or 1.
        stretch: a number below 0 and one above 1, to which numbers between 0 and 1 are stretched
            before they are clipped.
    """
    noise = ops.clip(noise, _LEAST, 1 - _LEAST)
    drawn = ops.sigmoid((ops.log(noise) - ops.log(1 - noise) + log_a) / temperature)
    gates = _stretched(drawn, stretch)
    if hard:
        gates = gates + ops.stop_gradient(ops.cast(gates > 0.5, gates.dtype) - gates)
    return gates


def gates(log_a: Tensor, stretch: tuple[float, float] = STRETCH) -> Tensor:
    """Gates without noise, float [L, N]; as in the original, without the temperature."""
    return _stretched(ops.sigmoid(log_a), stretch)


def open_gates(log_a: Tensor, temperature: float = TEMPERATURE,
               stretch: tuple[float, float] = STRETCH) -> Tensor:
    """Returns the penalty: each layer's expected number of gates that are not 0, float [L]."""
    low, high = stretch
    open_ = ops.sigmoid(log_a - temperature * math.log(-low / high))
    return ops.sum(ops.clip(open_, _LEAST, 1 - _LEAST), -1)
