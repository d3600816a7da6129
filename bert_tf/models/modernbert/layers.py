"""The layers of ModernBERT (arXiv:2412.13663; AnswerDotAI/ModernBERT, src/bert_layers).

Shapes: B batch, S sequence, H hidden, N heads, D = H / N width of a head, F width of each half of
the gated feed-forward layer, W window: the farthest distance in a local layer, K tokens of a block,
T = ceil(S / K) blocks.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from bert_tf.bert.layers import Embeddings, LayerNorm, PredictionLayer, attend
from bert_tf.layers.base import FromConfig, Tensor, variant
from bert_tf.layers.changes import mask_joined_heads, may_branch
from bert_tf.layers.encoder import EncoderEmbeddings
from bert_tf.layers.functions import (
    ACTIVATIONS,
    attend_with_dropout,
    dropout,
    slice_axis,
    split_seed,
)
from bert_tf.models.modernbert.config import LOCAL, ModernBertConfig

HIDDEN = -1e9       # the score of a token that is not seen
# The least width of a block: narrower ones make many small products.
_LEAST_BLOCK = 64
# Queries of a global layer that are compared with all keys at once, in rows of more than `_WHOLE`
# tokens.
_QUERIES, _WHOLE = 256, 1024


class Scale(LayerNorm):
    """Layer normalisation without an addend."""

    beta = 0.0

    def build(self, input_shape: Any = None) -> None:
        self.gamma = self.add_weight((self.config.hidden_size,), "ones", name="gamma")


def make_norm(config: ModernBertConfig, **kwargs: Any) -> LayerNorm:
    """Makes a norm, with an addend if `norm_bias` says so."""
    return (LayerNorm if config.norm_bias else Scale)(config, **kwargs)


def no_bias(shape: Any, initializer: Any, name: str) -> float:
    """In place of adding a bias of the language model's logits."""
    return 0.0


class Seen(NamedTuple):
    """What every layer's attention gets.

    Attributes:
        turns: cosine and sine of the rotary angles of each kind of layer, float32
            [1 or B, S, 1, D / 2].
        biases: of each kind, an addend of scores that hides tokens, float32 [B or 1, N or 1, S or
            1, S], or None; of local layers in blocks [B or 1, 1, T, K, K + 2 W].
        in_blocks: whether local layers compute blocks, and global ones parts of long sequences.
    """

    turns: Mapping[str, tuple[Tensor, Tensor]]
    biases: Mapping[str, Tensor | None]
    in_blocks = False


class SeenInBlocks(Seen):
    """`Seen` where local layers compute blocks."""

    in_blocks = True


def rotary_angles(config: ModernBertConfig, positions: Tensor, growth: Tensor | None = None
                  ) -> dict[str, tuple[Tensor, Tensor]]:
    """`Seen.turns` for positions, integer [1 or B, S]; float32 for every dtype of the network. The
    frequencies are rounded where the original rounds them, which shows in long texts. With a factor
    `growth` of the range of positions the bases are larger: those of NTK-aware scaling."""
    half = (np.arange(0, config.head_size, 2) / config.head_size).astype("float32")
    places, turns = ops.cast(positions, "float32")[:, :, None, None], {}
    for kind, theta in config.thetas.items():
        wavelengths = np.power(np.float32(theta), half, dtype="float64").astype("float32")
        angles = places * ops.convert_to_tensor(1 / wavelengths)
        if growth is not None:
            angles = angles * ops.power(
                growth, -half * config.head_size / max(config.head_size - 2, 1))
        turns[kind] = ops.cos(angles), ops.sin(angles)
    return turns


def rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Turns pairs (j, j + D / 2) of queries or keys [B, S, N, D] in float32 (arXiv:2104.09864)."""
    cosine, sine = turn
    first, second = ops.split(ops.cast(x, "float32"), 2, axis=-1)
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    return ops.cast(ops.concatenate(turned, axis=-1), x.dtype)


def block_width(config: ModernBertConfig) -> int:
    """K: the number of queries of a local layer that are compared with the same keys."""
    return max(config.window, _LEAST_BLOCK)


def blocks_of(x: Tensor, width: int, around: int = 0) -> Tensor:
    """[B, S, ...] -> [B, T, width + 2 around, ...]: blocks, and some places beside each on both
    sides, with zeros outside of the sequence. `around` is at most `width`."""
    batch, length, *rest = ops.shape(x)
    count = (length + width - 1) // width       # ops would make a number a tensor on JAX
    size = count * width
    x = ops.pad(x, [(0, 0), (around, size - length + around), *[(0, 0)] * len(rest)])

    if not around:
        return ops.reshape(x, (batch, count, width, *rest))

    def cut(start):
        return ops.reshape(slice_axis(x, 1, start, size), (batch, count, width, *rest))

    before, own, after = cut(0), cut(around), cut(2 * around)
    if around < width:
        before, after = before[:, :, :around], after[:, :, width - around:]
    return ops.concatenate([before, own, after], axis=2)


def block_bias(config: ModernBertConfig, is_token: Tensor, sequences: Tensor | None = None
               ) -> Tensor:
    """The addend of scores of local layers in blocks, float32 [B, 1, T, K, K + 2 W], from bool or
    integer [B, S]: which places hold tokens. Tokens of other `sequences`, integer [B, S], are
    hidden."""
    width, window = block_width(config), config.window
    keys = ops.cast(blocks_of(ops.cast(is_token, "float32"), width, window), "bool")
    distance = np.arange(width)[:, None] - np.arange(-window, width + window)[None]     # [K, ...]
    seen = ops.logical_and(keys[:, :, None], ops.convert_to_tensor(np.abs(distance) <= window))
    if sequences is not None:
        own, others = blocks_of(sequences, width), blocks_of(sequences, width, window)
        seen = ops.logical_and(seen, ops.equal(own[..., None], others[:, :, None]))
    return ops.where(seen, 0.0, HIDDEN)[:, None]


def band_bias(length: Any, window: int) -> Tensor:
    """The same without blocks, for all places: float32 [1, 1, S, S]."""
    places = ops.arange(length)
    distance = ops.abs(places[:, None] - places[None])
    return ops.where(distance <= window, 0.0, HIDDEN)[None, None]


def attend_in_blocks(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, window: int,
                     rate: float, dropout_seed: Tensor | None) -> Tensor:
    """Attention of a local layer, whose time and memory grow with S: [B, S, N, D] from three such
    tensors and `block_bias`."""
    def look(query, key, value):
        width, (batch, length, heads, size) = bias.shape[3], ops.shape(query)
        query = ops.transpose(blocks_of(query, width), (0, 3, 1, 2, 4))         # [B, N, T, K, D]
        key = ops.transpose(blocks_of(key, width, window), (0, 3, 1, 4, 2))
        value = ops.transpose(blocks_of(value, width, window), (0, 3, 1, 2, 4))
        scores = ops.cast(ops.matmul(query, key), "float32") + bias
        _, context = attend_with_dropout(scores, rate, dropout_seed, value)
        context = ops.transpose(context, (0, 2, 3, 1, 4))                       # [B, T, K, N, D]
        return ops.reshape(context, (batch, -1, heads, size))[:, :length]

    if dropout_seed is not None and not rate:
        # Blocks hold each key and value three times: the backward pass makes them again.
        look = keras.remat(look)
    return look(query, key, value)


class RotaryAttention(FromConfig, keras.layers.Layer):
    """Self-attention of layer `number`, with rotary positions, behind a norm but in layer 0."""

    def __init__(self, config: ModernBertConfig, number: int, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.number, self.kind = number, config.kinds[number]
        self.num_heads = config.num_attention_heads
        self.make_parts()

    def make_parts(self) -> None:
        config = self.config
        self.layer_norm: Any = None
        if self.number:
            self.layer_norm = make_norm(config, dtype=self.dtype_policy)
        self.qkv = self.dense(3 * config.hidden_size, "qkv", use_bias=config.attention_bias)

    @property
    def value(self) -> keras.layers.Dense:
        """The projection whose last columns are the values."""
        return self.qkv

    def split(self, joined: Tensor) -> list[Tensor]:
        """The outputs of `qkv` -> queries, keys and values [B, S, N, D]."""
        shape = (*ops.shape(joined)[:2], self.num_heads, self.config.head_size)
        return [ops.reshape(part, shape) for part in ops.split(joined, 3, axis=-1)]

    def call(self, x: Tensor, seen: Seen, dropout_seed: Tensor | None = None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        """float [B, S, H] -> the heads' outputs [B, S, H], and `bert.layers.SelfAttention`'s
        dict, which is empty of a layer in blocks."""
        config = self.config
        if self.layer_norm:
            x = self.layer_norm(x)
        query, key, value = self.split(self.qkv(x))
        turn, bias, maps = seen.turns[self.kind], seen.biases[self.kind], {}
        scaled = tuple(part * config.head_size**-0.5 for part in turn)
        query, key = rotate(query, scaled), rotate(key, turn)
        rate = config.attention_probs_dropout_prob
        if self.kind == LOCAL and seen.in_blocks:
            context = attend_in_blocks(query, key, value, bias, config.window, rate, dropout_seed)
        else:
            context, maps = _attend(config, query, key, value, bias, rate, dropout_seed,
                                    seen.in_blocks)
        return ops.reshape(context, ops.shape(x)), maps


def _attend(config, query, key, value, bias, rate, seed, in_parts):
    """Attention of all tokens to all; long sequences `in_parts` take the queries part by part,
    which returns no maps, and the backward pass computes the scores of a part again."""
    function = variant("attention", config) or attend
    length, arguments = query.shape[1], (query, key, value, bias, rate, seed)
    if not isinstance(length, int) and in_parts and seed is None and may_branch() and (
            bias is None or bias.shape[2] == 1):
        return ops.cond(ops.shape(query)[1] > _WHOLE,
                        lambda: _attend_in_turn(query, key, value, bias),
                        lambda: function(*arguments)[0]), {}
    if not in_parts or not isinstance(length, int) or length <= _WHOLE or (
            seed is not None and (rate or function is not attend)):
        return function(*arguments)
    parts = []
    for start in range(0, length, _QUERIES):
        part, seen = slice(start, start + _QUERIES), bias
        if bias is not None and bias.shape[2] > 1:      # queries do not see the same keys
            seen = bias[:, :, part]

        def look(query, key, value, seen=seen):
            return attend(query, key, value, seen, 0.0, None)[0]

        if seed is not None:
            look = keras.remat(look)
        parts.append(look(query[:, part], key, value))
    return ops.concatenate(parts, axis=1), {}


def _attend_in_turn(query, key, value, bias):
    """The same by a loop, in prediction with a length that the graph leaves open."""
    batch, length, heads, size = ops.shape(query)
    parts = ops.transpose(blocks_of(query, _QUERIES), (1, 0, 3, 2, 4))          # [T, B, N, K, D]
    key, value = ops.transpose(key, (0, 2, 3, 1)), ops.transpose(value, (0, 2, 1, 3))
    count = ops.shape(parts)[0]

    def look(number, parts):
        scores = ops.cast(ops.matmul(parts[0], key), "float32")                 # [B, N, K, S]
        if bias is not None:
            scores = scores + bias
        context = ops.matmul(ops.cast(ops.softmax(scores), value.dtype), value)
        # In place of the first part, so that TensorFlow can't begin the next one before.
        return number + 1, ops.concatenate([parts[1:], context[None]])

    _, parts = ops.while_loop(lambda number, _: number < count, look, (0, parts), count)
    return ops.reshape(ops.transpose(parts, (1, 0, 3, 2, 4)), (batch, -1, heads, size))[:, :length]


class ModernBertLayer(FromConfig, keras.layers.Layer):
    """Attention and a gated feed-forward network, each behind a norm, and added to its input."""

    attention_class: Any = RotaryAttention
    norm_class: Any = staticmethod(make_norm)
    scopes = {"attention": "attention", "attention_output": "attention output",
              "intermediate": "intermediate", "output_": "output"}

    def __init__(self, config: ModernBertConfig, number: int, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.attention = self.attention_class(config, number, name="self", dtype=policy)
        self.attention_output = self.dense(config.hidden_size, use_bias=config.attention_bias,
                                           initializer=config.output_initializer)
        self.norm = self.norm_class(config, dtype=policy)
        self.intermediate = self.dense(2 * config.intermediate_size, use_bias=config.mlp_bias)
        self.output_ = self.dense(config.hidden_size, use_bias=config.mlp_bias,
                                  initializer=config.output_initializer,
                                  inputs=config.intermediate_size)

    def build(self, input_shape: Any = None) -> None:
        if self.attention.layer_norm:       # whose name is not within "self"
            with keras.name_scope("attention"):
                self.attention.layer_norm.build()
        super().build()

    def call(self, x: Tensor, bias: Seen, dropout_seed: Tensor | None = None,
             head_mask: Tensor | None = None, unit_mask: Tensor | None = None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        """float [B, S, H] -> the same shape, and the attention's dict; for the masks of heads and
        inner units see `layers.changes`."""
        config, seeds = self.config, split_seed(dropout_seed, 3)
        context, maps = self.attention(x, bias, seeds[0])
        context = mask_joined_heads(context, config.head_size, head_mask)
        x = x + dropout(self.attention_output(context), config.attention_output_dropout_prob,
                        seeds[1])
        inner = self.gated(self.norm(x), unit_mask, dropout_seed is not None)
        inner = dropout(inner, config.hidden_dropout_prob, seeds[2])
        return x + self.output_(inner), maps

    def gated(self, x: Tensor, unit_mask: Tensor | None, is_training: bool) -> Tensor:
        """float [B, S, H] -> the units of the feed-forward network [B, S, F], which the backward
        pass computes again."""
        def multiply(both):
            inner, gate = ops.split(both, 2, axis=-1)                           # [B, S, F]
            return ACTIVATIONS[self.config.hidden_act](inner) * gate

        if is_training:
            multiply = keras.remat(multiply)
        inner = multiply(self.intermediate(x))
        if unit_mask is not None:
            inner = inner * ops.cast(unit_mask, inner.dtype)
        return inner


class ModernBertEmbeddings(EncoderEmbeddings):
    """The normalised embeddings of words; there are none of positions and segments."""

    def __init__(self, config: ModernBertConfig, **kwargs: Any):
        super(Embeddings, self).__init__(config, **kwargs)      # whose norm has an addend
        self.norm = make_norm(config, dtype=self.dtype_policy)
        self.make_ranges()

    def normalise(self, x: Tensor, dropout_seed: Tensor | None) -> Tensor:
        return dropout(self.norm(x), self.config.embedding_dropout_prob, dropout_seed)


class HiddenLayer(PredictionLayer):
    """The hidden layer of every head."""

    part = "pooler"

    def make_parts(self) -> None:
        config = self.config
        self.transform = self.dense(
            config.hidden_size, activation=ACTIVATIONS[config.classifier_activation],
            use_bias=config.classifier_bias, initializer=config.output_initializer)
        self.norm = make_norm(config, dtype=self.dtype_policy)
