"""The next token for recurrent networks, whose records hold it with each token, also among a few
drawn candidates (arXiv:1412.2007); and the classifier of arXiv:1511.01432.

Shapes: B batch, S sequence, T tokens, H hidden, E width of the vectors that predict, P ELMo's
projection, V vocabulary, K candidates.
"""

import math
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import dropout, split_seed, uniform
from bert_tf.models.gpt.objective import TokenLosses, predict_tokens
from bert_tf.objectives.base import Batch, LabelHead, example_weights

_TINY = 1e-30
_NO_LOGIT = -1e9


def log_uniform(size: int) -> np.ndarray:
    """Shares by rank, float32 [V]: TensorFlow's `log_uniform_candidate_sampler`."""
    ranks = np.arange(size, dtype=np.float64)
    return ((np.log(ranks + 2) - np.log(ranks + 1)) / np.log(size + 1)).astype(np.float32)


def draw_candidates(shares: Tensor, count: int, seed: Tensor) -> tuple[Tensor, Tensor]:
    """Draws `count` (K) distinct candidates, distributed as drawing by `shares`, float32 [V], until
    there are so many; the seed, integer [2], determines them. Returns them, int32 [K], and the log
    of each token's expected number among candidates, float32 [V].

    Each token first appears at an exponential time whose rate is its share; the first `count` are
    drawn. TensorFlow counts the draws that this took. The time is the mean of that count, and is
    used in its place.
    """
    times = -ops.log(uniform(ops.shape(shares), seed) + _TINY) / ops.maximum(shares, _TINY)
    nearest, candidates = ops.top_k(-times, count)
    end = -ops.min(nearest)
    return ops.cast(candidates, "int32"), ops.log(ops.maximum(-ops.expm1(-shares * end), _TINY))


def sampled_losses(x: Tensor, table: Tensor, bias: Tensor, labels: Tensor, shares: Tensor,
                   count: int, seed: Tensor) -> Tensor:
    """Float32 [T, 2]: each label's cross-entropy among itself and the candidates, and whether its
    logit is the largest, for x, float [T, E], a table, float [V, E], a bias, float32 [V], and
    labels, integer [T]. For the other arguments see `draw_candidates`."""
    labels = ops.cast(labels, "int32")
    candidates, expected = draw_candidates(shares, count, seed)
    bias = bias - expected
    true = ops.sum(ops.cast(x * ops.take(table, labels, axis=0), "float32"), axis=-1)
    true = true + ops.take(bias, labels)                                # [T]
    logits = ops.matmul(x, ops.transpose(ops.take(table, candidates, axis=0)))
    logits = ops.cast(logits, "float32") + ops.take(bias, candidates)   # [T, K]
    is_hit = ops.equal(labels[:, None], candidates[None])
    logits = ops.where(is_hit, _NO_LOGIT, logits)
    largest = ops.maximum(ops.max(logits, axis=-1), true)
    total = ops.sum(ops.exp(logits - largest[:, None]), axis=-1) + ops.exp(true - largest)
    is_best = ops.cast(true >= largest, "float32")
    return ops.stack([ops.log(total) + largest - true, is_best], axis=-1)


