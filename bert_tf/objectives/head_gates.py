"""Gates of attention heads, and the objective that closes them (Voita et al., arXiv:1905.09418,
section 5.1; lena-voita/the-story-of-heads, lib/layers/concrete_gate.py): the hard concrete
distribution of arXiv:1712.01312.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch, Objective

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


@register
class HeadGates(Objective):
    """The number of open gates, mean over layers. Owns the gates' variable `log_a` [L, N].

    Shapes: B batch, L layers, N heads. Auxiliary: a saved model has no gates, see
    `training.GatedLearner`.

    Args:
        temperature, stretch: see `draw_gates`.
    """

    measures = ("loss",)
    auxiliary = True
    config_keys = ("temperature", "stretch")

    def __init__(self, config: Sizes, temperature: float = TEMPERATURE,
                 stretch: Sequence[float] = STRETCH, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.temperature, self.stretch = temperature, (stretch[0], stretch[1])
        self.build()

    def build(self, input_shape: Any = None) -> None:
        heads = self.config.num_attention_heads
        limit = math.sqrt(3 / heads)        # Glorot's for the original's shape, [1, N, 1, 1]
        self.log_a = self.add_weight(
            (self.config.num_hidden_layers, heads), keras.initializers.RandomUniform(-limit, limit),
            name="bias")        # as biases, it is not decayed

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """float32 [L], the expected number of each layer's open gates."""
        return open_gates(ops.cast(self.log_a, "float32"), self.temperature, self.stretch)

    def gates(self, noise: Tensor | None = None) -> Tensor:
        """Returns the gates, float32 [L, N]; drawn if there is noise, float [L, N]."""
        log_a = ops.cast(self.log_a, "float32")
        if noise is None:
            return gates(log_a, self.stretch)
        return draw_gates(log_a, noise, temperature=self.temperature, stretch=self.stretch)

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Zeros and ones, [B]: the penalty counts once a row, so that parts of a batch add up."""
        ones = ops.ones(ops.shape(batch["input_ids"])[:1], "float32")
        return ops.zeros_like(ones), ones

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor
                ) -> dict[str, tuple[Tensor, Tensor]]:
        """See `Objective`; there is no accuracy."""
        count = ops.sum(weights)
        return {"loss": (ops.mean(logits) * count, count)}

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        return {"gates": self.gates()}
