"""The next token for recurrent networks, whose records hold it with each token.

Shapes: B batch, S sequence, H hidden, P ELMo's projection, V vocabulary.
"""

import math
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.seeds import split_seed
from bert_tf.models.gpt.objective import TokenLosses, predict_tokens
from bert_tf.models.recurrent.sampled_softmax import log_uniform, sampled_losses
from bert_tf.objectives.base import Batch, example_weights


class StepLM(TokenLosses):
    """Predicts a token at each step with `output_weights` [V, width] and `output_bias` [V].

    In training the softmax is over `n_negative_samples_batch` tokens drawn for each batch, if the
    vocabulary has more; 0: over all. In evaluation it is over all.
    """

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
        """Float32 [B, S, 2]: the labels' cross-entropies, and whether their logits are the largest.

        Args:
            x: float [B, S, width].
            labels: integer [B, S].
            shares: see `shares`.
            seed: integer [2], of candidates; None: all tokens are candidates.
        """
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
    allenai/bilm-tf, training.py).

    The loss is the mean of both directions. Training minimises a sequence's loss, S times the mean
    over its steps, as in the original.
    """

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
        """`forward_output` and `backward_output`, float [B, S, P] -> float32 [2, B, S, 2], see
        `predict`; forward first."""
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

    Candidates are drawn as often as their words occur in the text.
    """

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
        """`sequence_output`, float [B, S, H], and `token_counts`, float [V] -> float32 [B, S, 2],
        see `predict`."""
        return self.predict(outputs["sequence_output"], batch["next_token_ids"],
                            self.shares(outputs), dropout_seed)

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The next tokens and their weights, [B, S]."""
        return batch["next_token_ids"], ops.cast(batch["next_token_weights"], "float32")
