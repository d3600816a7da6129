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
        label_smoothing: e of a target that is e / K for each of the K classes, and 1 - e more for
            the label (arXiv:1512.00567, section 7); 0 unless a subclass takes it.
        class_weights: tuple of a factor for each class's addend of the cross-entropy, or None;
            None unless a subclass takes it. As with torch.nn.CrossEntropyLoss(weight=...), a mean
            is over the sum of the labels' factors. The accuracy knows nothing of them.
    """

    label_smoothing, class_weights = 0.0, None

    def __init__(self, config, loss_weight=1.0, **kwargs):
        super().__init__(config, **kwargs)
        self.loss_weight = loss_weight

    def loss(self, logits, labels, weights):
        """The weighted sum of the cross-entropies, and the sum of `weights_in_loss` (float32
        scalars).
        """
        losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        counted = self.weights_in_loss(labels, weights)
        total = ops.sum(losses * counted)
        if self.label_smoothing:
            of_all = -ops.log_softmax(logits)
            if self.class_weights:
                of_all = of_all * ops.convert_to_tensor(self.class_weights, "float32")
            of_all = ops.sum(ops.mean(of_all, axis=-1) * weights)
            total = (1 - self.label_smoothing) * total + self.label_smoothing * of_all
        return total, ops.sum(counted)

    def weights_in_loss(self, labels, weights):
        """What each label counts in the mean loss: its weight times the weight of its class."""
        if not self.class_weights:
            return weights
        return weights * ops.take(ops.convert_to_tensor(self.class_weights, "float32"), labels)

    def accuracy(self, logits, labels, weights):
        """The weighted number of correct predictions, and the sum of the weights."""
        correct = ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32"))
        return ops.sum(ops.cast(correct, weights.dtype) * weights), ops.sum(weights)

    def answers(self, logits):
        """What the logits say to those who use the model: a dict of named float32 tensors."""
        return {"logits": logits, "probabilities": ops.softmax(logits)}

    def get_config(self):
        return {**super().get_config(), "loss_weight": self.loss_weight}
