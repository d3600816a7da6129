"""A target's tokens, each from those before it (arXiv:1910.10683; tensorflow/mesh,
`transformer/transformer.py`).

Shapes: B batch, T target length, H width, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import T5Config
from bert_tf.layers.base import Tensor, register
from bert_tf.models.gpt.objective import TokenLosses, predict_tokens
from bert_tf.objectives.base import Batch, example_weights, ratio


@register
class SequenceLM(TokenLosses):
    """The cross-entropy of all target tokens; in training with a term that keeps the softmax's
    denominators near 1: `z_loss` times the squared log of the denominator.

    As in the original, the loss is divided by the number of all target positions, with padding: for
    short targets in long rows it is smaller than the mean over tokens, the measure `token_loss`. A
    target of 0 is padding. `decoder_loss_weights` is optional: 0 for targets without a loss.
    """

    reads = ("decoder_input_tokens", "decoder_target_tokens")
    measures = ("loss", "accuracy", "token_loss")
    likelihood = "token_loss"
    config_keys = ("z_loss",)

    def __init__(self, config: T5Config, z_loss: float = 1e-4, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.z_loss, self.built = z_loss, True

    @classmethod
    def fits(cls, config: Any) -> bool:
        return getattr(config, "model_type", "") == "t5"

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """Float32 [B, T, 2]: each target's loss, and whether its logit is the largest, from
        `sequence_output`, float [B, T, H], and the targets. `output_table`, float [V, H], if there
        is one, replaces the embeddings. No dropout seed means evaluation, which drops the
        denominator's term."""
        x = outputs["sequence_output"]
        labels = ops.maximum(batch["decoder_target_tokens"], 0)
        table = ops.cast(outputs.get("output_table", embedding_table), x.dtype)
        return predict_tokens(x * self.config.logit_scale, table,
                              ops.zeros((table.shape[0],), "float32"), labels,
                              0.0 if dropout_seed is None else self.z_loss)

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The targets and their weights, [B, T], and the number of all positions."""
        labels = batch["decoder_target_tokens"]
        weights = ops.cast(labels > 0, "float32")
        if "decoder_loss_weights" in batch:
            weights = weights * ops.cast(batch["decoder_loss_weights"], "float32")
        return labels, weights * example_weights(batch, labels[:, 0])[:, None], self.count(batch)

    def count(self, batch: Batch) -> Tensor:
        """The number of all positions."""
        labels = batch["decoder_target_tokens"]
        return ops.sum(ops.ones_like(labels, dtype="float32")
                       * example_weights(batch, labels[:, 0])[:, None])

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor,
                positions: Any = None) -> dict[str, tuple[Tensor, Tensor]]:
        """See `Objective`; `positions` is the loss's count."""
        return {"loss": (ops.sum(logits[..., 0] * weights), positions),
                "accuracy": ratio(logits[..., 1], weights),
                "token_loss": ratio(logits[..., 0], weights)}
