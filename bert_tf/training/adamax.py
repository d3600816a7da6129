"""Adamax as MT-DNN was trained with it, and the one of its later code."""

from typing import Any

from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizer import AdamWeightDecay


@register
class Adamax(AdamWeightDecay):
    """Adamax (arXiv:1412.6980, section 7.1) with decay, of namisan/mt-dnn v0.1, bert_optim.py.

    Every variable counts its own steps, from its first gradient that is not zero: the head of a
    task that first comes at step 10 begins its warm-up there. From then on it is moved and decayed
    in steps of other tasks too. No moment is corrected, and all variables are decayed unless
    `not_decayed` names them.
    """

    def __init__(self, *args, name="adamax", **kwargs):
        super().__init__(*args, **{"not_decayed": (), **kwargs}, name=name)

    def _add_state(self, variables):
        self._momentums, self._norms = self.add_optimizer_variables(
            variables, ["momentum", "norm"])
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
        self._assign(gradient, [(old, ops.where(has_begun, new, old)) for old, new in (
            (m, new_m), (u, new_u), (variable, moved), (count, count + 1))])

    def _rate(self, count, learning_rate) -> Any:
        """The learning rate of a variable that has taken `count` steps."""
        return self._learning_rate(count) if callable(self._learning_rate) else learning_rate

    def _moved(self, index, variable, rate, m, u, count) -> Any:
        """The variable after its step."""
        delta = m / (u + self.epsilon)
        return variable - rate * (delta + self.decay * variable if self._is_decayed[index]
                                  else delta)


@register
class AdamaxWeightDecay(Adamax):
    """The Adamax of namisan/mt-dnn's later code, mt_dnn/optim.py AdamaxW: the first moment is
    corrected, the decay comes before the step, and the rate is that of the run's step."""

    def __init__(self, *args, name="adamaxw", **kwargs):
        super().__init__(*args, **{"epsilon": 1e-8, **kwargs}, name=name)

    def _rate(self, count, learning_rate):
        return learning_rate

    def _moved(self, index, variable, rate, m, u, count):
        kept = variable * (1 - rate * self.decay) if self._is_decayed[index] else variable
        correction = 1 - ops.power(ops.cast(self.beta_1, variable.dtype), count + 1)
        return kept - rate / correction * m / u
