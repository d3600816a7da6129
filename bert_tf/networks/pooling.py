"""One vector for each text."""

from keras import ops

from bert_tf.layers.base import Tensor
from bert_tf.layers.masks import last_token


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
