"""The layers of XLNet: two-stream attention by relative position (arXiv:1906.08237;
zihangdai/xlnet, `modeling.py`).

Shapes: B batch, S sequence, P predictions, M memory, K = M + S keys, R = K + S distances, H hidden,
N heads, D width of a head, F width of the feed-forward layer. C is 1 or B.
"""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from bert_tf.bert.layers import LayerNorm, Residual, TransformerLayer, join_heads, split_heads
from bert_tf.config import XLNetConfig
from bert_tf.layers.base import FromConfig, Tensor
from bert_tf.layers.functions import (
    ACTIVATIONS,
    dropout,
    last_token,
    slice_axis,
    softmax_and_dropout,
    split_seed,
)

# Subtracted from the score of a hidden key.
_HIDDEN = 1e30


def distances(length: int | Tensor, memory: int, clamp_len: int, width: int) -> Tensor:
    """Sinusoids of the distances K, K - 1, ..., 1 - S of a key to the left, float32 [R, H], from S,
    M and H; S may be known only when the graph runs. Distances beyond `clamp_len` count as this
    one; 0 or less: no limit."""
    count = memory + 2 * length
    place = ops.cast(memory + length - ops.arange(count, dtype="int32"), "float32")
    if clamp_len > 0:
        place = ops.clip(place, -float(clamp_len), float(clamp_len))
    rates = (1 / (10000 ** (np.arange(0, width, 2.0) / width))).astype(np.float32)
    angles = place[:, None] * ops.convert_to_tensor(rates)
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], -1)[:, :width]


def shift(scores: Tensor, keys: Tensor, places: Tensor | None = None) -> Tensor:
    """Scores by distance [B, N, Q, R] -> by key [B, N, Q, K], for `keys` K. `places` are the
    queries' positions, int32 [B, Q]; None: 0, 1, ..., S - 1."""
    if places is not None:
        length = ops.shape(scores)[-1] - keys
        return _shift_by(scores, length - places, length)
    batch, heads, length, distances = ops.shape(scores)
    scores = ops.reshape(scores, (batch, heads, distances, length))
    scores = slice_axis(scores, 2, 1, distances - 1)
    return slice_axis(ops.reshape(scores, (batch, heads, length, distances - 1)), 3, 0, keys)


def on_tpu() -> bool:
    return keras.config.backend() != "torch" and any(
        name.startswith("tpu") for name in keras.distribution.list_devices())


def _shift_by(scores, steps, most):
    """[B, N, Q, R] -> [B, N, Q, R - `most`], from column `steps` on: int32 [B, Q], up to `most`."""
    if not (on_tpu() and isinstance(most, int)):
        columns = steps[..., None] + ops.arange(ops.shape(scores)[-1] - most, dtype="int32")
        return ops.take_along_axis(scores, columns[:, None], axis=-1)
    # A TPU gathers numbers one by one; steps of powers of two are whole-array operations.
    steps, bits = steps[:, None, :, None], most.bit_length()
    scores = ops.pad(scores, [(0, 0)] * 3 + [(0, 2**bits - 1 - most)])
    for step in (2**bit for bit in reversed(range(bits))):
        scores = ops.where(ops.bitwise_and(steps, step) > 0, scores[..., step:],
                           scores[..., :-step])
    return scores


def multiply(x: Tensor, shared: Tensor) -> Tensor:
    """The product of [B, N, Q, D] and [C, N, D, M], [B, N, Q, M]. One head is multiplied without
    the dimension N: with it, oneDNN is wrong or crashes on AVX-512 if C is 1."""
    if shared.shape[1] == 1:
        return ops.matmul(x[:, 0], shared[:, 0])[:, None]
    return ops.matmul(x, shared)


class Seen(NamedTuple):
    """What the vectors of a stream see, for all layers. Q is S for the content, P for the queries.

    Attributes:
        segments: bool [B, Q, K], whether the key is in another segment; None without segments.
        bias: float32 [C, 1, Q, K] or None, added to the scores.
        places: int32 [B, P], the positions of the queries; None for the content.
        is_used: float [B, P], 0 for empty slots, which see nothing; None: all are used.
    """

    segments: Tensor | None
    bias: Tensor | None
    places: Tensor | None = None
    is_used: Tensor | None = None


