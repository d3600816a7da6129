"""The layers of a Transformer encoder (arXiv:1706.03762; google-research/bert, `modeling.py`).

Shapes: B batch, S sequence, H hidden, E width of the embeddings, N heads, D = H / N width of a
head, F width of the feed-forward layer, V vocabulary. Variables have google-research/bert's names.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from bert_tf.config import BertConfig, Sizes
from bert_tf.layers.base import FromConfig, Tensor, register, variant
from bert_tf.layers.functions import (
    ACTIVATIONS,
    attend_with_dropout,
    dropout,
    is_prediction,
    split_seed,
)


@register
class LayerNorm(FromConfig, keras.layers.Layer):
    """Layer normalisation of the last axis, of `width` (None: H), in float32 for every input
    (arXiv:1607.06450).

    Keras's own layer rounds gamma and beta to the compute dtype first, and is a third slower.
    """

    config_keys = ("width",)

    def __init__(self, config: Sizes, width: int | None = None, name: str = "LayerNorm",
                 **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.width = width

    def build(self, input_shape: Any = None) -> None:
        shape = (self.width or self.config.hidden_size,)
        self.gamma = self.add_weight(shape, "ones", name="gamma")
        self.beta = self.add_weight(shape, "zeros", name="beta")

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:
        """float [..., width] -> [..., width] in the compute dtype."""
        gamma = ops.cast(self.gamma, "float32")
        if keras.config.backend() == "tensorflow" and not is_prediction(training):
            x = ops.custom_gradient(self._scaled)(x, gamma)
        else:
            x = self._scaled(x, gamma)[0]
        return ops.cast(x + ops.cast(self.beta, "float32"), self.compute_dtype)

    def _scaled(self, x, gamma):
        """The normalised x times gamma, float32, and its gradient, which keeps x alone. It makes
        the normalised x in another form, since TensorFlow keeps what two equal ones compute."""
        def mean(y):
            return ops.mean(y, axis=-1, keepdims=True)                              # [..., 1]

        centred = ops.cast(x, "float32")
        centre = mean(centred)
        centred = centred - centre
        factor = ops.rsqrt(mean(ops.square(centred)) + self.epsilon)

        def gradient(upstream):
            again = (ops.cast(-x, "float32") + centre) * -factor
            slope = upstream * gamma
            slope = slope - mean(slope) - again * mean(slope * again)
            return (ops.cast(slope * factor, x.dtype),
                    ops.sum(upstream * again, axis=tuple(range(len(x.shape) - 1))))

        return centred * factor * gamma, gradient

    @property
    def epsilon(self) -> float:
        return self.config.layer_norm_eps


@register
class Embeddings(FromConfig, keras.layers.Layer):
    """The normalised sum of the embeddings of words, segments and positions (google-research/bert,
    `embedding_postprocessor`)."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.norm = LayerNorm(config, config.embedding_output_width, dtype=self.dtype_policy)

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        return None, None, self.config.embedding_output_width

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        self.word_embeddings = self.add_table("word_embeddings", config.vocab_size)
        self.segment_embeddings = self.add_table("token_type_embeddings", config.type_vocab_size)
        self.position_embeddings = self.add_table("position_embeddings",
                                                  config.max_position_embeddings)
        super().build()

    def call(self, input_ids: Tensor, segment_ids: Tensor | None = None,
             dropout_seed: Tensor | None = None, positions: Tensor | None = None,
             words: Tensor | None = None) -> Tensor:
        """Returns float [B, S, E].

        Args:
            input_ids: integer [B, S].
            segment_ids: integer [B, S]; None: all zero.
            positions: integer [B, S]; None: from 0 in each row.
            words: float [B, S, E] in place of `look_up(input_ids)`.

        Raises:
            ValueError: S is larger than `max_position_embeddings`.
        """
        x, places = self.rows(input_ids, positions, words)
        x = x + segment_vectors(self.segment_embeddings, segment_ids, x.dtype) + places
        return self.normalise(x, dropout_seed)

    def look_up(self, input_ids: Tensor) -> Tensor:
        """The vectors of words, float [B, S, E]."""
        return ops.take(self.word_embeddings, input_ids, axis=0)

    def rows(self, input_ids: Tensor, positions: Tensor | None, words: Tensor | None
             ) -> tuple[Tensor, Tensor]:
        """Returns the vectors of words, and of positions [B, S, E] or [S, E]; see `call`."""
        length = check_length(input_ids, self.config)
        x = self.look_up(input_ids) if words is None else words
        return x, (self.position_embeddings[:length] if positions is None
                   else ops.take(self.position_embeddings, positions, axis=0))

    def normalise(self, x: Tensor, dropout_seed: Tensor | None) -> Tensor:
        """Normalises a sum of embeddings, float [B, S, E], and applies dropout."""
        # Of two axes here: else XLA lays the batch out last in all layers, and transposes for each
        # product (5% of a step on an H200).
        x = ops.reshape(self.norm(ops.reshape(x, (-1, x.shape[-1]))), ops.shape(x))
        return dropout(x, self.config.hidden_dropout_prob, dropout_seed)


