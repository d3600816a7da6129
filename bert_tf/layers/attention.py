"""Attention of a sequence to itself (arXiv:1706.03762; google-research/bert, `attention_layer`).

Shapes: B batch, S sequence, H hidden, N heads, D width of a head.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import FromConfig, Tensor, register
from bert_tf.layers.seeds import dropout


@register
class SelfAttention(FromConfig, keras.layers.Layer):
    """Softmax(Q K^T / sqrt(D) + bias) V in N heads, side by side.

    Attributes:
        num_heads: N, the configuration's if None; 0 where all were cut.
    """

    def __init__(self, config: Sizes, num_heads: int | None = None, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.num_heads = config.num_attention_heads if num_heads is None else num_heads
        make: Any = self.make_projection if self.num_heads else lambda name: None
        self.query, self.key, self.value = map(make, ("query", "key", "value"))

    def make_projection(self, name: str) -> keras.layers.Dense:
        """From the vectors to the queries, keys or values of all heads."""
        return self.dense(self.num_heads * self.config.head_size, name)

    def build(self, input_shape: Any = None) -> None:
        for layer in (self.query, self.key, self.value):
            if layer:
                layer.build((None, None, self.config.hidden_size))

    def call(self, x: Tensor, bias: Tensor | None = None, head_mask: Tensor | None = None,
             dropout_seed: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """
        Args:
            x: float [B, S, H].
            bias: float, broadcast to [B, N, S, S], added to the scores.
            head_mask: float [N], a factor for each head's output; or one that broadcasts to
                [B, N, S, D].
            dropout_seed: integer [2]; no dropout if None.

        Returns:
            The heads' outputs [B, S, N * D], and a dict of [B, N, S, S]: `attention_probs`, before
            dropout, and `attention_scores`, float32, of which they are the softmax.
        """
        batch, length = ops.shape(x)[:2]
        heads, size = self.num_heads, self.config.head_size
        if not heads:
            nothing = ops.zeros((batch, 0, length, length), x.dtype)
            return ops.zeros((batch, length, 0), x.dtype), {
                "attention_probs": nothing, "attention_scores": ops.cast(nothing, "float32")}

        def split(y):  # [B, S, N * D] -> [B, S, N, D]
            return ops.reshape(y, (batch, length, heads, size))

        query = ops.transpose(split(self.query(x) * size**-0.5), (0, 2, 1, 3))      # [B, N, S, D]
        key = ops.transpose(split(self.key(x)), (0, 2, 3, 1))                       # [B, N, D, S]
        value = ops.transpose(split(self.value(x)), (0, 2, 1, 3))                   # [B, N, S, D]
        scores = ops.cast(ops.matmul(query, key), "float32")                        # [B, N, S, S]
        if bias is not None:
            scores = scores + bias
        probs = ops.cast(ops.softmax(scores), value.dtype)
        dropped = dropout(probs, self.config.attention_probs_dropout_prob, dropout_seed)
        context = ops.matmul(dropped, value)                                        # [B, N, S, D]
        context = mask_heads(context, head_mask)
        context = ops.transpose(context, (0, 2, 1, 3))                              # [B, S, N, D]
        return ops.reshape(context, (batch, length, heads * size)), {
            "attention_probs": probs, "attention_scores": scores}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_heads": self.num_heads}


def mask_heads(context: Tensor, head_mask: Tensor | None) -> Tensor:
    """The heads' outputs [B, N, S, D] times a mask, float [N] or one that broadcasts to them."""
    if head_mask is None:
        return context
    mask = ops.cast(head_mask, context.dtype)
    return context * (mask[:, None, None] if len(mask.shape) == 1 else mask)
