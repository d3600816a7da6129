"""The layers of a Transformer encoder (arXiv:1706.03762; google-research/bert, `modeling.py`).

Shapes: B batch, S sequence, H hidden, E width of the embeddings, N heads, D = H / N width of a
head, F width of the feed-forward layer, V vocabulary. Variables have google-research/bert's names.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from bert_tf.config import EncoderConfig, Sizes
from bert_tf.layers.activations import ACTIVATIONS
from bert_tf.layers.base import FromConfig, Tensor, register
from bert_tf.layers.masks import add_noise
from bert_tf.layers.quantisation import RoundsTables
from bert_tf.layers.seeds import dropout, softmax_and_dropout, split_seed


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

    def call(self, x: Tensor) -> Tensor:
        """float [..., width] -> [..., width] in the compute dtype."""
        x = ops.cast(x, "float32")
        x = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(x), axis=-1, keepdims=True)                  # [..., 1]
        x = x * ops.rsqrt(variance + self.epsilon)
        x = x * ops.cast(self.gamma, "float32") + ops.cast(self.beta, "float32")
        return ops.cast(x, self.compute_dtype)

    @property
    def epsilon(self) -> float:
        """The addend of the variance."""
        return self.config.layer_norm_eps


@register
class Embeddings(RoundsTables, FromConfig, keras.layers.Layer):
    """The normalised sum of the embeddings of words, segments and positions (google-research/bert,
    `embedding_postprocessor`), and of tasks, if the configuration has any (PaddlePaddle/ERNIE,
    model/ernie.py).

    `idle_id` is a token whose vector gets no gradient, like `padding_idx` of torch.nn.Embedding; a
    learner may set it.
    """

    idle_id: int | None = None

    def __init__(self, config: EncoderConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.norm = LayerNorm(config, config.embedding_width, dtype=self.dtype_policy)
        self.make_ranges()

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        return None, None, self.config.embedding_width

    def build(self, input_shape: Any = None) -> None:
        width = self.config.embedding_width

        def table(name, rows, initializer=None):
            return self.add_weight((rows, width), initializer, name=name)

        self.word_embeddings = table("word_embeddings", self.config.vocab_size)
        self.segment_embeddings: Any = None
        if self.config.segment_types:
            self.segment_embeddings = table("token_type_embeddings", self.config.segment_types,
                                            None if self.config.has_segments else "zeros")
        self.position_embeddings = table("position_embeddings", self.config.max_position_embeddings)
        self.task_embeddings = None
        if self.config.task_types:
            self.task_embeddings = table("task_type_embeddings", self.config.task_types)
        self.norm.build()
        if self.ranges:
            self.ranges.build()

    def call(self, input_ids: Tensor, segment_ids: Tensor | None = None,
             dropout_seed: Tensor | None = None, task_ids: Tensor | None = None,
             training: bool = False, positions: Tensor | None = None,
             word_noise: Tensor | None = None) -> Tensor:
        """Returns float [B, S, E].

        Args:
            input_ids: integer [B, S].
            segment_ids: integer [B, S]; all zero if None, or if `has_segments` is false.
            task_ids: integer [B, S] or [B, 1]; None: all zero.
            training: whether this is a training step, which a quantisation may not yet affect.
            positions: integer [B, S]; None: from 0 in each row.
            word_noise: float [B, S, E], added to the vectors of words.

        Raises:
            ValueError: S is larger than `max_position_embeddings`.
        """
        length = check_length(input_ids, self.config)
        x = ops.take(self.word_embeddings, input_ids, axis=0)                       # [B, S, E]
        if self.idle_id is not None:
            x = ops.where(ops.equal(input_ids, self.idle_id)[:, :, None], ops.stop_gradient(x), x)
        x = add_noise(x, word_noise)
        places = (self.position_embeddings[:length] if positions is None            # [S, E]
                  else ops.take(self.position_embeddings, positions, axis=0))
        x, places = self.round_rows(x, places, training)
        if self.segment_embeddings is not None:
            x = x + self._segments(segment_ids, x.dtype)
        x = x + places
        if self.task_embeddings is not None:
            x = x + (self.task_embeddings[0] if task_ids is None
                     else ops.take(self.task_embeddings, task_ids, axis=0))
        # Of two axes here: else XLA lays the batch out last in all layers, and transposes for each
        # product (5% of a step on an H200).
        x = ops.reshape(self.norm(ops.reshape(x, (-1, x.shape[-1]))), ops.shape(x))
        return dropout(x, self.config.hidden_dropout_prob, dropout_seed)

    def _segments(self, segment_ids, dtype):
        """Returns the embeddings of segments, [B, S, E] or [E]."""
        if not self.config.has_segments:
            return ops.stop_gradient(self.segment_embeddings[0])
        return segment_vectors(self.segment_embeddings, segment_ids, dtype)


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


@register
class SelfAttention(FromConfig, keras.layers.Layer):
    """Softmax(Q K^T / sqrt(D) + bias) V in N heads (google-research/bert, `attention_layer`).

    `num_heads` is N, by default the configuration's; 0 where all heads were cut.
    """

    config_keys = ("num_heads",)

    def __init__(self, config: Sizes, num_heads: int | None = None, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.num_heads = config.num_attention_heads if num_heads is None else num_heads
        make: Any = self.make_projection if self.num_heads else lambda name: None
        self.query, self.key, self.value = map(make, ("query", "key", "value"))

    def make_projection(self, name: str) -> keras.layers.Dense | None:
        """Makes the projection to the queries, keys or values of all heads."""
        return self.dense(self.num_heads * self.config.head_size, name)

    def build(self, input_shape: Any = None) -> None:
        for layer in (self.query, self.key, self.value):
            if layer:
                layer.build((None, None, self.config.hidden_size))

    def call(self, x: Tensor, bias: Tensor | None = None, head_mask: Tensor | None = None,
             dropout_seed: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the heads' outputs and their attention.

        Args:
            x: float [B, S, H].
            bias: float, broadcast to [B, N, S, S], added to the scores.
            head_mask: float [N], a factor for each head's output; or float that broadcasts to
                [B, N, S, D].

        Returns:
            [B, S, N * D], and a dict of [B, N, S, S]: `attention_probs`, before dropout, the
            softmax of `attention_scores`, float32.
        """
        batch, length = ops.shape(x)[:2]
        heads, size = self.num_heads, self.config.head_size
        if not heads:
            nothing = ops.zeros((batch, 0, length, length), x.dtype)
            return ops.zeros((batch, length, 0), x.dtype), {
                "attention_probs": nothing, "attention_scores": ops.cast(nothing, "float32")}

        def split(y):  # [B, S, N * D] -> [B, S, N, D]
            return ops.reshape(y, (batch, length, heads, size))

        given = [split(y) for y in (self.query(x) * size**-0.5, self.key(x), self.value(x))]
        query = ops.transpose(given[0], (0, 2, 1, 3))                               # [B, N, S, D]
        key = ops.transpose(given[1], (0, 2, 3, 1))                                 # [B, N, D, S]
        value = ops.transpose(given[2], (0, 2, 1, 3))                               # [B, N, S, D]
        scores = ops.cast(ops.matmul(query, key), "float32")                        # [B, N, S, S]
        if bias is not None:
            scores = scores + bias
        rate = self.config.attention_probs_dropout_prob
        probs, dropped = softmax_and_dropout(scores, rate, dropout_seed, value.dtype)
        if kernels := _kernels(given[0], bias):
            # Then XLA leaves out scores and probabilities, unless somebody reads them.
            context = kernels.attention(*given, bias, rate, dropout_seed)           # [B, S, N, D]
            context = ops.transpose(context, (0, 2, 1, 3))
        else:
            context = ops.matmul(dropped, value)                                    # [B, N, S, D]
        return join_heads(mask_heads(context, head_mask), heads * size), {
            "attention_probs": probs, "attention_scores": scores}


