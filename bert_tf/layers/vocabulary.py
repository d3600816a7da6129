"""The logits of all tokens of a vocabulary."""

from keras import ops

from bert_tf.layers.base import Tensor


@ops.custom_gradient
def _product(x, table):
    def gradient(*args, upstream=None):
        upstream = args[0] if upstream is None else upstream
        # The automatic gradient computes the table's gradient as [E, V] and transposes a copy.
        rows, vectors = (ops.reshape(y, (-1, y.shape[-1])) for y in (upstream, x))
        return ops.matmul(upstream, table), ops.matmul(ops.transpose(rows), vectors)

    return ops.matmul(x, ops.transpose(table)), gradient


def vocabulary_logits(x: Tensor, table: Tensor) -> Tensor:
    """Returns the products of vectors, float [..., E], and the vectors of all tokens, float [V, E],
    as float32 [..., V]; they are computed in the type of `x`."""
    return ops.cast(_product(x, ops.convert_to_tensor(ops.cast(table, x.dtype))), "float32")
