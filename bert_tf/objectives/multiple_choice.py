"""Which of several continuations fits, as in SWAG (arXiv:1810.04805, section 4.4)."""

from keras import ops

from bert_tf.layers.base import register
from bert_tf.objectives.linear import SmoothedHead


@register
class MultipleChoice(SmoothedHead):
    """One vector, whose product with a choice's pooled output is the choice's score.

    The features of a batch are [B, C, S], C choices for each example; the labels are `label_ids`
    [B], the weights `is_real_example`.
    """

    def __init__(self, config, name="multiple_choice", dropout_rate=0.1, **kwargs):
        super().__init__(config, 1, dropout_rate=dropout_rate, name=name, **kwargs)

    def call(self, outputs, batch, embedding_table=None, dropout_seed=None):
        """From `pooled_output` [B * C, H] to float32 logits [B, C]."""
        scores = super().call(outputs, batch, dropout_seed=dropout_seed)
        return ops.reshape(scores, (-1, ops.shape(batch["input_ids"])[1]))
