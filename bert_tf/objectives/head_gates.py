"""The objective that closes gates of attention heads (Voita et al., arXiv:1905.09418)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.head_gates import STRETCH, TEMPERATURE, draw_gates, gates, open_gates
from bert_tf.objectives.base import Batch, Objective


@register
class HeadGates(Objective):
    """The number of open gates, mean over layers. Owns the gates' variable `log_a` [L, N].

    Shapes: B batch, L layers, N heads. Auxiliary: a saved model has no gates, see
    `training.GatedLearner`.

    Args:
        temperature, stretch: see `layers.head_gates.draw_gates`.
    """

    measures = ("loss",)
    auxiliary = True

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

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "temperature": self.temperature,
                "stretch": list(self.stretch)}