def hiding(is_hidden: Tensor) -> Tensor:
    """An addend of scores, float32, that hides keys from queries."""
    return ops.cast(is_hidden, "float32") * -_HIDDEN


class RelativeAttention(FromConfig, keras.layers.Layer):
    """Softmax of the sum of a query's scores by a key's content, its distance and its segment.
    Queries have a bias for each of the three: `r_w`, `r_r` and `r_s`, [N, D]. Their names lack
    "bias", since the original decays them like matrices."""

    def __init__(self, config: XLNetConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.query, self.key, self.value, self.position = (
            self.dense(config.attention_width, name, use_bias=False)
            for name in ("query", "key", "value", "position"))

    def build(self, input_shape: Any = None) -> None:
        super().build()
        self.segments = self.add_weight((2, self.config.n_head, self.config.d_head),
                                        name="seg_embed")
        if self.config.untie_r:
            self.biases = query_biases(self)

    def keys(self, x: Tensor, distances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Keys and values [B, N, K, D] of vectors [B, K, H], and distances' keys [C, N, R, D]."""
        size = self.config.d_head
        return (split_heads(self.key(x), size), split_heads(self.value(x), size),
                split_heads(self.position(distances), size))

    def call(self, x: Tensor, keys: tuple, seen: Seen, shared: tuple,
             dropout_seed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The heads' outputs, float [B, Q, N D], and the attention probabilities [B, N, Q, K]. x,
        float [B, Q, H], is of a stream that sees `seen` of the result of `keys`. `shared` are the
        query biases of all layers, where layers have none of their own."""
        key, value, by_distance = keys
        query = split_heads(self.query(x), self.config.d_head)          # [B, N, Q, D]
        biases = [ops.cast(v, self.compute_dtype)[:, None]              # [N, 1, D]
                  for v in (self.biases if self.config.untie_r else shared)]
        if seen.segments is None:
            del biases[-1]
        # One sum for all, so that its gradient is one, too. TensorFlow would add three gradients in
        # an order that depends on what other threads have read by then. Both addends have 5 axes:
        # tf2onnx 1.17 transposes the sum of one with 4 and one with 5 as if it had 4.
        word, relative, *segment = ops.unstack(
            query[None] + ops.stack(biases)[:, None], len(biases))      # [B, N, Q, D]
        scores = ops.matmul(word, ops.transpose(key, (0, 1, 3, 2)))     # [B, N, Q, K]
        scores = scores + shift(
            multiply(relative, ops.transpose(by_distance, (0, 1, 3, 2))),
            ops.shape(key)[2], seen.places)
        if seen.segments is not None:
            table = ops.transpose(ops.cast(self.segments, query.dtype), (1, 2, 0))  # [N, D, 2]
            same = multiply(*segment, table[None])                      # [B, N, Q, 2]
            scores = scores + ops.where(seen.segments[:, None], same[..., 1:], same[..., :1])
        scores = ops.cast(scores, "float32") * self.config.d_head**-0.5
        if seen.bias is not None:
            scores = scores + seen.bias
        probs, dropped = softmax_and_dropout(scores, self.config.dropatt, dropout_seed, value.dtype)
        context = ops.matmul(dropped, value)
        if seen.is_used is not None:
            context = context * ops.cast(seen.is_used, context.dtype)[:, None, :, None]
        return join_heads(context, self.config.attention_width), probs


def query_biases(layer: Any) -> list:
    """Adds the query biases, variables [N, D], to a layer."""
    config = layer.config
    return [layer.add_weight((config.n_head, config.d_head), name=name)
            for name in ("r_w", "r_r", "r_s")]


class _Output(Residual):
    """A `Residual` whose projection need not have a bias."""

    def __init__(self, config: XLNetConfig, input_size: int, use_bias: bool, **kwargs: Any):
        super().__init__(config, input_size, **kwargs)
        self.projection.use_bias = use_bias

    @property
    def dropout_rate(self) -> float:
        return self.config.dropout


class TwoStreamLayer(FromConfig, keras.layers.Layer):
    """Relative attention and a feed-forward network with the same weights for both streams: the
    content, and the queries, which know their positions and not their tokens."""

    scopes = TransformerLayer.scopes

    def __init__(self, config: XLNetConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.attention = RelativeAttention(config, name="self", dtype=policy)
        self.attention_output = _Output(config, config.attention_width, False, name="output",
                                        dtype=policy)
        self.intermediate = self.dense(config.d_inner, activation=ACTIVATIONS[config.ff_activation])
        self.output_ = _Output(config, config.d_inner, True, name="output", dtype=policy)

    def call(self, content: Tensor, query: Tensor | None, memory: Tensor | None,
             distances: Tensor, seen: Seen, asked: Seen | None, shared: tuple = (),
             head_mask: Tensor | None = None, dropout_seed: Tensor | None = None
             ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Both streams, and the content's attention probabilities [B, N, S, K], from content, float
        [B, S, H], and the query, float [B, P, H], or None.

        Args:
            memory: float [B, M, H], the layer's earlier input, or None.
            distances: float [C, R, H], with dropout.
            seen, asked: of the content, and of the queries.
            shared: see `RelativeAttention`.
            head_mask: float [N], a factor for each head's output.
        """
        seeds = split_seed(dropout_seed, 8)
        read = content
        if memory is not None:
            read = ops.concatenate([memory, content], axis=1)
        keys = self.attention.keys(read, distances)
        if head_mask is not None:
            mask = ops.cast(head_mask, content.dtype)[:, None, None]
            keys = keys[0], keys[1] * mask, keys[2]
        context, probs = self.attention(content, keys, seen, shared, seeds[0])
        content = self._feed(self.attention_output(context, content, seeds[1]), seeds[2:4])
        if query is not None:
            context, _ = self.attention(query, keys, asked, shared, seeds[4])
            query = self._feed(self.attention_output(context, query, seeds[5]), seeds[6:])
        return content, query, probs

    def _feed(self, x, seeds):
        inner = dropout(self.intermediate(x), self.config.dropout, seeds[0])    # [B, S, F]
        return self.output_(inner, x, seeds[1])


class Summary(FromConfig, keras.layers.Layer):
    """One vector of a whole sequence (`summarize_sequence`), before its dropout."""

    scopes = dict.fromkeys(("query", "key", "value", "output_", "norm"), "attention")

    def __init__(self, config: XLNetConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.attends = config.summary_type == "attn"
        if self.attends:
            self.query, self.key, self.value = (
                self.dense(config.attention_width, name, use_bias=False)
                for name in ("query", "key", "value"))
            self.output_ = self.dense(config.hidden_size, "output", use_bias=False,
                                      inputs=config.attention_width)
            self.norm = LayerNorm(config, dtype=self.dtype_policy)
        self.projection: Any = None
        if config.use_summ_proj:
            self.projection = self.dense(config.hidden_size, activation="tanh")

    def build(self, input_shape: Any = None) -> None:
        if self.attends:
            self.summary_bias = self.add_weight((self.config.hidden_size,), name="summary_bias")
        super().build()

    def call(self, x: Tensor, input_mask: Tensor | None = None,
             dropout_seed: Tensor | None = None) -> Tensor:
        """float [B, S, H] and integer [B, S], 1 for tokens -> float [B, H]. The mean includes
        padding, as in the original, and the first position may be padding; the last token precedes
        padding on the right."""
        kind = self.config.summary_type
        if kind == "last":
            summary = last_token(x, input_mask)
        elif kind == "first":
            summary = x[:, 0]
        elif kind == "mean":
            summary = ops.mean(x, axis=1)
        else:
            summary = self._attend(x, input_mask, dropout_seed)
        return self.projection(summary) if self.projection else summary

    def _attend(self, x, input_mask, seed):
        seeds, shape = split_seed(seed, 2), (self.config.n_head, self.config.d_head)
        query = self.query(ops.cast(self.summary_bias, x.dtype)[None])
        query = ops.reshape(query, (*shape, 1))                                 # [N, D, 1]
        key, value = (split_heads(layer(x), shape[1])
                      for layer in (self.key, self.value))                      # [B, N, S, D]
        scores = ops.cast(multiply(key, query[None])[..., 0], "float32") * shape[1]**-0.5
        if input_mask is not None:
            scores = scores + hiding(input_mask[:, None] < 1)                   # [B, N, S]
        probs = dropout(ops.cast(ops.softmax(scores), x.dtype), self.config.dropatt, seeds[0])
        context = ops.reshape(ops.matmul(probs[:, :, None], value),
                              (ops.shape(x)[0], self.config.attention_width))
        return self.norm(dropout(self.output_(context), self.config.dropout, seeds[1]))
