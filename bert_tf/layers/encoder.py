"""The layers of BERT's relatives, and layers with cut or rounded parts.

Shapes: B batch, S sequence, H hidden, E width of the embeddings, N heads.
"""

from typing import Any

from keras import ops

from bert_tf.bert.layers import (
    Embeddings,
    Residual,
    SelfAttention,
    TransformerLayer,
    segment_vectors,
)
from bert_tf.config import EncoderConfig
from bert_tf.layers.base import Tensor
from bert_tf.layers.functions import dropout
from bert_tf.layers.quantisation import RoundsTables


class EncoderEmbeddings(RoundsTables, Embeddings):
    """`Embeddings` with embeddings of tasks, if the configuration has any (PaddlePaddle/ERNIE,
    model/ernie.py), and perhaps without embeddings of segments, or of positions; without these the
    embeddings do not limit S."""

    def __init__(self, config: EncoderConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.make_ranges()

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        self.word_embeddings = self.add_table("word_embeddings", config.vocab_size)
        self.segment_embeddings: Any = None
        if config.segment_types:
            self.segment_embeddings = self.add_table("token_type_embeddings", config.segment_types,
                                                     None if config.has_segments else "zeros")
        self.position_embeddings: Any = None
        if config.position_rows:
            self.position_embeddings = self.add_table("position_embeddings", config.position_rows)
        self.task_embeddings = None
        if config.task_types:
            self.task_embeddings = self.add_table("task_type_embeddings", config.task_types)
        super(Embeddings, self).build()     # the other parts

    def call(self, input_ids: Tensor, segment_ids: Tensor | None = None,
             dropout_seed: Tensor | None = None, positions: Tensor | None = None,
             words: Tensor | None = None, task_ids: Tensor | None = None,
             training: bool = False) -> Tensor:
        """See `Embeddings.call`.

        Args:
            task_ids: integer [B, S] or [B, 1]; None: all zero.
            training: whether this is a training step, which a quantisation may not yet affect.
        """
        x, places = self.rows(input_ids, positions, words)
        x, places = self.round_rows(x, places, training)
        if self.segment_embeddings is not None:
            x = x + self._segments(segment_ids, x.dtype)
        if places is not None:
            x = x + places
        if self.task_embeddings is not None:
            x = x + (self.task_embeddings[0] if task_ids is None
                     else ops.take(self.task_embeddings, task_ids, axis=0))
        return self.normalise(x, dropout_seed)

    def rows(self, input_ids: Tensor, positions: Tensor | None, words: Tensor | None
             ) -> tuple[Tensor, Any]:
        if self.config.adds_positions:
            return super().rows(input_ids, positions, words)
        return self.look_up(input_ids) if words is None else words, None

    def _segments(self, segment_ids, dtype):
        if not self.config.has_segments:
            return ops.stop_gradient(self.segment_embeddings[0])
        return segment_vectors(self.segment_embeddings, segment_ids, dtype)


class NoHeads(SelfAttention):
    """The rest of an attention whose heads were all cut."""

    def make_projection(self, name: str) -> None:
        return None

    def call(self, x: Tensor, bias: Tensor | None = None, dropout_seed: Tensor | None = None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns [B, S, 0], and `SelfAttention`'s dict for no heads."""
        batch, length = ops.shape(x)[:2]
        nothing = ops.zeros((batch, 0, length, length), x.dtype)
        return ops.zeros((batch, length, 0), x.dtype), {
            "attention_probs": nothing, "attention_scores": ops.cast(nothing, "float32")}


class NoHeadsResidual(Residual):
    """The rest of the layer after `NoHeads`: the bias alone of the projection."""

    def call(self, x: Tensor, residual: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """[B, S, 0] and the residual [B, S, H] -> [B, S, H]."""
        x = ops.zeros_like(residual) + ops.cast(self.projection.bias, residual.dtype)
        return self.norm(dropout(x, self.dropout_rate, dropout_seed) + residual)


class EncoderLayer(TransformerLayer):
    """A `TransformerLayer` that may share parts of others, and may have fewer heads or units.

    Args:
        attention_of: a layer whose attention this layer shares.
        feed_forward_of: a layer whose feed-forward network this layer shares.
        numbers: of its attention and feed-forward network in the configuration's `layer_weights`,
            which has their sizes after pruning; None: not pruned.
    """

    def __init__(self, config: EncoderConfig, attention_of: "EncoderLayer | None" = None,
                 feed_forward_of: "EncoderLayer | None" = None,
                 numbers: tuple[int, int] | None = None, **kwargs: Any):
        super(TransformerLayer, self).__init__(config, **kwargs)     # whose parts may be shared
        heads, inner = config.num_attention_heads, config.intermediate_size
        if numbers:
            heads = len(config.kept_heads(numbers[0]))
            inner = config.feed_forward_size(numbers[1])
        if attention_of:
            self.attention = attention_of.attention
            self.attention_output = attention_of.attention_output
        else:
            self.make_attention(heads)
        if feed_forward_of:
            self.intermediate = feed_forward_of.intermediate
            self.output_ = feed_forward_of.output_
        else:
            self.make_feed_forward(inner)

    def make_attention(self, heads: int) -> None:
        if heads:
            super().make_attention(heads)
            return
        self.attention = NoHeads(self.config, 0, name="self", dtype=self.dtype_policy)
        self.attention_output = NoHeadsResidual(self.config, 0, name="output",
                                                dtype=self.dtype_policy)
