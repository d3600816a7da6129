"""The next token of a text that is read in rows (arXiv:1901.02860), with the perplexity of words.

Shapes: B batch, S sequence, H hidden, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import ops

from bert_tf.layers.base import Tensor, register
from bert_tf.metrics import perplexity
from bert_tf.models.gpt.objective import TokenLosses, predict_tokens
from bert_tf.models.xlnet.objective import PermutationLM
from bert_tf.objectives.base import Batch


@register
class StreamLM(TokenLosses, PermutationLM):
    """Predicts the next token, which the records hold, by the embedding table and a bias.

    Evaluation divides the sum of the losses by the number of words too: its exponential is the
    perplexity of words, which models with different vocabularies share.
    """

    reads = ("next_token_ids", "next_token_weights", "next_token_boundary")
    tallies = ("total_loss", "words")
    metrics_name = "language_model"

    @classmethod
    def fits(cls, config: Any) -> bool:
        return super().fits(config) and config.is_causal

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """`sequence_output`, float [B, S, H], and the embedding table [V, H] -> float32 [B, S, 2],
        see `predict_tokens`."""
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