def check_length(input_ids: Tensor, config: Any) -> Any:
    """Returns S of ids [B, S]. Raises ValueError if it is known, and larger than the
    `max_position_embeddings` of a network."""
    length, longest = ops.shape(input_ids)[1], config.max_position_embeddings
    if isinstance(length, int) and length > longest:
        raise ValueError(f"the input is {length} tokens long, but max_position_embeddings is "
                         f"{longest}; shorten the input.")
    return length


def segment_vectors(table: Tensor, segment_ids: Tensor | None, dtype: Any) -> Tensor:
    """Returns the rows of a table [segments, E] for integer ids [B, S]: [B, S, E]. The first row,
    [E], without ids."""
    if segment_ids is None:
        return table[0]
    # As in the original: for a few rows, a product is faster than a gather.
    return ops.matmul(ops.one_hot(segment_ids, table.shape[0], dtype=dtype), table)


def padding_bias(input_mask: Tensor, low: float = -10000.0) -> Tensor:
    """Returns an addend of attention scores that hides padding, float32 [B, 1, 1, S]: 0 for tokens
    and `low`, by default the original's constant, for padding. A mask [B, S, S], of the tokens that
    each token sees, gives [B, 1, S, S]."""
    rows = input_mask[:, None] if len(input_mask.shape) == 3 else input_mask[:, None, None, :]
    return (1.0 - ops.cast(rows, "float32")) * low


