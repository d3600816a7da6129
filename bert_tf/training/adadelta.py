"""Adadelta, with which BiLSTMs learn from BERT (castorini/d-bert)."""

from typing import Any

from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizer import AdamWeightDecay


@register
class Adadelta(AdamWeightDecay):
    """Adadelta (arXiv:1212.5701) as PyTorch has it: steps are as long as those before them, times
    the learning rate. `beta_2` is its rho. Nothing is decayed."""

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
        self._assign(gradient, [
            (squares, new_squares), (steps, rho * steps + (1 - rho) * ops.square(step)),
            (variable, variable - rate * self._rate_factors[index] * step)])
