"""The answer to a question as a part of a passage (google-research/bert, run_squad.py)."""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch, LinearHead, example_weights


@register
class AnswerSpan(LinearHead):
    """The first and the last token of the answer, each a choice among the S positions.

    Labels: `start_positions` and `end_positions`, integer [B]; both are [CLS]'s position where the
    passage holds no answer. The loss is the mean of the two ends' losses, as in the original.
    """

    source = "sequence_output"
    reads = ("start_positions", "end_positions")
    positional = ("start_logits", "end_logits")
    output_shape = (None, 2, None)

    def __init__(self, config: Sizes, dropout_rate: float = 0.0, **kwargs: Any):
        super().__init__(config, 2, dropout_rate, **kwargs)

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """float32 logits [B, 2, S]: start, end."""
        logits = super().call(outputs, batch, dropout_seed=dropout_seed)        # [B, S, 2]
        return ops.transpose(logits, (0, 2, 1))

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, 2]."""
        labels = ops.stack([ops.reshape(batch[name], (-1,)) for name in self.reads], axis=1)
        weights = ops.expand_dims(example_weights(batch, labels[:, 0]), axis=1)
        return labels, ops.broadcast_to(weights, ops.shape(labels))

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        """`start_logits` and `end_logits` [B, S]."""
        return {"start_logits": logits[:, 0], "end_logits": logits[:, 1]}
