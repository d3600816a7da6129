"""Masks of the tokens that see each other, in rows with padding and in packed rows.

Records share rows so that padding is not computed (arXiv:2107.02027). A network packs its features,
computes the rows, and unpacks its outputs, so that objectives see the batch as if it had not been
packed. `bert_tf/data/batches/row_layout.py` makes the two features that describe the packing:

    packed_from  integer [R, S]: record * S + position of the token at each place of the rows, or -1
    packed_at    integer [B, S]: row * S + column of each token; 0 for padding

Shapes: B batch, S sequence, R rows (at most B), H hidden. `input_mask` is integer [B, S], 1 for
tokens and 0 for padding.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.layers.base import Tensor

PACKED = ("packed_from", "packed_at")
# Features that are added to embeddings, float [B, S, width].
NOISES = ("word_noise", "embedding_noise")


def add_noise(x: Tensor, noise: Tensor | None) -> Tensor:
    """Returns `x`, float [B, S, width], plus noise of this shape, if there is any."""
    return x if noise is None else x + ops.cast(noise, x.dtype)


def padding_bias(input_mask: Tensor, low: float = -10000.0) -> Tensor:
    """Returns an addend of attention scores that hides padding, float32 [B, 1, 1, S]: 0 for tokens
    and `low`, by default the original's constant, for padding."""
    return (1.0 - ops.cast(input_mask[:, None, None, :], "float32")) * low


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


class Packing:
    """How the records of a batch share rows, by its features `packed_from` and `packed_at`."""

    def __init__(self, source: Tensor, place: Tensor):
        self._source, self._place = source, place

    @property
    def _token(self):
        """integer [R, S]: as `packed_from`, with 0 where there is no token."""
        return ops.maximum(self._source, 0)

    @property
    def positions(self) -> Tensor:
        """The position of each token in its own record, integer [R, S]."""
        return self._token % self._source.shape[1]

    def pack(self, inputs: Mapping[str, Tensor]) -> dict[str, Any]:
        """Returns the features of the tokens, integer [R, S]; a place without a token gets the
        first token's. Features are [B, S], or [B, 1] where all tokens of a record share one."""
        record = ops.floor_divide(self._token, self._source.shape[1])
        return {name: ops.take(ops.reshape(values, (-1,)),
                               self._token if values.shape[1] == self._source.shape[1] else record)
                for name, values in inputs.items() if values is not None}

    def pack_vectors(self, x: Tensor) -> Tensor:
        """float [B, S, H] -> [R, S, H]; a place without a token has the first token's vector."""
        return ops.take(ops.reshape(x, (-1, ops.shape(x)[-1])), self._token, axis=0)

    def bias(self, input_mask: Tensor | None = None) -> Tensor:
        """Returns an addend of attention scores that hides other records, and the padding of
        `input_mask`, integer [R, S]: float32 [R, 1, S, S], 0 or -10000 as in `padding_bias`."""
        record = ops.floor_divide(self._source, self._source.shape[1])      # [R, S]; -1: no token
        seen = ops.equal(record[:, None, :, None], record[:, None, None, :])
        if input_mask is not None:
            seen = ops.logical_and(seen, ops.cast(input_mask, "bool")[:, None, None, :])
        return (1.0 - ops.cast(seen, "float32")) * -10000.0

    def unpack(self, x: Tensor) -> Tensor:
        """float [R, S, H] -> [B, S, H]; padding has the vector of the first place."""
        return ops.take(ops.reshape(x, (-1, ops.shape(x)[-1])), self._place, axis=0)


def packing_of(inputs: Mapping[str, Tensor]) -> Packing | None:
    """Returns the packing of a batch; None if each record has a row of its own."""
    source, place = map(inputs.get, PACKED)
    return None if source is None or place is None else Packing(source, place)
