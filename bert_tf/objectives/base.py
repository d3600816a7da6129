"""What the Learner asks of an objective."""

import keras
from keras import ops

from bert_tf.layers.base import FromConfig


class Objective(FromConfig, keras.layers.Layer):
    """A head on a network's outputs, with its labels and its loss.

    An objective defines `call(outputs, batch, embedding_table, dropout_seed)`, which returns
    float32 logits [..., classes] from the network's outputs and the features of a batch, with
    dropout if the seed, integer [2], isn't None; and `targets(batch)`, which returns the integer
    labels [...] and float32 weights [...] of those logits. Losses are sums with their counts, so
    that a mean over several devices can be taken over all of them.

    Attributes:
        name: the prefix of its metrics.
        loss_weight: the factor of its mean loss in the total.
    """

    def __init__(self, config, loss_weight=1.0, **kwargs):
        super().__init__(config, **kwargs)
        self.loss_weight = loss_weight

    def loss(self, logits, labels, weights):
        """The weighted sum of the cross-entropies, and the sum of the weights (float32 scalars)."""
        losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        return ops.sum(losses * weights), ops.sum(weights)

    def accuracy(self, logits, labels, weights):
        """The weighted number of correct predictions, and the sum of the weights."""
        correct = ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32"))
        return ops.sum(ops.cast(correct, weights.dtype) * weights), ops.sum(weights)

    def answers(self, logits):
        """What the logits say to those who use the model: a dict of named float32 tensors."""
        return {"logits": logits, "probabilities": ops.softmax(logits)}

    def get_config(self):
        return {**super().get_config(), "loss_weight": self.loss_weight}
