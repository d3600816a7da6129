"""What is said of a sentence or a pair of sentences as a whole: a class, several, or a number."""

from keras import ops

from bert_tf.layers.base import register
from bert_tf.objectives.linear import LabelHead, LinearHead


@register
class Classification(LabelHead):
    """One of `num_labels` classes (google-research/bert, run_classifier.py): logits
    [B, num_labels], labels `label_ids`, weights `is_real_example`.
    """

    def __init__(self, config, num_labels, name="classification", **kwargs):
        super().__init__(config, num_labels, name=name, **kwargs)


@register
class SentencePrediction(Classification):
    """The sentence objective of pre-training (google-research/bert, `get_next_sentence_output`).

    With two labels it predicts the next sentence: 0 where the second segment follows the first in
    the text, 1 where it was drawn at random.
    """

    label_feature = "next_sentence_labels"

    def __init__(self, config, num_labels=2, name="next_sentence", dropout_rate=0.0, **kwargs):
        super().__init__(config, num_labels, name, dropout_rate=dropout_rate, **kwargs)


@register
class MultiLabel(LabelHead):
    """Any number of `num_labels` labels: logits [B, num_labels], labels `label_ids`
    [B, num_labels] of 0 and 1, weights `is_real_example`.

    Each label is a decision of its own, with the sigmoid of its logit for its probability. The
    loss of an example is the mean of its labels' cross-entropies. Label smoothing is that of two
    classes, has the label or not. Class weights are factors of the first one's addend, as the
    pos_weight of torch.nn.BCEWithLogitsLoss, and are not divided by.
    """

    def __init__(self, config, num_labels, name="multi_label", **kwargs):
        super().__init__(config, num_labels, name=name, **kwargs)

    def targets(self, batch):
        """float32 labels and weights [B, num_labels]."""
        return self.row_targets(batch)

    def loss(self, logits, labels, weights):
        """The weighted sum of the decisions' cross-entropies, and the sum of the weights."""
        labels = labels * (1 - self.label_smoothing) + self.label_smoothing / 2
        positive = labels * ops.softplus(-logits)
        if self.class_weights:
            positive = positive * ops.convert_to_tensor(self.class_weights, "float32")
        losses = positive + (1 - labels) * ops.softplus(logits)
        return ops.sum(losses * weights), ops.sum(weights)

    def weights_in_loss(self, labels, weights):
        """`weights` alone."""
        return weights

    def accuracy(self, logits, labels, weights):
        """The weighted number of right decisions at a probability of 0.5, and the sum of the
        weights.
        """
        correct = ops.cast(ops.equal(logits > 0, labels > 0.5), weights.dtype)
        return ops.sum(correct * weights), ops.sum(weights)

    def answers(self, logits):
        """`logits` and `probabilities` [B, num_labels]; these do not add up to 1."""
        return {"logits": logits, "probabilities": ops.sigmoid(logits)}


@register
class Regression(LinearHead):
    """`num_labels` numbers, such as the similarity of STS-B: outputs [B, num_labels], float labels
    `label_ids` [B] or [B, num_labels], weights `is_real_example`.
    """

    def __init__(self, config, num_labels=1, name="regression", **kwargs):
        super().__init__(config, num_labels, name=name, **kwargs)
        self.num_labels = num_labels

    def targets(self, batch):
        """float32 labels and weights [B, num_labels]."""
        return self.row_targets(batch)

    def loss(self, logits, labels, weights):
        """The weighted sum of the squared errors, and the sum of the weights."""
        return ops.sum(ops.square(logits - labels) * weights), ops.sum(weights)

    def accuracy(self, logits, labels, weights):
        """The weighted number of outputs less than half a unit off, and the sum of the weights."""
        correct = ops.cast(ops.abs(logits - labels) < 0.5, weights.dtype)
        return ops.sum(correct * weights), ops.sum(weights)

    def answers(self, logits):
        """`values` [B, num_labels]."""
        return {"values": logits}

    def get_config(self):
        return {**super().get_config(), "num_labels": self.num_labels}
