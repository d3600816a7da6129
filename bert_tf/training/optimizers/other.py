"""Optimizers with other moments than Adam's: Adafactor, Adagrad, Adadelta, Adamax."""

from typing import Any

from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizers.adam import AdamWeightDecay


@register
class Adadelta(AdamWeightDecay):
    """Adadelta (arXiv:1212.5701) as in PyTorch: the length of a step follows the steps before
    it, times the learning rate. `beta_2` is its rho. It has no decay."""

    def __init__(self, *args: Any, name: str = "adadelta", **kwargs: Any):
        super().__init__(*args, name=name, **{"beta_2": 0.95, "epsilon": 1e-6, **kwargs})

    def _add_state(self, variables):
        self._squares, self._steps = self.add_optimizer_variables(variables, ["square", "step"])

    def update_step(self, gradient, variable, learning_rate) -> None:
        index = self._get_variable_index(variable)
        squares, steps = self._squares[index], self._steps[index]
        gradient = ops.cast(gradient, variable.dtype)
        rho, rate = self.beta_2, ops.cast(learning_rate, variable.dtype)
        new_squares = rho * squares + (1 - rho) * ops.square(gradient)
        step = gradient * ops.sqrt((steps + self.epsilon) / (new_squares + self.epsilon))
        self._assign([
            (squares, new_squares), (steps, rho * steps + (1 - rho) * ops.square(step)),
            (variable, variable - rate * self._rate_factors[index] * step)])


@register
class Adafactor(AdamWeightDecay):
    """Adafactor as T5 was trained with it (arXiv:1804.04235; tensorflow/mesh, optimize.py).

    Second moments of large matrices are kept as the means of their rows and columns, and a step's
    size is relative to the weights. It has neither weight decay nor clipping of the global norm.
    Keras's own Adafactor factors every matrix, over its last two axes.

    Args:
        decay_exponent: moments decay by 1 - step^-exponent.
        clipping_threshold: largest root mean square of a variable's update; 0 for no bound.
        min_dim_size_to_factor: smallest second largest axis of a variable whose moments are
            factored.
        multiply_by_parameter_scale: whether a step's size is relative to the weights.
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
        self._assign([*updates, (variable, variable - ops.cast(step, variable.dtype))])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{name: getattr(self, name) for name in (
            "decay_exponent", "momentum", "clipping_threshold", "factored",
            "min_dim_size_to_factor", "multiply_by_parameter_scale")}}


def _rms(x):
    """Returns the root mean square of a tensor, float32."""
    return ops.sqrt(ops.mean(ops.square(ops.cast(x, "float32"))))


@register
class Adagrad(AdamWeightDecay):
    """Adagrad as in TensorFlow 1, without an epsilon: accumulators of squared gradients begin
    at 1 (allenai/bilm-tf). It has neither moments nor decay."""

    rows_apart = True

    def __init__(self, *args, name="adagrad", **kwargs):
        super().__init__(*args, name=name, **kwargs)

    def _add_state(self, variables):
        self._accumulators = [self.add_variable_from_reference(
            variable, "accumulator", initializer="ones") for variable in variables]

    def update_step(self, gradient, variable, learning_rate) -> None:
        index = self._get_variable_index(variable)
        accumulator, gradient = self._accumulators[index], ops.cast(gradient, variable.dtype)
        total = accumulator + ops.square(gradient)
        rate = ops.cast(learning_rate, variable.dtype) * self._rate_factors[index]
        self._assign([(accumulator, total),
                      (variable, variable - rate * gradient / ops.sqrt(total))])


@register
class Adamax(AdamWeightDecay):
    """Adamax (arXiv:1412.6980, section 7.1) with decay, as in namisan/mt-dnn v0.1, bert_optim.py.

    Every variable counts its own steps, from its first gradient that is not zero: the head of a
    task that first comes at step 10 begins its warm-up there. From then on it is moved and decayed
    in steps of other tasks too. No moment is corrected, and all variables are decayed unless
    `not_decayed` names them.
    """

    def __init__(self, *args, name="adamax", **kwargs):
        super().__init__(*args, **{"not_decayed": (), **kwargs}, name=name)

    def _add_state(self, variables):
        self._momentums, self._norms = self.add_optimizer_variables(variables, ["momentum", "norm"])
        self._counts = [self.add_variable(
            (), "zeros", "float32", name=f"{v.path.replace('/', '_')}_count") for v in variables]

    def update_step(self, gradient, variable, learning_rate) -> None:
        index = self._get_variable_index(variable)
        m, u, count = self._momentums[index], self._norms[index], self._counts[index]
        gradient = ops.cast(gradient, variable.dtype)
        has_begun = ops.logical_or(count > 0, ops.any(gradient != 0))
        new_m = self.beta_1 * m + (1 - self.beta_1) * gradient
        new_u = ops.maximum(self.beta_2 * u, ops.abs(gradient) + self.epsilon)
        rate = ops.cast(self._rate(count, learning_rate), variable.dtype)
        rate = rate * self._rate_factors[index]
        moved = self._moved(index, variable, rate, new_m, new_u, count)
        self._assign([(old, ops.where(has_begun, new, old)) for old, new in (
            (m, new_m), (u, new_u), (variable, moved), (count, count + 1))])

    def _rate(self, count, learning_rate) -> Any:
        """The learning rate of a variable that has taken `count` steps."""
        return self._learning_rate(count) if callable(self._learning_rate) else learning_rate

    def _moved(self, index, variable, rate, m, u, count) -> Any:
        delta = m / (u + self.epsilon)
        return variable - rate * (delta + self.decay * variable if self._is_decayed[index]
                                  else delta)


@register
class AdamaxWeightDecay(Adamax):
    """Adamax of namisan/mt-dnn's later code, mt_dnn/optim.py AdamaxW: the first moment is
    corrected, the decay comes before the step, and the rate follows the run's step."""

    def __init__(self, *args, name="adamaxw", **kwargs):
        super().__init__(*args, **{"epsilon": 1e-8, **kwargs}, name=name)

    def _rate(self, count, learning_rate):
        return learning_rate

    def _moved(self, index, variable, rate, m, u, count):
        kept = variable * (1 - rate * self.decay) if self._is_decayed[index] else variable
        correction = 1 - ops.power(ops.cast(self.beta_1, variable.dtype), count + 1)
        return kept - rate / correction * m / u
