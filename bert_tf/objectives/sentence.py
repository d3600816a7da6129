"""Classification of a sentence or a pair of sentences (arXiv:1810.04805, section 3.1)."""

from keras import ops

from bert_tf.layers.base import register
from bert_tf.objectives.base import Objective


@register
class SentencePrediction(Objective):
    """A linear classifier on the pooled output (google-research/bert, `get_next_sentence_output`).

    With two labels it predicts the next sentence: 0 where the second segment follows the first in
    the text, 1 where it was drawn at random.
    """

    def __init__(self, config, num_labels=2, name="next_sentence", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.num_labels = num_labels
        self.classifier = self.dense(num_labels)
        self.build()

    def build(self, input_shape=None):
        self.classifier.build((None, self.config.hidden_size))

    def call(self, outputs, batch, embedding_table=None):
        """From `pooled_output`, float [B, H], to float32 logits [B, num_labels]."""
        return ops.cast(self.classifier(outputs["pooled_output"]), "float32")

    def targets(self, batch):
        """Labels [B] from `next_sentence_labels` [B, 1]; weights [B] from `next_sentence_weights`,
        all 1 if absent.
        """
        labels = ops.squeeze(batch["next_sentence_labels"], axis=-1)
        if "next_sentence_weights" in batch:
            return labels, batch["next_sentence_weights"]
        return labels, ops.ones_like(labels, dtype="float32")

    def get_config(self):
        return {**super().get_config(), "num_labels": self.num_labels}
