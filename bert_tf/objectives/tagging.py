"""A label for each word, such as the names in CoNLL-2003 (arXiv:1810.04805, section 5.3)."""

from keras import ops

from bert_tf.layers.base import register
from bert_tf.objectives.linear import LabelHead


@register
class Tagging(LabelHead):
    """Classifies every token: logits [B, S, num_labels], labels `label_ids` [B, S].

    A word's label stands at its first sub-word, where `label_weights` [B, S] is 1; elsewhere it is
    0, and so is the loss.
    """

    source = "sequence_output"

    def __init__(self, config, num_labels, name="tagging", **kwargs):
        super().__init__(config, num_labels, name=name, **kwargs)

    def targets(self, batch):
        """Labels and weights [B, S]."""
        return batch["label_ids"], ops.cast(batch["label_weights"], "float32")
