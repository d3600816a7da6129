"""The heads of fine-tuning: dropout and one dense layer (arXiv:1810.04805, section 4)."""

import math

from keras import ops

from bert_tf.errors import InputError
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
        reader: a layer of a subclass before that, or None.
    """

    source = "pooled_output"
    label_feature, weight_feature = "label_ids", "is_real_example"

    def __init__(self, config, units, dropout_rate=0.1, reader=None, **kwargs):
        super().__init__(config, **kwargs)
        self.dropout_rate, self.reader = dropout_rate, reader
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

    def row_targets(self, batch):
        """float32 labels and weights [B, units], where an example has a label for each unit."""
        labels = ops.cast(batch[self.label_feature], "float32")
        labels = ops.reshape(labels, (-1, self.classifier.units))
        weights = ops.expand_dims(self.example_weights(batch, labels[:, 0]), axis=1)
        return labels, ops.broadcast_to(weights, ops.shape(labels))

    def example_weights(self, batch, like):
        """float32, of the shape of `like` [B]."""
        if self.weight_feature in batch:
            return ops.cast(ops.reshape(batch[self.weight_feature], (-1,)), "float32")
        return ops.ones_like(like, dtype="float32")

    def get_config(self):
        return {**super().get_config(), "dropout_rate": self.dropout_rate}


class SmoothedHead(LinearHead):
    """A head whose labels may be smoothed.

    Raises:
        InputError: `label_smoothing` isn't from 0 to below 1.
    """

    def __init__(self, config, units, label_smoothing=0.0, **kwargs):
        if not 0 <= label_smoothing < 1:
            raise InputError(f"label_smoothing is {label_smoothing}; it must be from 0 to below 1.")
        super().__init__(config, units, **kwargs)
        self.label_smoothing = label_smoothing

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


class LabelHead(SmoothedHead):
    """A head with an output for each of the task's labels, which may be weighted.

    Raises:
        InputError: `class_weights` are not `num_labels` numbers of 0 or more, or they are all 0.
    """

    def __init__(self, config, num_labels, class_weights=None, **kwargs):
        if class_weights is not None:
            class_weights = tuple(map(float, class_weights))
            if (len(class_weights) != num_labels or not any(class_weights)
                    or not all(0 <= weight < math.inf for weight in class_weights)):
                raise InputError(
                    f"class_weights are {', '.join(map(str, class_weights))}; they must be "
                    f"{num_labels} numbers of 0 or more, one for each label, and not all 0.")
        super().__init__(config, num_labels, **kwargs)
        self.num_labels, self.class_weights = num_labels, class_weights

    def get_config(self):
        return {**super().get_config(), "num_labels": self.num_labels,
                "class_weights": self.class_weights and list(self.class_weights)}
