"""The heads of fine-tuning: dropout and one dense layer (arXiv:1810.04805, section 4)."""

from keras import ops

from bert_tf.layers.dropout import dropout
from bert_tf.objectives.base import Objective


class LinearHead(Objective):
    """A dense layer of `units` on one output of the network.

    Shapes: B batch, S sequence, H hidden. A subclass says which output it reads; its labels are a
    number for each example unless it says otherwise.

    Attributes:
        source: the output: `pooled_output` [B, H] or `sequence_output` [B, S, H].
        label_feature: the feature that holds the labels, integer [B] or [B, 1].
        weight_feature: the feature that holds the examples' weights; all are 1 if it is absent.
        dropout_rate: of the dropout before the layer.
    """

    source = "pooled_output"
    label_feature, weight_feature = "label_ids", "is_real_example"

    def __init__(self, config, units, dropout_rate=0.1, **kwargs):
        super().__init__(config, **kwargs)
        self.dropout_rate = dropout_rate
        self.classifier = self.dense(units)
        self.build()

    def build(self, input_shape=None):
        self.classifier.build((None, self.config.hidden_size))

    def call(self, outputs, batch, embedding_table=None, dropout_seed=None):
        """From `outputs[self.source]`, float [..., H], to float32 logits [..., units]."""
        x = dropout(outputs[self.source], self.dropout_rate, dropout_seed)
        return ops.cast(self.classifier(x), "float32")

    def targets(self, batch):
        """Labels and weights [B]."""
        labels = ops.reshape(batch[self.label_feature], (-1,))
        return labels, self.example_weights(batch, labels)

    def example_weights(self, batch, like):
        """float32, of the shape of `like` [B]."""
        if self.weight_feature in batch:
            return ops.cast(ops.reshape(batch[self.weight_feature], (-1,)), "float32")
        return ops.ones_like(like, dtype="float32")

    def get_config(self):
        return {**super().get_config(), "dropout_rate": self.dropout_rate}


class LabelHead(LinearHead):
    """A head with as many outputs as the task has labels."""

    def __init__(self, config, num_labels, **kwargs):
        super().__init__(config, num_labels, **kwargs)
        self.num_labels = num_labels

    def row_targets(self, batch):
        """float32 labels and weights [B, num_labels], where an example has so many labels."""
        labels = ops.reshape(ops.cast(batch[self.label_feature], "float32"), (-1, self.num_labels))
        weights = ops.expand_dims(self.example_weights(batch, labels[:, 0]), axis=1)
        return labels, ops.broadcast_to(weights, ops.shape(labels))

    def get_config(self):
        return {**super().get_config(), "num_labels": self.num_labels}