@register
class SelfAttention(FromConfig, keras.layers.Layer):
    """Softmax(Q K^T / sqrt(D) + bias) V in N heads (google-research/bert, `attention_layer`)."""

    def __init__(self, config: Sizes, num_heads: int | None = None, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.num_heads = config.num_attention_heads if num_heads is None else num_heads
        self.query, self.key, self.value = map(self.make_projection, ("query", "key", "value"))

    def make_projection(self, name: str) -> keras.layers.Dense | None:
        return self.dense(self.num_heads * self.config.head_size, name)

    def call(self, x: Tensor, bias: Tensor | None = None, dropout_seed: Tensor | None = None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the heads' outputs and their attention.

        Args:
            x: float [B, S, H].
            bias: float, broadcast to [B, N, S, S], added to the scores.

        Returns:
            [B, S, N * D], and a dict of [B, N, S, S]: `attention_probs`, before dropout, the
            softmax of `attention_scores`, float32.
        """
        return self.look(x, x, bias, dropout_seed)

    def look(self, x: Tensor, seen: Tensor, bias: Tensor | None, dropout_seed: Tensor | None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        """As `call`, for tokens [B, Q, H] that look at the tokens `seen` [B, S, H]: [B, Q, N * D].
        """
        def split(y):  # [B, S, N * D] -> [B, S, N, D]
            return ops.reshape(y, (*ops.shape(y)[:2], self.num_heads, size))

        size = self.config.head_size
        query, key, value = (
            split(y) for y in (self.query(x) * size**-0.5, self.key(seen), self.value(seen)))
        context, maps = (variant("attention", self.config) or attend)(
            query, key, value, bias, self.config.attention_probs_dropout_prob, dropout_seed)
        return ops.reshape(context, (*ops.shape(x)[:2], self.num_heads * size)), maps


def attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, rate: float,
           dropout_seed: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
    """Returns dropout(softmax(query key^T + bias)) value, [B, S, N, D], and `SelfAttention`'s dict,
    from queries, keys and values [B, S, N, D]."""
    query = ops.transpose(query, (0, 2, 1, 3))                                      # [B, N, S, D]
    key = ops.transpose(key, (0, 2, 3, 1))                                          # [B, N, D, S]
    value = ops.transpose(value, (0, 2, 1, 3))                                      # [B, N, S, D]
    scores = ops.cast(ops.matmul(query, key), "float32")                            # [B, N, S, S]
    if bias is not None:
        scores = scores + bias
    probs, context = attend_with_dropout(scores, rate, dropout_seed, value)
    context = ops.transpose(context, (0, 2, 1, 3))
    return context, {"attention_probs": probs, "attention_scores": scores}


def gather(x: Tensor, positions: Tensor) -> Tensor:
    """Gathers rows [B, P, H] of x [B, S, H] with one gather of whole rows, as in the original."""
    batch, length, width = ops.shape(x)
    starts = ops.expand_dims(ops.arange(batch, dtype="int32") * length, axis=1)     # [B, 1]
    rows = ops.cast(positions, "int32") + starts                                    # [B, P]
    return ops.take(ops.reshape(x, (-1, width)), rows, axis=0)


def split_heads(x: Tensor, size: int) -> Tensor:
    """[B, S, N * D] -> [B, N, S, D], for D = `size`."""
    batch, length, width = ops.shape(x)
    return ops.transpose(ops.reshape(x, (batch, length, width // size, size)), (0, 2, 1, 3))


def join_heads(context: Tensor, width: int) -> Tensor:
    """[B, N, S, D] -> [B, S, N * D], for N * D = `width`."""
    context = ops.transpose(context, (0, 2, 1, 3))
    return ops.reshape(context, (*ops.shape(context)[:2], width))


@register
class Residual(FromConfig, keras.layers.Layer):
    """A projection from `input_size` to H, dropout, the sum with the residual, and its
    normalisation."""

    config_keys = ("input_size",)

    def __init__(self, config: BertConfig, input_size: int, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.input_size = input_size
        self.projection = self.dense(config.hidden_size, inputs=input_size)
        self.norm = LayerNorm(config, dtype=self.dtype_policy)

    def call(self, x: Tensor, residual: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """[B, S, input_size] and the residual [B, S, H] -> [B, S, H]."""
        x = dropout(self.projection(x), self.dropout_rate, dropout_seed)
        return self.norm(x + residual)

    @property
    def dropout_rate(self) -> float:
        return self.config.hidden_dropout_prob


@register
class TransformerLayer(FromConfig, keras.layers.Layer):
    """Self-attention and a feed-forward network, each normalised after its residual."""

    attention_class: Any = SelfAttention
    scopes = {**dict.fromkeys(("attention", "attention_output"), "attention"),
              "intermediate": "intermediate"}

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.make_attention(config.num_attention_heads)
        self.make_feed_forward(config.intermediate_size)

    def make_attention(self, heads: int) -> None:
        """Makes attention of some heads, and the layer after it."""
        self.attention = self.attention_class(self.config, heads, name="self",
                                              dtype=self.dtype_policy)
        self.attention_output = Residual(self.config, heads * self.config.head_size, name="output",
                                         dtype=self.dtype_policy)

    def make_feed_forward(self, width: int) -> None:
        """Makes a feed-forward network, F = `width`."""
        self.intermediate = self.dense(width, activation=ACTIVATIONS[self.config.hidden_act])
        self.output_ = Residual(self.config, width, name="output", dtype=self.dtype_policy)

    def call(self, x: Tensor, bias: Tensor | None = None, dropout_seed: Tensor | None = None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns float [B, S, H], and `SelfAttention`'s dict."""
        seeds = split_seed(dropout_seed, 3)
        context, maps = self.attention(x, bias, seeds[0])                          # [B, S, N * D]
        x = self.attention_output(context, x, seeds[1])
        return self.output_(self.intermediate(x), x, seeds[2]), maps


@register
class PredictionLayer(FromConfig, keras.layers.Layer):
    """The hidden layer that makes the vectors that predict tokens, of width X, in general E."""

    part: str | None = None

    def __init__(self, config: Sizes, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.make_parts()

    def make_parts(self) -> None:
        width = self.config.prediction_width
        activation = self.config.prediction_act or self.config.hidden_act
        self.transform = self.dense(width, activation=ACTIVATIONS[activation])
        self.norm = LayerNorm(self.config, width, dtype=self.dtype_policy)

    def call(self, x: Tensor) -> Tensor:
        """float [..., H] -> [..., X]."""
        return self.norm(self.transform(x))


def rematerialized(layer: Callable, x: Tensor, bias: Any, dropout_seed: Tensor | None
                   ) -> tuple[Tensor, dict[str, Tensor]]:
    """Returns the output of a layer with `TransformerLayer`'s interface, [B, S, H], and no maps.

    Only the layer's inputs are kept for the backward pass, which computes the layer again
    (arXiv:1604.06174). `bias` gets no gradient; tensors that a `functools.partial` binds do.
    """
    inputs = {"x": x, **getattr(layer, "keywords", {}), "seed": dropout_seed}
    if dropout_seed is not None:
        # The backward pass draws masks again if the seed is an argument, and keeps them otherwise.
        # TensorFlow's gradients take no integers; float64, which JAX lacks, holds a seed exactly.
        inputs["seed"] = ops.cast(dropout_seed, "float64" if keras.config.backend() == "tensorflow"
                                  else dropout_seed.dtype)
    inputs = {name: value for name, value in inputs.items() if value is not None}

    def run(*values):
        bound = dict(zip(inputs, values))
        x, seed = bound.pop("x"), bound.pop("seed", None)
        return layer(x, bias, None if seed is None else ops.cast(seed, dropout_seed.dtype),
                     **bound)[0]

    return keras.remat(run)(*inputs.values()), {}
