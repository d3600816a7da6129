"""SpanBERT's span boundary objective (arXiv:1907.10529, section 3.2; its
fairseq/models/pair_bert.py, BertPairTargetPredictionHead).

Shapes: B batch, S sequence, P predictions, H hidden, E width of the embeddings, V vocabulary, R
places of a span.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.layers import LayerNorm, gather
from bert_tf.bert.objective import used
from bert_tf.config import EncoderConfig
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import ACTIVATIONS, vocabulary_logits
from bert_tf.objectives.base import Batch, Objective

# The width of a place. The original ignores its --pair-positional-embedding-size.
PLACE_WIDTH = 200


@register
class SpanBoundary(Objective):
    """Predicts a masked span's tokens from the vectors at its boundary and their places, up to
    `max_targets` (R) tokens a span, by the word embedding table. The mean loss is taken over one
    prediction more than there are."""

    reads = ("masked_lm_ids", "span_left", "span_right", "span_offset", "span_weights")
    extra_count = 1.0
    config_keys = ("max_targets",)

    def __init__(self, config: EncoderConfig, max_targets: int = 15, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.max_targets = max_targets
        activation = ACTIVATIONS[config.hidden_act]
        self.dense_0 = self.dense(config.hidden_size, "dense_0", activation=activation,
                                  inputs=2 * config.hidden_size + PLACE_WIDTH)
        self.norm_0 = LayerNorm(config, name="LayerNorm_0", dtype=self.dtype_policy)
        self.dense_1 = self.dense(config.embedding_width, "dense_1", activation=activation)
        self.norm_1 = LayerNorm(config, config.embedding_width, name="LayerNorm_1",
                                dtype=self.dtype_policy)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        self.position_embeddings = self.add_weight((self.max_targets, PLACE_WIDTH),
                                                   name="position_embeddings")
        super().build()
        self.output_bias = self.add_weight((self.config.vocab_size,), "zeros", name="output_bias")

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        return None, None, self.config.vocab_size

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """Float32 logits [B, P, V], or [M, V] in a batch with `predictions`, from
        `sequence_output`, float [B, S, H], the table [V, E], and integers [B, P]: `span_left` and
        `span_right`, the positions of the boundary, and `span_offset`, the place in the span."""
        vectors = outputs["sequence_output"]
        places = ops.take(self.position_embeddings, ops.cast(batch["span_offset"], "int32"), axis=0)
        x = ops.concatenate([gather(vectors, batch["span_left"]),
                             gather(vectors, batch["span_right"]),
                             ops.cast(places, vectors.dtype)], axis=-1)     # [B, P, 2H + 200]
        x = self.norm_0(self.dense_0(used(x, batch)))                       # [B, P, H]
        x = self.norm_1(self.dense_1(x))                                    # [B, P, E]
        return vocabulary_logits(x, embedding_table) + ops.cast(self.output_bias, "float32")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights of the logits; a token not predicted from a boundary has weight 0."""
        return (used(batch["masked_lm_ids"], batch),
                used(ops.cast(batch["span_weights"], "float32"), batch))

    def count(self, batch: Batch) -> Tensor:
        return ops.sum(ops.cast(batch["span_weights"], "float32"))
