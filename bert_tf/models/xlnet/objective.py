"""A sequence's tokens in a random order (arXiv:1906.08237; zihangdai/xlnet, modeling.py, lm_loss),
and the next token of a text that is read in rows (arXiv:1901.02860).

Shapes: B batch, S sequence, P predictions, H hidden, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import ops

from bert_tf.config import XLNetConfig
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import vocabulary_logits
from bert_tf.metrics import perplexity
from bert_tf.models.gpt.objective import TokenLosses, predict_tokens
from bert_tf.objectives.base import Batch, Objective


@register
class PermutationLM(Objective):
    """Predicts tokens from the query stream, by the embedding table and a bias alone."""

    reads = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    likelihood = "loss"
    in_order = True

    def __init__(self, config: XLNetConfig, name: str = "permutation_lm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        self.output_bias = self.add_weight((self.config.vocab_size,), "zeros", name="output_bias")

    @classmethod
    def fits(cls, config: Any) -> bool:
        return getattr(config, "model_type", "") == "xlnet"

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        return None, None, self.config.vocab_size

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """`query_output`, float [B, P, H], and the table [V, H] -> float32 logits [B, P, V]."""
        logits = vocabulary_logits(outputs["query_output"], embedding_table)
        return logits + ops.cast(self.output_bias, "float32")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, P]; an unused slot's weight is 0."""
        return batch["masked_lm_ids"], ops.cast(batch["masked_lm_weights"], "float32")


@register
class StreamLM(TokenLosses, PermutationLM):
    """Predicts the next token, which the records hold, by the embedding table and a bias.
    Evaluation divides the sum of the losses by the number of words too: its exponential is the
    perplexity of words, which models with different vocabularies share."""

    reads = ("next_token_ids", "next_token_weights", "next_token_boundary")
    tallies = ("total_loss", "words")
    metrics_name = "language_model"

    @classmethod
    def fits(cls, config: Any) -> bool:
        return super().fits(config) and config.is_causal

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """`sequence_output`, float [B, S, H], and the table [V, H] -> `predict_tokens`."""
        x = outputs["sequence_output"]
        return predict_tokens(x, ops.cast(embedding_table, x.dtype),
                              ops.cast(self.output_bias, "float32"), batch["next_token_ids"])

    def targets(self, batch: Batch) -> tuple[Tensor, ...]:
        """The next tokens, their weights, and 1 where they begin words, [B, S]."""
        labels, weights, begins = (batch[name] for name in self.reads)
        return labels, ops.cast(weights, "float32"), ops.cast(begins, "float32")

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor,
                begins: Tensor | None = None) -> dict[str, Any]:
        measures = super().measure(logits, labels, weights)
        return {**measures, "total_loss": measures["loss"][0], "words": ops.sum(begins * weights)}

    def summarize(self, tallies: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Returns `word_perplexity`, where there is a word."""
        words = float(tallies["words"])
        if not words:
            return {}
        return {"word_perplexity": perplexity(float(tallies["total_loss"]) / words)}
