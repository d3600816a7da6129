"""The tokens of a target, each from those before it (arXiv:1910.10683; tensorflow/mesh,
`transformer/transformer.py`).

Shapes: B batch, T target length, H width, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import T5Config
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch, Objective, ratio
from bert_tf.objectives.next_token import predict_tokens


@register
class SequenceLM(Objective):
    """The cross-entropy of all target tokens; while training with a term that keeps the softmax's
    denominators near 1.

    The loss is divided by the number of all target positions, those of padding too, as by the
    original: of short targets in long rows it is smaller than the mean over tokens, which is the
    measure `token_loss`. A target of 0 is padding.

    Args:
        config: `T5Config`.
        z_loss: factor of the square of the logarithm of the denominator.

    Attributes:
        reads: `decoder_loss_weights` is read too where there is one: 0 for targets without a loss.
    """

    reads = ("decoder_input_tokens", "decoder_target_tokens")
    measures = ("loss", "accuracy", "token_loss")

    def __init__(self, config: T5Config, z_loss: float = 1e-4, name: str = "sequence_lm",
                 **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.z_loss, self.built = z_loss, True

    @classmethod
    def fits(cls, config: Any) -> bool:
        return getattr(config, "model_type", "") == "t5"

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """
        Args:
            outputs: with `sequence_output`, float [B, T, H], and `output_table`, float [V, H], if
                it is another than the embeddings'.
            batch: with `decoder_target_tokens`, integer [B, T].
            embedding_table: float [V, H].
            dropout_seed: None in evaluation, where there is no term of the denominator.

        Returns:
            float32 [B, T, 2]: the loss of each target, and whether its logit is the largest.
        """
        x = outputs["sequence_output"]
        labels = ops.maximum(batch["decoder_target_tokens"], 0)
        table = ops.cast(outputs.get("output_table", embedding_table), x.dtype)
        rows = ops.reshape(x * self.config.logit_scale, (-1, x.shape[-1]))
        found = predict_tokens(rows, table, ops.zeros((table.shape[0],), "float32"),
                               ops.reshape(labels, (-1,)),
                               0.0 if dropout_seed is None else self.z_loss)
        return ops.reshape(found, (*ops.shape(labels), 2))

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The targets and their weights, [B, T], and the number of all positions."""
        labels = batch["decoder_target_tokens"]
        weights = ops.cast(labels > 0, "float32")
        if "decoder_loss_weights" in batch:
            weights = weights * ops.cast(batch["decoder_loss_weights"], "float32")
        return labels, weights * self._real(batch), self.count(batch)

    def _real(self, batch):
        """float32 [B, 1], or 1.0: 0 for rows that only fill a batch up."""
        if "is_real_example" not in batch:
            return 1.0
        return ops.cast(ops.reshape(batch["is_real_example"], (-1, 1)), "float32")

    def count(self, batch: Batch) -> Tensor:
        """The number of all positions."""
        ones = ops.ones_like(batch["decoder_target_tokens"], dtype="float32")
        return ops.sum(ones * self._real(batch))

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor,
                positions: Any = None
                ) -> dict[str, tuple[Tensor, Tensor]]:
        """See `Objective`; `positions` is the count of the loss."""
        return {"loss": (ops.sum(logits[..., 0] * weights), positions),
                "accuracy": ratio(logits[..., 1], weights),
                "token_loss": ratio(logits[..., 0], weights)}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "z_loss": self.z_loss}
