"""The classifier of arXiv:1511.01432 on top of an LSTM (tensorflow/models,
research/adversarial_text, layers.py).

Shapes: B batch, S sequence, H hidden.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.seeds import dropout
from bert_tf.objectives.base import Batch, LabelHead


@register
class StepClassification(LabelHead):
    """Classifies a text with a hidden layer on the output at its last token.

    As in the original, two labels share one logit. The original predicts the second label above a
    logit of 0.5, here it is predicted above 0, a probability of a half.

    Args:
        hidden_size: of the hidden layer; 30 in the original, 0 for none.
        label_gain: whether, in training, all steps have the label, with weights that rise from 0 at
            the first to 1 at the last.
    """

    def __init__(self, config: Sizes, num_labels: int, hidden_size: int = 30,
                 label_gain: bool = False, dropout_rate: float = 0.0, **kwargs: Any):
        if hidden_size < 0:
            raise InputError(f"hidden_size is {hidden_size}; it must be at least 0.")
        self._hidden_size, self.label_gain = hidden_size, label_gain
        super().__init__(config, num_labels, dropout_rate=dropout_rate, **kwargs)

    @property
    def reads_tokens(self) -> bool:     # type: ignore[override]
        return self.label_gain

    def build(self, input_shape: Any = None) -> None:
        width, glorot = self._hidden_size, keras.initializers.GlorotUniform
        self.hidden = self.dense(width, "hidden", "relu", glorot()) if width else None
        if self.hidden:
            self.hidden.build((None, self.config.hidden_size))
        units = 1 if self.classifier.units == 2 else self.classifier.units
        self.classifier = self.dense(units, initializer=glorot())
        self.classifier.build((None, width or self.config.hidden_size))

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`pooled_output`, float [B, H] -> float32 logits [B, num_labels]. With `label_gain` the
        steps' logits, from `sequence_output`, follow: [B, 1 + S, num_labels]."""
        x = outputs["pooled_output"]
        if self.label_gain:
            x = ops.concatenate([x[:, None], outputs["sequence_output"]], axis=1)
        x = dropout(x, self.dropout_rate, dropout_seed)
        x = self.hidden(x) if self.hidden else x
        logits = ops.cast(self.classifier(x), "float32")
        if self.num_labels == 2:
            logits = ops.concatenate([ops.zeros_like(logits), logits], axis=-1)
        return logits

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights, [B]; with `label_gain` [B, 1 + S]: the example's, then its steps'."""
        labels, weights = super().targets(batch)
        if not self.label_gain:
            return labels, weights
        mask = ops.cast(batch["input_mask"], "float32")
        last = ops.maximum(ops.sum(mask, axis=1, keepdims=True) - 1, 1.0)       # [B, 1]
        gains = ops.arange(ops.shape(mask)[1], dtype="float32") / last * mask * weights[:, None]
        labels = ops.broadcast_to(labels[:, None], (ops.shape(gains)[0], ops.shape(gains)[1] + 1))
        return labels, ops.concatenate([weights[:, None], gains], axis=1)

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        if self.label_gain:
            logits, labels, weights = logits[:, 1:], labels[:, 1:], weights[:, 1:]
        return super().loss(logits, labels, weights)

    def count(self, batch: Batch) -> Tensor:
        labels, weights = self.targets(batch)
        if self.label_gain:
            labels, weights = labels[:, 1:], weights[:, 1:]
        return ops.sum(self.weights_in_loss(labels, weights))

    def accuracy(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        if self.label_gain:
            logits, labels, weights = logits[:, 0], labels[:, 0], weights[:, 0]
        return super().accuracy(logits, labels, weights)

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        return super().answers(logits[:, 0] if self.label_gain else logits)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "hidden_size": self._hidden_size,
                "label_gain": self.label_gain}
