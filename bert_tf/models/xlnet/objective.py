"""A sequence's tokens in a random order (arXiv:1906.08237; zihangdai/xlnet, modeling.py, lm_loss).

Shapes: B batch, P predictions, H hidden, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import XLNetConfig
from bert_tf.layers.base import Tensor, register, vocabulary_logits
from bert_tf.objectives.base import Batch, Objective


@register
class PermutationLM(Objective):
    """Predicts tokens from the query stream, by the embedding table and a bias alone."""

    reads = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    likelihood = "loss"
    in_order = True

    def __init__(self, config: XLNetConfig, name: str = "permutation_lm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        self.output_bias = self.add_weight((self.config.vocab_size,), "zeros", name="output_bias")

    @classmethod
    def fits(cls, config: Any) -> bool:
        return getattr(config, "model_type", "") == "xlnet"

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        return None, None, self.config.vocab_size

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """`query_output`, float [B, P, H], and the table [V, H] -> float32 logits [B, P, V]."""
        logits = vocabulary_logits(outputs["query_output"], embedding_table)
        return logits + ops.cast(self.output_bias, "float32")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, P]; an unused slot's weight is 0."""
        return batch["masked_lm_ids"], ops.cast(batch["masked_lm_weights"], "float32")
