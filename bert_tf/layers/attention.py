"""Multi-headed self-attention (arXiv:1706.03762)."""

import keras
from keras import ops

from bert_tf.layers.base import FromConfig, register
from bert_tf.layers.dropout import dropout


def padding_bias(input_mask):
    """What is added to attention scores so that no position attends to padding.

    Args:
        input_mask: integer [B, S], 1 for tokens and 0 for padding.

    Returns:
        float32 [B, 1, 1, S]: 0 for tokens and -10000 for padding, the original's constant.
    """
    return (1.0 - ops.cast(input_mask[:, None, None, :], "float32")) * -10000.0


@register
class SelfAttention(FromConfig, keras.layers.Layer):
    """Softmax(Q K^T / sqrt(D) + bias) V in N heads of width D = H / N, side by side."""

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        self.query = self.dense(config.hidden_size, "query")
        self.key = self.dense(config.hidden_size, "key")
        self.value = self.dense(config.hidden_size, "value")

    def build(self, input_shape=None):
        for layer in (self.query, self.key, self.value):
            layer.build((None, None, self.config.hidden_size))

    def call(self, x, bias=None, head_mask=None, dropout_seed=None):
        """
        Args:
            x: float [B, S, H].
            bias: float, broadcast to [B, N, S, S], added to the scores.
            head_mask: float [N], a factor for each head's output.
            dropout_seed: integer [2]; no dropout if None.

        Returns:
            The heads' outputs [B, S, H] and the attention probabilities [B, N, S, S].
        """
        batch, length = ops.shape(x)[:2]
        heads, size = self.config.num_attention_heads, self.config.head_size

        def split(y):  # [B, S, H] -> [B, S, N, D]
            return ops.reshape(y, (batch, length, heads, size))

        query = ops.transpose(split(self.query(x) * size**-0.5), (0, 2, 1, 3))
        key = ops.transpose(split(self.key(x)), (0, 2, 3, 1))
        value = ops.transpose(split(self.value(x)), (0, 2, 1, 3))
        scores = ops.cast(ops.matmul(query, key), "float32")
        if bias is not None:
            scores = scores + bias
        probs = ops.cast(ops.softmax(scores), value.dtype)
        dropped = dropout(probs, self.config.attention_probs_dropout_prob, dropout_seed)
        context = ops.matmul(dropped, value)
        if head_mask is not None:
            context = context * ops.cast(head_mask, context.dtype)[:, None, None]
        context = ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (batch, length, heads * size))
        return context, probs
