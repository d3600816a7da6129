"""Where in a passage the answer to a question stands (google-research/bert, run_squad.py)."""

from keras import ops

from bert_tf.layers.base import register
from bert_tf.objectives.linear import LinearHead


@register
class AnswerSpan(LinearHead):
    """The first and the last token of the answer, each a choice among the S positions.

    The labels are `start_positions` and `end_positions`, integer [B]; both are that of [CLS] where
    the passage holds no answer. The mean loss is the mean of the two ends', as in the original.
    """

    source = "sequence_output"

    def __init__(self, config, name="answer_span", dropout_rate=0.0, **kwargs):
        super().__init__(config, 2, dropout_rate, name=name, **kwargs)

    def call(self, outputs, batch, embedding_table=None, dropout_seed=None):
        """float32 logits [B, 2, S]: of the start and of the end."""
        logits = super().call(outputs, batch, dropout_seed=dropout_seed)
        return ops.transpose(logits, (0, 2, 1))

    def targets(self, batch):
        """Labels and weights [B, 2]."""
        labels = ops.stack([ops.reshape(batch[name], (-1,))
                            for name in ("start_positions", "end_positions")], axis=1)
        weights = ops.expand_dims(self.example_weights(batch, labels[:, 0]), axis=1)
        return labels, ops.broadcast_to(weights, ops.shape(labels))

    def answers(self, logits):
        """`start_logits` and `end_logits` [B, S]."""
        return {"start_logits": logits[:, 0], "end_logits": logits[:, 1]}