class StepLM(TokenLosses):
    """Predicts a token at each step with `output_weights` [V, width] and `output_bias` [V]. In
    training the softmax is over `n_negative_samples_batch` tokens drawn for each batch, if the
    vocabulary has more; 0: over all. In evaluation it is over all."""

    in_order = True
    config_keys = ("n_negative_samples_batch",)
    metrics_name = "language_model"

    def __init__(self, config: Sizes, n_negative_samples_batch: int = 8192, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.n_negative_samples_batch = n_negative_samples_batch
        self.build()

    @property
    def _width(self):
        return self.config.hidden_size

    def _first_weights(self):
        return keras.initializers.GlorotUniform(), keras.initializers.Zeros()

    def build(self, input_shape: Any = None) -> None:
        weights, bias = self._first_weights()
        size = self.config.vocab_size
        self.output_weights = self.add_weight((size, self._width), weights, name="output_weights")
        self.output_bias = self.add_weight((size,), bias, name="output_bias")

    def shares(self, outputs: Mapping[str, Tensor]) -> Tensor:
        """float32 [V]: the probability of drawing each token."""
        return ops.convert_to_tensor(log_uniform(self.config.vocab_size))

    def predict(self, x: Tensor, labels: Tensor, shares: Tensor, seed: Tensor | None) -> Tensor:
        """Float32 [B, S, 2]: the labels' cross-entropies, and whether their logits are the largest,
        from x, float [B, S, width], and labels, integer [B, S]. The seed, integer [2], is of
        candidates; None: all tokens are candidates."""
        table = ops.cast(self.output_weights, x.dtype)
        bias = ops.cast(self.output_bias, "float32")
        count = self.n_negative_samples_batch
        if seed is None or not 0 < count < self.config.vocab_size:
            return predict_tokens(x, table, bias, labels)
        measured = sampled_losses(ops.reshape(x, (-1, x.shape[-1])), table, bias,
                                  ops.reshape(labels, (-1,)), shares, count, seed)
        return ops.reshape(measured, (*ops.shape(labels), 2))


@register
class BidirectionalLM(StepLM):
    """ELMo's two language models, which share their softmax (arXiv:1802.05365, section 3.1;
    allenai/bilm-tf, training.py). The loss is the mean of both directions. Training minimises a
    sequence's loss, S times the mean over its steps, as in the original."""

    reads = ("next_token_ids", "reverse_next_token_ids")
    measures = ("loss", "accuracy", "forward_loss", "backward_loss")
    output_shape = (2, None, None, 2)

    @property
    def _width(self):
        return self.config.projection_dim

    def _first_weights(self):
        return (keras.initializers.RandomNormal(stddev=1 / math.sqrt(self._width)),
                keras.initializers.Zeros())

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`forward_output` and `backward_output`, float [B, S, P] -> float32 [2, B, S, 2]:
        `predict`."""
        shares, seeds = self.shares(outputs), split_seed(dropout_seed, 2)
        return ops.stack([
            self.predict(outputs[f"{way}_output"], batch[name], shares, seed)
            for way, name, seed in zip(("forward", "backward"), self.reads, seeds)])

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The next tokens and their weights, [2, B, S]; a step counts half in each direction."""
        labels = ops.stack([batch[name] for name in self.reads])
        weights = ops.full(ops.shape(labels), 0.5, dtype="float32")
        return labels, weights * example_weights(batch, labels[0, :, 0])[:, None]

    def count(self, batch: Batch) -> Tensor:
        labels, weights = self.targets(batch)
        return ops.sum(weights) / ops.shape(labels)[-1]

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor
                ) -> dict[str, tuple[Tensor, Tensor]]:
        measures = super().measure(logits, labels, weights)
        for i, way in enumerate(("forward", "backward")):
            measures[f"{way}_loss"] = self.loss(logits[i], labels[i], weights[i])
        return measures


@register
class RecurrentLM(StepLM):
    """The language model or the autoencoder of arXiv:1511.01432; the records decide which.
    Candidates are drawn as often as their words occur in the text."""

    reads = ("next_token_ids", "next_token_weights")

    def __init__(self, config: Sizes, n_negative_samples_batch: int = 1024, **kwargs: Any):
        super().__init__(config, n_negative_samples_batch, **kwargs)

    def _first_weights(self):
        # The original draws the bias too, as of a matrix of one column.
        limit = math.sqrt(6 / (2 * self.config.vocab_size))
        return super()._first_weights()[0], keras.initializers.RandomUniform(-limit, limit)

    def shares(self, outputs: Mapping[str, Tensor]) -> Tensor:
        counts = ops.maximum(ops.cast(outputs["token_counts"], "float32"), 1.0)
        return counts / ops.sum(counts)

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`sequence_output`, float [B, S, H], and `token_counts`, float [V] -> `predict`."""
        return self.predict(outputs["sequence_output"], batch["next_token_ids"],
                            self.shares(outputs), dropout_seed)

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The next tokens and their weights, [B, S]."""
        return batch["next_token_ids"], ops.cast(batch["next_token_weights"], "float32")


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

    config_keys = ("hidden_size", "label_gain")

    def __init__(self, config: Sizes, num_labels: int, hidden_size: int = 30,
                 label_gain: bool = False, dropout_rate: float = 0.0, **kwargs: Any):
        self.hidden_size, self.label_gain = hidden_size, label_gain
        super().__init__(config, num_labels, dropout_rate=dropout_rate, **kwargs)

    @property
    def reads_tokens(self) -> bool:     # type: ignore[override]
        return self.label_gain

    def build(self, input_shape: Any = None) -> None:
        width, glorot = self.hidden_size, keras.initializers.GlorotUniform
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
        if self.hidden:
            x = self.hidden(x)
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
        if self.label_gain:
            logits = logits[:, 0]
        return super().answers(logits)
