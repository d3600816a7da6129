"""Masks of texts that are read from left to right, and one vector for each text. `input_mask` is
integer [B, S], 1 for tokens and 0 for padding.

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


def pool(vectors: Tensor, input_mask: Tensor, pooling: str, normalize: bool = False) -> Tensor:
    """Returns one vector for each text from the vectors of its tokens: float32 [B, H].

    Args:
        vectors: float [B, S, H], such as the output of a layer.
        input_mask: integer [B, S], 1 for tokens and 0 for padding; a text has at least one token.
        pooling: "cls", the first token's vector; "last", the last one's; "mean" or "max" over all
            tokens, [CLS] and [SEP] too, as in sentence-transformers; "none", the tokens' vectors,
            [B, S, H].
        normalize: whether to scale each vector to length 1.
    """
    vectors = ops.cast(vectors, "float32")
    is_token = ops.cast(input_mask, "bool")[:, :, None]                 # [B, S, 1]
    if pooling == "cls":
        vectors = vectors[:, 0]
    elif pooling == "last":
        vectors = last_token(vectors, input_mask)
    elif pooling == "mean":
        count = ops.sum(ops.cast(is_token, "float32"), 1)               # [B, 1]
        vectors = ops.sum(ops.where(is_token, vectors, 0.0), 1) / count
    elif pooling == "max":
        vectors = ops.max(ops.where(is_token, vectors, -float("inf")), 1)
    return ops.normalize(vectors, epsilon=1e-12) if normalize else vectors
