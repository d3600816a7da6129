"""The next token, for left-to-right networks (arXiv:1810.04805, table 5, "LTR").

Shapes: B batch, S sequence, T tokens, H hidden, E width of the embeddings, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.objective import MaskedLM
from bert_tf.config import EncoderConfig
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import argmax, cross_entropy, custom_gradient
from bert_tf.objectives.base import Batch, Objective, ratio

# The most logits in memory at a time: 128 MiB of float32.
_MOST_LOGITS = 1 << 25


def _logits(x, table, bias):
    """float [T, E], [V, E] and float32 [V] -> float32 [T, V]."""
    return ops.cast(ops.matmul(x, ops.transpose(table)), "float32") + bias


def _cut(size, *rows):
    """Cuts tensors [T, ...] to [pieces, at most `size`, ...], filled up with zeros."""
    count = ops.shape(rows[0])[0]
    if isinstance(count, int):
        pieces = -(-count // min(size, max(count, 1)))
    else:
        pieces = -(-count // ops.minimum(size, count))
    size = -(-count // pieces)
    return [ops.reshape(ops.concatenate([x, ops.zeros(
        (pieces * size - count, *x.shape[1:]), x.dtype)]), (pieces, size, *x.shape[1:]))
        for x in rows]


def predict_tokens(x: Tensor, table: Tensor, bias: Tensor, labels: Tensor,
                   z_loss: float = 0.0) -> Any:
    """Float32 [..., 2]: the cross-entropy of each label, and whether its logit is the largest.
    Logits, [..., V], are never in memory all at once: the gradient computes them again, piece by
    piece.

    Args:
        x: float [..., E], a vector for each label in order.
        table: float [V, E].
        bias: float32 [V].
        labels: integer [...].
        z_loss: adds this factor times the squared log of the softmax's denominator.
    """
    size = max(1, _MOST_LOGITS // table.shape[0])

    def measure(logits, ids):
        losses = cross_entropy(ids, logits)
        if z_loss:
            losses = losses + z_loss * ops.square(ops.logsumexp(logits, axis=-1))
        hits = ops.equal(argmax(logits), ids)
        return ops.stack([losses, ops.cast(hits, "float32")], axis=-1)

    @custom_gradient
    def predict(x, table, bias, labels):
        def gradient(upstream):
            pieces = _cut(size, x, labels, upstream)

            def add(number, sums):
                vectors, ids, factors = (ops.take(piece, number, axis=0) for piece in pieces)
                logits = _logits(vectors, table, bias)
                slope = ops.softmax(logits)     # the loss's derivative by the logits, [T, V]
                if z_loss:
                    slope = slope * (
                        1.0 + 2.0 * z_loss * ops.logsumexp(logits, axis=-1, keepdims=True))
                slope = slope - ops.one_hot(ids, table.shape[0], dtype="float32")
                slope = slope * factors[:, :1]
                rows = ops.cast(slope, vectors.dtype)
                return (sums[0] + ops.cast(ops.matmul(ops.transpose(rows), vectors), "float32"),
                        sums[1] + ops.sum(slope, axis=0), ops.slice_update(
                            sums[2], (number, 0, 0), ops.matmul(rows, table)[None]))

            zeros = (ops.zeros(table.shape, "float32"), ops.zeros_like(bias),
                     ops.zeros_like(pieces[0]))
            of_table, of_bias, of_x = ops.fori_loop(0, ops.shape(pieces[0])[0], add, zeros)
            count = ops.shape(x)[0]
            return (ops.reshape(of_x, (-1, x.shape[1]))[:count], ops.cast(of_table, table.dtype),
                    of_bias, None)

        measured = ops.reshape(ops.map(
            lambda piece: measure(_logits(piece[0], table, bias), piece[1]),
            tuple(_cut(size, x, labels))), (-1, 2))
        return measured[:ops.shape(x)[0]], gradient

    measured = predict(ops.reshape(x, (-1, x.shape[-1])), table, bias,
                       ops.cast(ops.reshape(labels, (-1,)), "int32"))
    return ops.reshape(measured, (*ops.shape(labels), 2))


class TokenLosses(Objective):
    """An objective whose logits are `predict_tokens` of its labels, float32 [..., 2]."""

    likelihood = "loss"
    output_shape: tuple[int | None, ...] = (None, None, 2)

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return ratio(logits[..., 0], weights)

    def accuracy(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return ratio(logits[..., 1], weights)


class NextToken(TokenLosses):
    """Predicts each token but the first from those before it, except padding.

    A subclass defines `vectors_and_table(x, embedding_table)`: from float [T, H] to float [T, E],
    the matrix [V, E] that multiplies them, and a bias, float32 [V]. `by_row` makes the loss the
    mean of the sequences' means, not of all tokens.
    """

    reads = ("input_ids", "input_mask")
    by_row = False

    def vectors_and_table(self, x: Tensor, embedding_table: Tensor) -> tuple:
        raise NotImplementedError

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """`predict_tokens` of the next tokens, float32 [B, S - 1, 2]. `sequence_output`, float [B,
        S, H], is of a left-to-right network; `input_ids` are integer [B, S] or [B, C, S]; an
        `output_table` replaces the table [V, E]."""
        x = outputs["sequence_output"][:, :-1]                              # [B, S - 1, H]
        labels, _ = self.targets(batch)
        vectors, table, bias = self.vectors_and_table(
            ops.reshape(x, (-1, x.shape[-1])), outputs.get("output_table", embedding_table))
        return predict_tokens(vectors, table, bias, labels)

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The next tokens and their weights, [B, S - 1]."""
        ids, mask = (ops.reshape(batch[name], (-1, ops.shape(batch[name])[-1]))
                     for name in self.reads)
        weights = ops.cast(mask[:, 1:], "float32")
        if self.by_row:
            if "is_real_example" in batch:
                real = ops.cast(ops.reshape(batch["is_real_example"], (-1, 1)), "float32")
                rows, examples = ops.shape(weights)[0], ops.shape(real)[0]
                weights = weights * ops.repeat(real, rows // examples, axis=0)
            weights = weights / ops.maximum(ops.sum(weights, axis=1, keepdims=True), 1.0)
        return ops.cast(ids[:, 1:], "int32"), weights


@register
class NextTokenLM(NextToken, MaskedLM):
    """The next token, predicted by the head of BERT's masked LM with its weights."""

    reads = NextToken.reads
    config_keys = ("metrics_name",)

    def __init__(self, config: EncoderConfig, name: str = "masked_lm",
                 metrics_name: str = "next_token", **kwargs: Any):
        super().__init__(config, name=name, metrics_name=metrics_name, **kwargs)

    def vectors_and_table(self, x: Tensor, embedding_table: Tensor) -> tuple:
        x = self.transform(x)                                               # [T, E]
        table = ops.cast(embedding_table if self.tied else self.output_weights, x.dtype)
        return x, table, ops.cast(self.output_bias, "float32")


@register
class TiedLM(NextToken):
    """The next token by the embedding table alone; the original fine-tunes with `by_row`."""

    config_keys = ("by_row", "auxiliary")
    metrics_name = "next_token"

    def __init__(self, config: Any, by_row: bool = False, auxiliary: bool = False, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.by_row, self.auxiliary = by_row, auxiliary
        self.built = True

    def vectors_and_table(self, x: Tensor, embedding_table: Tensor) -> tuple:
        table = ops.cast(embedding_table, x.dtype)
        return x, table, ops.zeros((table.shape[0],), "float32")
