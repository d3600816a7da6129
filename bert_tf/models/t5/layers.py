"""The layers of T5, its stacks and its table of words (arXiv:1910.10683; tensorflow/mesh,
`transformer/transformer_layers.py` and `transformer.py`).

Shapes: B batch, Q queries, S keys, T tokens of a stack, H width, N heads, D width of a head, F
width of the feed-forward layer, O buckets of relative positions. Nothing has a bias, and dropout
has one mask for all positions of a sequence.
"""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf.bert.layers import join_heads, split_heads
from bert_tf.config import T5Config
from bert_tf.layers.base import Dense, FromConfig, Tensor
from bert_tf.layers.changes import mask_heads
from bert_tf.layers.functions import ACTIVATIONS, dropout, split_seed

HIDDEN = -1e9           # added to the score of a key that a query does not see


def truncated(factor: float) -> keras.initializers.Initializer:
    """A normal initializer with the standard deviation `factor` / sqrt(inputs)."""
    return keras.initializers.VarianceScaling(scale=factor**2, mode="fan_in",
                                              distribution="truncated_normal")


def buckets(num_buckets: int, max_distance: int, both_sides: bool) -> np.ndarray:
    """The buckets of relative positions from -max_distance to max_distance, int32 [2 * max_distance
    + 1]; farther positions share the end's bucket.

    Half of a side's buckets are single distances, the others grow logarithmically (`attention.py`,
    `_relative_position_bucket`). Where only the past is seen, later keys are in bucket 0.
    """
    distance = -np.arange(-max_distance, max_distance + 1)      # of a key to the left above 0
    first = np.zeros_like(distance)
    if both_sides:
        num_buckets //= 2
        first = np.where(distance < 0, num_buckets, 0)
        distance = np.abs(distance)
    distance = np.maximum(distance, 0)
    exact = num_buckets // 2
    ratio = np.log(np.maximum(distance, 1).astype("float32") / np.float32(exact))
    wide = exact + (ratio / np.float32(math.log(max_distance / exact))
                    * np.float32(num_buckets - exact)).astype("int32")
    return (first + np.where(distance < exact, distance, np.minimum(wide, num_buckets - 1))
            ).astype("int32")


