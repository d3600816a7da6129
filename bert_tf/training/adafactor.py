"""Adafactor as T5 was trained with it (arXiv:1804.04235; tensorflow/mesh, `optimize.py`).

Keras's own has another form: it factors every matrix, over its last two axes.
"""

from typing import Any

from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizer import AdamWeightDecay


@register
class Adafactor(AdamWeightDecay):
    """Second moments of large matrices are kept as the means of their rows and columns, and a step
    is as long as the weights themselves. There is neither weight decay nor clipping of the norm of
    all gradients.

    Args:
        learning_rate: as of `AdamWeightDecay`.
        decay_exponent: moments decay by 1 - step^-exponent.
        momentum: decay of the first moment; 0 for none.
        clipping_threshold: largest root mean square of a variable's update; 0 for no bound.
        factored: whether moments are factored.
        min_dim_size_to_factor: what the second largest axis of a variable must have for that.
        multiply_by_parameter_scale: whether a step is as long as the weights.
    """

    _TINY, _LEAST_SCALE = 1e-30, 1e-3

    def __init__(self, *args: Any, decay_exponent: float = 0.8, momentum: float = 0.0,
                 clipping_threshold: float = 1.0, factored: bool = True,
                 min_dim_size_to_factor: int = 128, multiply_by_parameter_scale: bool = True,
                 name: str = "adafactor", **kwargs: Any):
        super().__init__(*args, name=name, **{"clip_norm": 0.0, **kwargs})
        self.decay_exponent, self.momentum = decay_exponent, momentum
        self.clipping_threshold, self.factored = clipping_threshold, factored
        self.min_dim_size_to_factor = min_dim_size_to_factor
        self.multiply_by_parameter_scale = multiply_by_parameter_scale

    def _axes(self, shape):
        """The largest axis and the second largest, if the moments of this shape are factored."""
        axes = sorted(range(len(shape)), key=lambda axis: -shape[axis])[:2]
        fits = len(axes) == 2 and shape[axes[1]] >= self.min_dim_size_to_factor
        return axes if self.factored and fits else None

    def _add_state(self, variables):
        self._slots = []
        for variable in variables:
            shape, slots = tuple(variable.shape), {}
            if axes := self._axes(shape):
                for name, axis in zip(("vr", "vc"), axes):
                    slots[name] = shape[:axis] + shape[axis + 1:]
            else:
                slots["v"] = shape
            if self.momentum:
                slots["m"] = shape
            path = variable.path.replace("/", "_")
            self._slots.append({name: self.add_variable(
                size, "zeros", "float32", name=f"{path}_slot_{name}")
                for name, size in slots.items()})

    def update_step(self, gradient, variable, learning_rate) -> None:
        """Updates one variable and its moments."""
        index = self._get_variable_index(variable)
        slots, gradient = self._slots[index], ops.cast(gradient, "float32")
        decay = 1.0 - ops.power(ops.cast(self.iterations, "float32") + 1.0, -self.decay_exponent)
        square, updates = ops.square(gradient) + self._TINY, []

        def mix(name, mean):
            new = decay * slots[name] + (1.0 - decay) * mean
            updates.append((slots[name], new))
            return new

        if axes := self._axes(tuple(variable.shape)):
            row = ops.expand_dims(mix("vr", ops.mean(square, axis=axes[0])), axes[0])
            column = ops.expand_dims(mix("vc", ops.mean(square, axis=axes[1])), axes[1])
            step = gradient * ops.rsqrt(row / ops.mean(row, axis=axes[1], keepdims=True))
            step = step * ops.rsqrt(column)
        else:
            step = gradient * ops.rsqrt(mix("v", square))
        if self.clipping_threshold:
            step = step / ops.maximum(_rms(step) / self.clipping_threshold, 1.0)
        rate = ops.cast(learning_rate, "float32") * self._rate_factors[index]
        if self.multiply_by_parameter_scale:
            rate = rate * ops.maximum(_rms(variable), self._LEAST_SCALE)
        step = rate * step
        if self.momentum:
            step = self.momentum * slots["m"] + (1.0 - self.momentum) * step
            updates.append((slots["m"], step))
        self._assign(gradient, [*updates, (variable, variable - ops.cast(step, variable.dtype))])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{name: getattr(self, name) for name in (
            "decay_exponent", "momentum", "clipping_threshold", "factored",
            "min_dim_size_to_factor", "multiply_by_parameter_scale")}}


def _rms(x):
    """The root mean square of a tensor, float32."""
    return ops.sqrt(ops.mean(ops.square(ops.cast(x, "float32"))))
