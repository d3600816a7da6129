"""Masks and pooling of texts that are read from left to right. `input_mask` is integer [B, S], 1
for tokens and 0 for padding.

Shapes: B batch, S sequence, H hidden.
"""

from keras import ops

from bert_tf.layers.base import Tensor


def causal_bias(length: Tensor) -> Tensor:
    """Returns an addend of attention scores that hides later positions, float32 [1, 1, S, S]:
    -10000 above the diagonal, else 0."""
    place = ops.arange(length)
    later = ops.cast(place[None, None, None, :] > place[None, None, :, None], "float32")
    return later * -10000.0


def last_token(vectors: Tensor, input_mask: Tensor | None = None) -> Tensor:
    """Returns the vector of each text's last token, [B, H], from vectors [B, S, H]. Without a mask,
    all are tokens."""
    if input_mask is None:
        return vectors[:, -1]
    place = ops.arange(ops.shape(vectors)[1], dtype="int32")            # [S]
    last = ops.max(ops.cast(input_mask, "int32") * place, axis=1, keepdims=True)        # [B, 1]
    is_last = ops.expand_dims(ops.equal(place, last), 2)                # [B, S, 1]
    return ops.sum(ops.where(is_last, vectors, ops.zeros_like(vectors)), axis=1)
