"""One vector a text from those of its tokens."""

from keras import ops


def pool(vectors, input_mask, pooling, normalize=False):
    """
    Args:
        vectors: float [B, S, H], such as a layer's output.
        input_mask: integer [B, S], 1 for tokens and 0 for padding; a text has at least one token.
        pooling: "cls", the vector of the first token; "mean" or "max" over all tokens, [CLS] and
            [SEP] too, as the pooling of sentence-transformers does; "none", the tokens' vectors as
            they are.
        normalize: whether to give each vector the length 1.

    Returns:
        float32 [B, H], or [B, S, H] without pooling.
    """
    vectors = ops.cast(vectors, "float32")
    is_token = ops.cast(input_mask, "bool")[:, :, None]
    if pooling == "cls":
        vectors = vectors[:, 0]
    elif pooling == "mean":
        count = ops.sum(ops.cast(is_token, "float32"), 1)
        vectors = ops.sum(ops.where(is_token, vectors, 0.0), 1) / count
    elif pooling == "max":
        vectors = ops.max(ops.where(is_token, vectors, -float("inf")), 1)
    return ops.normalize(vectors, epsilon=1e-12) if normalize else vectors
