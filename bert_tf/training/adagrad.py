"""Adagrad as ELMo was trained with it."""

from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizer import AdamWeightDecay


@register
class Adagrad(AdamWeightDecay):
    """Adagrad as TensorFlow 1 has it, without an epsilon: accumulators of squared gradients begin
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
        self._assign(gradient, [(accumulator, total),
                                (variable, variable - rate * gradient / ops.sqrt(total))])
