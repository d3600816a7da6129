"""LAMB of MobileBERT's first stage, in which one layer after the other is trained
(google-research mobilebert/lamb_optimizer.py and distill_util.py)."""

import re
from typing import Any

from keras import ops

from bert_tf.layers.base import register
from bert_tf.objectives.knowledge_transfer import phase
from bert_tf.training.optimizer import LayerwiseAdaptiveMoments

_LAYER = re.compile(r"encoder/layer_(\d+)/")
# The factors of the rate of all layers, and of those whose phase is over.
_BOOST, _AFTER = 3.0, 0.1


@register
class ProgressiveLamb(LayerwiseAdaptiveMoments):
    """LAMB whose rate differs by layer: 0 before a layer's phase, in it three times that of the
    schedule, after it a tenth of that. It also rises at the beginning of each phase and falls a
    little until its end. Everything outside the layers keeps its weights.

    Args:
        phase_steps: how many steps each layer is trained.
        args, kwargs: of `LayerwiseAdaptiveMoments`.
    """

    def __init__(self, *args: Any, phase_steps: int = 1, name: str = "progressive_lamb",
                 **kwargs: Any):
        super().__init__(*args, name=name, **kwargs)
        self.phase_steps = phase_steps

    def build(self, variables: list) -> None:
        """See `AdamWeightDecay`."""
        super().build(variables)
        self._layers = [_LAYER.search(variable.path) for variable in variables]

    def factor(self, layer: int) -> Any:
        """The factor of the rate of a layer at this step, float32."""
        step = ops.cast(self.iterations, "float32")
        part = ops.mod(step, float(self.phase_steps)) / self.phase_steps
        background = ops.minimum(0.9 + 0.1 * ops.sqrt(1.0 - part), 10.0 * part)
        where = phase(self.iterations, layer, self.phase_steps)
        gate = ops.where(where < 0, 0.0, ops.where(where > 0, _AFTER, 1.0))
        return _BOOST * background * gate

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its moments, which are 0 while its rate is."""
        index = self._get_variable_index(variable)
        found = self._layers[index]
        if not found:
            return
        factor = ops.cast(self.factor(int(found[1])), variable.dtype)
        super().update_step(gradient, variable, ops.cast(learning_rate, variable.dtype) * factor)
        is_trained = ops.cast(factor > 0, variable.dtype)
        for moment in (self._momentums[index], self._velocities[index]):
            self.assign(moment, moment * is_trained)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "phase_steps": self.phase_steps}