class RMSNorm(FromConfig, keras.layers.Layer):
    """x / sqrt(mean(x^2) + epsilon) * scale over the last axis, in float32 for every input."""

    def __init__(self, config: T5Config, name: str = "layer_norm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        self.scale = self.add_weight((self.config.hidden_size,), "ones", name="scale")

    def call(self, x: Tensor) -> Tensor:
        """float [..., H] -> [..., H] in the compute dtype."""
        x = ops.cast(x, "float32")
        variance = ops.mean(ops.square(x), axis=-1, keepdims=True)
        x = x * ops.rsqrt(variance + self.config.layer_norm_eps)
        return ops.cast(x * ops.cast(self.scale, "float32"), self.compute_dtype)


class RelativeBias(FromConfig, keras.layers.Layer):
    """Each head's addend of a score by the distance from query to key, on one or both sides."""

    def __init__(self, config: T5Config, both_sides: bool, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.buckets = buckets(config.relative_attention_num_buckets,
                               config.relative_attention_max_distance, both_sides)

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        self.weight = self.add_weight((config.num_heads, config.relative_attention_num_buckets),
                                      "glorot_uniform", name="weight")

    def call(self, queries: Tensor, keys: Tensor) -> Tensor:
        """float32 [1, N, Q, S], from the positions of queries, integer [Q], and keys [S]."""
        most = self.config.relative_attention_max_distance
        distance = ops.clip(keys[None, :] - queries[:, None], -most, most) + most   # [Q, S]
        bucket = ops.take(ops.convert_to_tensor(self.buckets), distance, axis=0)
        bias = ops.take(ops.transpose(self.weight), bucket, axis=0)                 # [Q, S, N]
        return ops.cast(ops.transpose(bias, (2, 0, 1)), "float32")[None]


class T5Attention(FromConfig, keras.layers.Layer):
    """x plus attention of its norm to itself, or to an encoder's output.

    Scores are not divided by the root of D: the initial queries are small instead. The first
    `num_fixed` heads have given maps, and neither queries nor keys.
    """

    def __init__(self, config: T5Config, num_fixed: int = 0, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.num_heads, self.num_fixed = config.num_heads, num_fixed
        factor, width, heads = config.initializer_factor, config.d_model, config.attention_width
        learned = heads - num_fixed * config.d_kv
        self.layer_norm = RMSNorm(config, dtype=self.dtype_policy)
        self.query, self.key, self.value, self.output_ = (
            self.dense(units, name, use_bias=False, initializer=keras.initializers.RandomNormal(
                stddev=factor * size**-0.5), inputs=inputs) for name, units, inputs, size in (
                    ("query", learned, width, width * config.d_kv), ("key", learned, width, width),
                    ("value", heads, width, width), ("output", width, heads, heads)))

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys, of learned heads, and values [B, N, S, D] of normed or encoded vectors [B, S,
        H]."""
        size = self.config.d_kv
        return split_heads(self.key(memory), size), split_heads(self.value(memory), size)

    def attend(self, normed: Tensor, keys: Tensor, values: Tensor, bias: Any,
               dropout_seed: Tensor | None = None, head_mask: Tensor | None = None
               ) -> tuple[Tensor, Tensor]:
        """Float [B, Q, H], and the attention probabilities [B, N, Q, S], before dropout.

        Args:
            normed: float [B, Q, H].
            keys, values: float [B, N, S, D].
            bias: float32, broadcast to [B, N, Q, S], added to the scores. With fixed heads, a pair:
                the learned heads' bias, and others' maps, float [B, F, S, S], without dropout.
            head_mask: float [N], a factor for each head's output; or float that broadcasts to [B,
                N, Q, D].
        """
        bias, maps = bias if self.num_fixed else (bias, None)
        query = split_heads(self.query(normed), self.config.d_kv)                   # [B, N, Q, D]
        scores = ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2)))
        probs = ops.cast(ops.softmax(ops.cast(scores, "float32") + bias), values.dtype)
        dropped = dropout(probs, self.config.dropout_rate, dropout_seed, shared=2)
        if maps is not None:
            maps = ops.cast(maps, probs.dtype)
            probs, dropped = (ops.concatenate([maps, each], 1) for each in (probs, dropped))
        context = mask_heads(ops.matmul(dropped, values), head_mask)                # [B, N, Q, D]
        return self.output_(join_heads(context, self.config.attention_width)), probs

    def call(self, x: Tensor, bias: Any, memory: Tensor | None = None,
             dropout_seed: Tensor | None = None, head_mask: Tensor | None = None
             ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Float [B, Q, H], attention probabilities [B, N, Q, S], keys and values [B, N, S, D]. x,
        float [B, Q, H], attends to `memory`, float [B, S, H]; None: to itself. For the other
        arguments see `attend`."""
        seeds = split_seed(dropout_seed, 2)
        normed = self.layer_norm(x)
        keys, values = self.keys_and_values(normed if memory is None else memory)
        y, probs = self.attend(normed, keys, values, bias, seeds[0], head_mask)
        y = dropout(y, self.config.dropout_rate, seeds[1], shared=1)
        return x + ops.cast(y, x.dtype), probs, [keys, values]


class T5FeedForward(FromConfig, keras.layers.Layer):
    """x plus two dense layers of its norm; the hidden one may be the product of two. In float16 the
    second layer computes in float32: sums of released models overflow float16."""

    def __init__(self, config: T5Config, **kwargs: Any):
        super().__init__(config, **kwargs)
        factor = config.initializer_factor
        self.layer_norm = RMSNorm(config, dtype=self.dtype_policy)
        self.hidden = [self.dense(config.d_ff, name, use_bias=False, initializer=truncated(factor))
                       for name in config.hidden_names]
        dtype = "float32" if self.compute_dtype == "float16" else self.dtype_policy
        self.wo = Dense(config.d_model, use_bias=False, name="wo", dtype=dtype,
                        kernel_initializer=truncated(factor))
        self.wo.width_read = config.d_ff

    def call(self, x: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """float [B, S, H] -> [B, S, H]."""
        seeds, rate = split_seed(dropout_seed, 2), self.config.dropout_rate
        normed = self.layer_norm(x)
        first, *others = (layer(normed) for layer in self.hidden)                   # [B, S, F]
        y = ACTIVATIONS["gelu" if others else "relu"](first)
        for other in others:
            y = y * other
        y = self.wo(dropout(y, rate, seeds[0], shared=1))
        return x + ops.cast(dropout(y, rate, seeds[1], shared=1), x.dtype)


class T5Layer(FromConfig, keras.layers.Layer):
    """Self-attention, attention to an encoder if `reads_encoder`, and a feed-forward network."""

    def __init__(self, config: T5Config, reads_encoder: bool = False, num_fixed: int = 0,
                 **kwargs: Any):
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.attention = T5Attention(config, num_fixed, name="attention", dtype=policy)
        self.cross_attention = None
        if reads_encoder:
            self.cross_attention = T5Attention(config, name="cross_attention", dtype=policy)
        self.feed_forward = T5FeedForward(config, name="feed_forward", dtype=policy)

    def call(self, x: Tensor, bias: Any, memory: Tensor | None = None,
             memory_bias: Tensor | None = None, dropout_seed: Tensor | None = None,
             head_masks: Sequence = (None, None)) -> dict[str, Any]:
        """Runs all positions of x, float [B, Q, H], with an encoder's output `memory`, float [B, S,
        H], whose `memory_bias`, float32, broadcasts to [B, N, Q, S]. `head_masks` are of
        self-attention and of attention to the encoder, see `T5Attention.attend`, as for `bias`.

        Returns:
            the vectors after each part, float [B, Q, H], by the part's name; `probs` and
                `cross_probs`, the attention probabilities [B, N, Q, Q] and [B, N, Q, S]; and
                `cache`, the keys and values of self-attention, [B, N, Q, D].
        """
        outputs: dict[str, Any] = {}
        seeds = split_seed(dropout_seed, 3)
        x, outputs["probs"], outputs["cache"] = self.attention(
            x, bias, None, seeds[0], head_masks[0])
        outputs["attention"] = x
        if self.cross_attention:
            x, outputs["cross_probs"], _ = self.cross_attention(
                x, memory_bias, memory, seeds[1], head_masks[1])
            outputs["cross_attention"] = x
        outputs["feed_forward"] = self.feed_forward(x, seeds[2])
        return outputs

    def step(self, x: Tensor, bias: Tensor, is_here: Tensor, cache: list[Tensor],
             memory: list[Tensor], memory_bias: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """Computes one token of each row, [B, 1, H], and the next cache, from those before it.

        Args:
            x: float [B, 1, H].
            bias: float32, broadcast to [B, N, 1, T].
            is_here: bool [B, 1, T, 1], the token's place in the cache.
            cache: keys and values of self-attention, float [B, N, T, D].
            memory: the encoder's keys and values, float [B, N, S, D]; empty without an encoder.
            memory_bias: float32, broadcast to [B, N, 1, S].
        """
        normed = self.attention.layer_norm(x)
        cache = [ops.where(is_here, new, old) for new, old in zip(
            self.attention.keys_and_values(normed), cache)]
        keys, values = cache
        x = x + ops.cast(self.attention.attend(normed, keys, values, bias)[0], x.dtype)
        if self.cross_attention:
            normed, (keys, values) = self.cross_attention.layer_norm(x), memory
            y, _ = self.cross_attention.attend(normed, keys, values, memory_bias)
            x = x + ops.cast(y, x.dtype)
        return self.feed_forward(x), cache


def hide(visible: Tensor) -> Tensor:
    """An addend of scores, float32: 0 where `visible`, bool [...], is True, else -1e9."""
    return ops.where(visible, 0.0, HIDDEN)


def same_segment(queries: Tensor, keys: Tensor) -> Tensor:
    """bool [B, 1, Q, S], from the segment numbers of queries [B, Q] and keys [B, S]."""
    return ops.equal(queries[:, None, :, None], keys[:, None, None, :])


class T5Embeddings(FromConfig, keras.layers.Layer):
    """The table of words, without positions and without a norm."""

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        self.word_embeddings = self.add_table("word_embeddings", config.vocab_size,
                                              keras.initializers.RandomNormal(
                                                  stddev=config.initializer_factor))

    def call(self, ids: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """integer [B, S] -> float [B, S, H]."""
        x = ops.take(ops.cast(self.word_embeddings, self.compute_dtype), ids, axis=0)
        # Residuals of released models are too large for float16, so they are summed in float32.
        if self.compute_dtype == "float16":
            x = ops.cast(x, "float32")
        return dropout(x, self.config.dropout_rate, dropout_seed, shared=1)


class T5Stack(FromConfig, keras.layers.Layer):
    """The layers of an encoder or of a decoder, their relative bias, and a norm."""

    def __init__(self, config: T5Config, is_encoder: bool, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.relative_bias = RelativeBias(
            config, is_encoder or config.architecture == "prefix_lm",
            name="relative_attention_bias", dtype=policy)
        count, num_fixed, reads_encoder = config.decoder_layers, 0, config.has_encoder
        if is_encoder:
            count, num_fixed, reads_encoder = config.num_layers, len(config.fixed_heads), False
        self.layers_: list[Any] = [T5Layer(config, reads_encoder, num_fixed, name=f"layer_{i}",
                                           dtype=policy) for i in range(count)]
        self.layer_norm = RMSNorm(config, dtype=policy)

    def call(self, x: Tensor, bias: Tensor, memory: Tensor | None = None,
             memory_bias: Tensor | None = None, dropout_seed: Tensor | None = None,
             head_masks: Sequence | None = None, maps: Tensor | None = None) -> dict[str, Any]:
        """Runs all positions of embeddings, float [B, T, H].

        Args:
            bias: of the mask, float32, broadcast to [B, N, T, T].
            memory, memory_bias, head_masks: see `T5Layer`; masks for each layer.
            maps: of the encoder's fixed heads, float [B, F, T, T].

        Returns:
            `output`, float [B, T, H], normed; and `layers`, a list of `T5Layer`'s dicts.
        """
        seeds, places = split_seed(dropout_seed, 1 + len(self.layers_)), ops.arange(ops.shape(x)[1])
        relative: Any = self.relative_bias(places, places)
        bias = relative + bias if maps is None else (relative[:, maps.shape[1]:] + bias, maps)
        layers: list[dict] = []
        masks = head_masks or [(None, None)] * len(self.layers_)
        for layer, seed, of_layer in zip(self.layers_, seeds[1:], masks):
            layers.append(layer(x, bias, memory, memory_bias, seed, of_layer))
            x = layers[-1]["feed_forward"]
        x = dropout(self.layer_norm(x), self.config.dropout_rate, seeds[0], shared=1)
        return {"output": x, "layers": layers}

    def step(self, x: Tensor, places: Tensor, cache: list[Tensor], memory: list[Tensor],
             memory_bias: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """Computes one token of each row, float [B, 1, H], normed, and the next cache.

        Args:
            x: its embedding, float [B, 1, H].
            places: its place in the sequence, integer [B].
            cache: each layer's keys and values, one after the other, float [B, N, T, D].
            memory, memory_bias: see `T5Layer.step`, for each layer.
        """
        keys = ops.arange(ops.shape(cache[0])[2], dtype="int32")                    # [T]
        bias = ops.transpose(self.relative_bias(places, keys), (2, 1, 0, 3))        # [B, N, 1, T]
        bias = bias + hide(keys[None] <= places[:, None])[:, None, None, :]
        is_here = (keys[None] == places[:, None])[:, None, :, None]                 # [B, 1, T, 1]
        after: list[Tensor] = []
        for i, layer in enumerate(self.layers_):
            x, rows = layer.step(x, bias, is_here, cache[2 * i:2 * i + 2],
                                 memory[2 * i:2 * i + 2], memory_bias)
            after += rows
        return self.layer_norm(x), after