def _kernels(query, bias):
    """The module of fused attention, if it takes these arguments; else None."""
    if keras.config.backend() != "jax":
        return None
    from bert_tf.layers import fused_attention
    return fused_attention if fused_attention.takes(query, bias) else None


def split_heads(x: Tensor, size: int) -> Tensor:
    """[B, S, N * D] -> [B, N, S, D], for D = `size`."""
    batch, length, width = ops.shape(x)
    return ops.transpose(ops.reshape(x, (batch, length, width // size, size)), (0, 2, 1, 3))


def join_heads(context: Tensor, width: int) -> Tensor:
    """[B, N, S, D] -> [B, S, N * D], for N * D = `width`."""
    context = ops.transpose(context, (0, 2, 1, 3))
    return ops.reshape(context, (*ops.shape(context)[:2], width))


def mask_heads(context: Tensor, head_mask: Tensor | None) -> Tensor:
    """Multiplies heads' outputs [B, N, S, D] by a mask, float [N] or one that broadcasts."""
    if head_mask is None:
        return context
    mask = ops.cast(head_mask, context.dtype)
    return context * (mask[:, None, None] if len(mask.shape) == 1 else mask)


@register
class Residual(FromConfig, keras.layers.Layer):
    """A projection to width H, dropout, the sum with the residual, and its normalisation.

    `input_size` is the width of all heads or F; 0 leaves the bias alone of the projection.
    """

    config_keys = ("input_size",)

    def __init__(self, config: EncoderConfig, input_size: int, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.input_size = input_size
        self.projection = self.dense(config.hidden_size)
        self.norm = LayerNorm(config, dtype=self.dtype_policy)

    def build(self, input_shape: Any = None) -> None:
        self.projection.build((None, None, self.input_size))
        self.norm.build()

    def call(self, x: Tensor, residual: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """[B, S, input_size] and the residual [B, S, H] -> [B, S, H]."""
        x = self.projection(x) if self.input_size else ops.zeros_like(residual) + ops.cast(
            self.projection.bias, residual.dtype)
        return self.norm(dropout(x, self.dropout_rate, dropout_seed) + residual)

    @property
    def dropout_rate(self) -> float:
        """The rate before the sum."""
        return self.config.hidden_dropout_prob


@register
class TransformerLayer(FromConfig, keras.layers.Layer):
    """Self-attention and a feed-forward network, each normalised after its residual.

    Args:
        attention_of: a layer whose attention this layer shares.
        feed_forward_of: a layer whose feed-forward network this layer shares.
        numbers: of its attention and feed-forward network in the configuration's `layer_weights`,
            which has their sizes after pruning; None: not pruned.
    """

    config_keys = ("numbers",)

    def __init__(self, config: EncoderConfig, attention_of: "TransformerLayer | None" = None,
                 feed_forward_of: "TransformerLayer | None" = None,
                 numbers: tuple[int, int] | None = None, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy, self.numbers = self.dtype_policy, numbers
        heads, inner = config.num_attention_heads, config.intermediate_size
        if numbers:
            heads = len(config.kept_heads(numbers[0]))
            inner = config.feed_forward_size(numbers[1])
        if attention_of is None:
            cut = {} if heads == config.num_attention_heads else {"num_heads": heads}
            self.attention = self.make_attention(name="self", dtype=policy, **cut)
            self.attention_output = Residual(config, heads * config.head_size, name="output",
                                             dtype=policy)
        else:
            self.attention = attention_of.attention
            self.attention_output = attention_of.attention_output
        if feed_forward_of is None:
            self.intermediate = self.dense(inner, activation=ACTIVATIONS[config.hidden_act])
            self.output_ = Residual(config, inner, name="output", dtype=policy)
        else:
            self.intermediate = feed_forward_of.intermediate
            self.output_ = feed_forward_of.output_

    def make_attention(self, **kwargs: Any) -> Any:
        """Makes the layer's attention; subclasses replace it."""
        return SelfAttention(self.config, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        if not self.attention.built:
            with keras.name_scope("attention"):
                self.attention.build()
                self.attention_output.build()
        if not self.intermediate.built:
            with keras.name_scope("intermediate"):
                self.intermediate.build((None, None, self.config.hidden_size))
            self.output_.build()

    def call(self, x: Tensor, bias: Tensor | None = None, head_mask: Tensor | None = None,
             dropout_seed: Tensor | None = None, unit_mask: Tensor | None = None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns float [B, S, H], and `SelfAttention`'s dict. `unit_mask`, float that broadcasts
        to [B, S, F], is a factor for each unit of the feed-forward network. See `SelfAttention` for
        the others."""
        seeds = split_seed(dropout_seed, 3)
        context, maps = self.attention(x, bias, head_mask, seeds[0])               # [B, S, N * D]
        x = self.attention_output(context, x, seeds[1])
        inner = self.intermediate(x)                                                # [B, S, F]
        if unit_mask is not None:
            inner = inner * ops.cast(unit_mask, inner.dtype)
        return self.output_(inner, x, seeds[2]), maps


def rematerialized(layer: Callable, x: Tensor, bias: Any, head_mask: Tensor | None,
                   dropout_seed: Tensor | None, unit_mask: Tensor | None
                   ) -> tuple[Tensor, dict[str, Tensor]]:
    """Returns the output of a layer with `TransformerLayer`'s interface, [B, S, H], and no maps.

    Only the layer's inputs are kept for the backward pass, which computes the layer again
    (arXiv:1604.06174). `bias` gets no gradient.
    """
    given = {"x": x, "head_mask": head_mask, "unit_mask": unit_mask}
    if dropout_seed is not None:
        # The backward pass draws masks again if the seed is an argument, and keeps them otherwise.
        # TensorFlow's gradients take no integers; float64, which JAX lacks, holds a seed exactly.
        given["seed"] = ops.cast(dropout_seed, "float64" if keras.config.backend() == "tensorflow"
                                 else dropout_seed.dtype)
    given = {name: value for name, value in given.items() if value is not None}

    def run(*values):
        found = dict(zip(given, values))
        seed = None if dropout_seed is None else ops.cast(found["seed"], dropout_seed.dtype)
        return layer(found["x"], bias, found.get("head_mask"), seed, found.get("unit_mask"))[0]

    return keras.remat(run)(*given.values()), {}
