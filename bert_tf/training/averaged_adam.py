"""Adam with averages of the weights, as the LSTM of 2015 was trained with it."""

from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizer import AdamWeightDecay


@register
class AveragedAdam(AdamWeightDecay):
    """Adam that keeps averages of the weights, which are what is evaluated and saved
    (tensorflow/models research/adversarial_text, layers.py).

    At step s their decay is min(0.999, (1 + s) / (10 + s)). The weights that go in are those of
    before the update.
    """

    MOST = 0.999

    def __init__(self, *args, name="averaged_adam", **kwargs):
        super().__init__(*args, name=name, **kwargs)

    def _add_state(self, variables):
        super()._add_state(variables)
        self.averages = self.add_optimizer_variables(variables, "average")
        for average, variable in zip(self.averages, variables):
            average.assign(variable)

    def update_step(self, gradient, variable, learning_rate) -> None:
        step = ops.cast(self.iterations, variable.dtype)
        # Weights may have been loaded since the averages were made.
        kept = ops.where(step > 0, ops.minimum(self.MOST, (1 + step) / (10 + step)), 0.0)
        average = self.averages[self._get_variable_index(variable)]
        self._assign(gradient, [(average, average - (1 - kept) * (average - variable))])
        super().update_step(gradient, variable, learning_rate)
