"""Objectives of a whole text or pair of texts: one class, several, a number, or a choice.

Shapes: B batch, S sequence, C choices, H hidden.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch, LabelHead, LinearHead, Objective, SmoothedHead, ratio
from bert_tf.objectives.divergences import DIVERGENCES, binary


@register
class Classification(LabelHead):
    """One of `num_labels` classes (google-research/bert, run_classifier.py): logits
    [B, num_labels], labels `label_ids`, weights `is_real_example`."""


@register
class MultiLabel(LabelHead):
    """Any number of `num_labels` labels: logits [B, num_labels], labels `label_ids`
    [B, num_labels], 0 or 1, weights `is_real_example`.

    A label's probability is the sigmoid of its logit. An example's loss is the mean of its labels'
    cross-entropies. Label smoothing treats each label as two classes, present and absent. A class
    weight is a factor of the loss of examples that have the label, as pos_weight of
    torch.nn.BCEWithLogitsLoss; the mean is not divided by it.
    """

    checks_range = False

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """float32 labels and weights [B, num_labels]."""
        return self.row_targets(batch)

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the weighted sum of all labels' cross-entropies, and the sum of the weights.
        Arguments are float32 [B, num_labels]."""
        labels = labels * (1 - self.label_smoothing) + self.label_smoothing / 2
        positive = labels * ops.softplus(-logits)                               # [B, num_labels]
        if self.class_weights:
            positive = positive * ops.convert_to_tensor(self.class_weights, "float32")
        losses = positive + (1 - labels) * ops.softplus(logits)
        return ratio(losses, weights)

    def weights_in_loss(self, labels: Tensor, weights: Tensor) -> Tensor:
        return weights

    def divergence(self, logits: Tensor, other: Tensor, weights: Tensor, form: str) -> Tensor:
        """See `Objective.divergence`; the classes of a label are no and yes, which are summed."""
        return Objective.divergence(self, binary(logits), binary(other), weights, form)

    def accuracy(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted number of labels decided right at probability 0.5, and the weights' sum."""
        return ratio(ops.cast(ops.equal(logits > 0, labels > 0.5), weights.dtype), weights)

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        """`logits` and `probabilities` [B, num_labels]; the probabilities do not add up to 1."""
        return {"logits": logits, "probabilities": ops.sigmoid(logits)}


@register
class Regression(LinearHead):
    """`num_labels` numbers, such as the similarity of STS-B: outputs [B, num_labels], float labels
    `label_ids` [B] or [B, num_labels], weights `is_real_example`.

    For training, `mean` is subtracted from labels, and they are divided by `scale`, above 0;
    answers are turned back. "within_0.5" is the share of answers less than 0.5 from their label.
    """

    config_keys = ("num_labels", "scale", "mean")
    measures = ("loss", "within_0.5")

    def __init__(self, config: Sizes, num_labels: int = 1, scale: float = 1.0, mean: float = 0.0,
                 **kwargs: Any):
        super().__init__(config, num_labels, **kwargs)
        self.num_labels, self.scale, self.mean = num_labels, scale, mean

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """float32 labels as they are learned, and weights [B, num_labels]."""
        labels, weights = self.row_targets(batch)
        return self.learned(labels), weights

    def learned(self, values: Tensor) -> Tensor:
        """Labels, or answers, as the numbers that the layer learns."""
        values = values - self.mean if self.mean else values
        return values if self.scale == 1 else values / self.scale

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the weighted sum of the squared errors, and the sum of the weights. Arguments are
        float32 [B, num_labels]."""
        return ratio(ops.square(logits - labels), weights)

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor) -> dict[str, Any]:
        is_near = ops.cast(ops.abs(logits - labels) * self.scale < 0.5, weights.dtype)
        return {"loss": self.loss(logits, labels, weights), "within_0.5": ratio(is_near, weights)}

    def divergence(self, logits: Tensor, other: Tensor, weights: Tensor, form: str) -> Tensor:
        """The weighted sum of the squared differences, whatever the form."""
        return ops.sum(DIVERGENCES["mse"](logits, other) * weights)

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        """`values` [B, num_labels]."""
        values = logits if self.scale == 1 else logits * self.scale
        return {"values": values + self.mean if self.mean else values}


@register
class MultipleChoice(SmoothedHead):
    """The fitting one of several continuations, as in SWAG (arXiv:1810.04805, section 4.4).

    A choice's score is the product of one vector with its pooled output. A batch's features are
    [B, C, S], its labels `label_ids` [B], its weights `is_real_example`. Each choice has a dropout
    mask of its own; in openai/finetune-transformer-lm, train.py, the choices have one together.
    """

    def __init__(self, config: Sizes, **kwargs: Any):
        super().__init__(config, 1, **kwargs)

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`pooled_output` [B * C, H] -> float32 logits [B, C]."""
        scores = super().call(outputs, batch, dropout_seed=dropout_seed)        # [B * C, 1]
        return ops.reshape(scores, (-1, ops.shape(batch["input_ids"])[1]))

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        """See `Objective`. A single candidate has probability 1, as in batches of other tasks."""
        if logits.shape[-1] == 1:
            return {"logits": logits, "probabilities": ops.ones_like(logits)}
        return super().answers(logits)
