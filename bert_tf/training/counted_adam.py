"""AdamW of Hugging Face's transformers, as it was on PyTorch."""

from typing import Any

from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizer import AdamWeightDecay


@register
class CountedAdam(AdamWeightDecay):
    """Adam with decay (transformers 4, optimization.py, AdamW).

    Every variable counts its own steps for the correction of its moments, from its first gradient
    that is not zero; before that it neither moves nor decays. Epsilon is added before the
    correction, and the decay is of the variable after its step.
    """

    def __init__(self, *args: Any, name: str = "counted_adam", **kwargs: Any):
        super().__init__(*args, **{"epsilon": 1e-8, **kwargs}, name=name)

    def _add_state(self, variables: list) -> None:
        super()._add_state(variables)
        self._counts = [self.add_variable(
            (), "zeros", "float32", name=f"{v.path.replace('/', '_')}_count") for v in variables]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable, its moments and its count."""
        index = self._get_variable_index(variable)
        m, v, count = self._momentums[index], self._velocities[index], self._counts[index]
        gradient = ops.cast(gradient, variable.dtype)
        has_begun = ops.logical_or(count > 0, ops.any(gradient != 0))
        new_m = self.beta_1 * m + (1 - self.beta_1) * gradient
        new_v = self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient)
        first, second = (1 - ops.power(ops.cast(beta, variable.dtype), count + 1)
                         for beta in (self.beta_1, self.beta_2))
        rate = ops.cast(learning_rate, variable.dtype) * self._rate_factors[index]
        moved = variable - rate * ops.sqrt(second) / first * new_m / (
            ops.sqrt(new_v) + self.epsilon)
        if self._is_decayed[index]:
            moved = moved * (1 - rate * self.decay)
        self._assign(gradient, [(old, ops.where(has_begun, new, old)) for old, new in (
            (m, new_m), (v, new_v), (variable, moved), (count, count + 1))])
