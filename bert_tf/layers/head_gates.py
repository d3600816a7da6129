"""Gates of attention heads that learn to close (Voita et al., arXiv:1905.09418, section 5.1;
lena-voita/the-story-of-heads, lib/layers/concrete_gate.py): the hard concrete distribution of
arXiv:1712.01312.
"""

import math

from keras import ops

from bert_tf.layers.base import Tensor

_TEMPERATURE = 0.33
_LOW, _HIGH = -0.1, 1.1
_LEAST = 1e-6


def draw_gates(log_a: Tensor, noise: Tensor, hard: bool = False) -> Tensor:
    """Returns gates in [0, 1] for a training step, float [L, N].

    Args:
        log_a: float [L, N], learned.
        noise: float [L, N], uniform between 0 and 1.
        hard: makes gates 0 or 1, with the gradient of soft gates.
    """
    noise = ops.clip(noise, _LEAST, 1 - _LEAST)
    drawn = ops.sigmoid((ops.log(noise) - ops.log(1 - noise) + log_a) / _TEMPERATURE)
    gates = ops.clip(drawn * (_HIGH - _LOW) + _LOW, 0.0, 1.0)
    if hard:
        gates = gates + ops.stop_gradient(ops.cast(gates > 0.5, gates.dtype) - gates)
    return gates


def gates(log_a: Tensor) -> Tensor:
    """Returns gates without noise, float [L, N]; as in the original, not divided by the
    temperature."""
    return ops.clip(ops.sigmoid(log_a) * (_HIGH - _LOW) + _LOW, 0.0, 1.0)


def open_gates(log_a: Tensor) -> Tensor:
    """Returns the penalty: each layer's expected number of gates that are not 0, float [L]."""
    open_ = ops.sigmoid(log_a - _TEMPERATURE * math.log(-_LOW / _HIGH))
    return ops.sum(ops.clip(open_, _LEAST, 1 - _LEAST), -1)
