"""The cost of the Universal Transformer's steps (arXiv:1603.08983; tensor2tensor)."""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import UniversalConfig
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch, Objective, example_weights, ratio


@register
class PonderTime(Objective):
    """The mean of steps taken plus remainders, over all positions, with padding, [B, S]. It has no
    weights; the number of steps has no gradient. Its factor in the total is the configuration's
    `act_loss_weight`, times `loss_weight`."""

    measures = ("loss",)
    output_shape = (None, None)

    def __init__(self, config: UniversalConfig, loss_weight: float = 1.0, **kwargs: Any):
        super().__init__(config, loss_weight=loss_weight, **kwargs)
        self._factor = loss_weight
        self.loss_weight = loss_weight * config.act_loss_weight
        self.built = True

    @classmethod
    def fits(cls, config: Any) -> bool:
        return getattr(config, "halts", False)

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """float32 [B, S], from the network's `ponder_times` and `remainders`."""
        return outputs["ponder_times"] + outputs["remainders"]

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Zeros and the weights of their rows, [B, S]; rows that only fill up a batch have 0."""
        ids = batch["input_ids"]
        real = example_weights(batch, ids[:, 0])
        return ops.zeros_like(ids), real[:, None] * ops.ones_like(ids, dtype="float32")

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor
                ) -> dict[str, tuple[Tensor, Tensor]]:
        """See `Objective`; there is no accuracy."""
        return {"loss": ratio(logits, weights)}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "loss_weight": self._factor}
