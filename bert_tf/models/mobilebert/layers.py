"""The layers of MobileBERT and their normalisations (arXiv:2004.02984; google-research,
mobilebert/modeling.py).

Shapes: B batch, S sequence, H hidden, E width of the word embeddings, N heads, A inner width of a
layer, D = A / N width of a head, F width of a feed-forward network. Variables have
google-research/bert's names.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from bert_tf.bert.layers import LayerNorm, check_length, join_heads, segment_vectors
from bert_tf.config import MobileBertConfig
from bert_tf.layers.base import FromConfig, Tensor
from bert_tf.layers.changes import mask_heads
from bert_tf.layers.functions import ACTIVATIONS, dropout, plus, softmax_and_dropout, split_seed
from bert_tf.layers.quantisation import RoundsTables
from bert_tf.models.mobilebert.affine import MovingRanges


class NoNorm(LayerNorm):
    """A factor and an addend for each element, in place of a normalisation."""

    def call(self, x: Tensor) -> Tensor:    # type: ignore[override]
        """float [..., width] -> [..., width] in the compute dtype."""
        x = ops.cast(x, "float32") * ops.cast(self.gamma, "float32")
        return ops.cast(x + ops.cast(self.beta, "float32"), self.compute_dtype)


class ManualLayerNorm(LayerNorm):
    """Layer normalisation with an epsilon of its own."""

    epsilon = 1e-6


class OuterLayerNorm(LayerNorm):
    """A norm that has PyTorch's epsilon in transformers."""

    epsilon = 1e-5


class RoundedNoNorm(NoNorm):
    """`NoNorm` with its input, both vectors and their product rounded; see affine.py."""

    def __init__(self, config: Any, width: int | None = None, **kwargs: Any):
        super().__init__(config, width, **kwargs)
        self.ranges = MovingRanges(("input", "beta", "gamma", "product"), config.quantisation)

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        self.ranges.build()

    def call(self, x: Tensor, training: bool = False) -> Tensor:    # type: ignore[override]
        """float [..., width] -> [..., width] in the compute dtype."""
        x, beta, gamma = (self.ranges.round(name, tensor, training) for name, tensor in (
            ("input", x), ("beta", self.beta), ("gamma", self.gamma)))
        x = self.ranges.round("product", x * gamma, training)
        return ops.cast(x + beta, self.compute_dtype)


NORMS = {"layer_norm": LayerNorm, "manual_layer_norm": ManualLayerNorm, "no_norm": NoNorm}


def make_norm(config: MobileBertConfig, width: int, policy: Any, in_layer: bool = False,
              is_outer: bool = False) -> LayerNorm:
    """Makes a norm of `normalization_type`; `in_layer`: inside a layer of the encoder; `is_outer`:
    one of those that `as_in_transformers` changes."""
    kind = NORMS[config.normalization_type]
    if is_outer and config.as_in_transformers and kind is LayerNorm:
        kind = OuterLayerNorm
    if in_layer and rounds_all(config):
        kind = RoundedNoNorm
    return kind(config, width, dtype=policy)


def rounds_all(config: MobileBertConfig) -> bool:
    """Whether all tensors of the encoder's layers are rounded."""
    return config.quantisation is not None and config.quantisation.scheme == "affine"


# The score of a masked token: small enough for fixed-point numbers, so that padding keeps some
# weight; and in transformers.
_HIDDEN_SCORE, _THEIR_HIDDEN_SCORE = -6.0, -1e9
_GREATEST_SCORE = 60.0      # where all tensors are rounded


class Attended(NamedTuple):
    """The arguments of all layers' attention in addition to the vectors: `mask`, float32 [B, 1, 1,
    S], 1 for tokens and 0 for padding, None if all are tokens; and `bias`, float32, broadcast to
    [B, N, S, S], added to the scores before masking, or None."""

    mask: Tensor | None
    bias: Tensor | None


class MobileEmbeddings(RoundsTables, FromConfig, keras.layers.Layer):
    """Word embeddings, or a token's and its neighbours' joined, projected to the layers' width,
    plus segment and position embeddings, normalised."""

    part = "pooler"     # the name for all dense layers outside the encoder's

    def __init__(self, config: MobileBertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.transformation: Any = None
        if config.transformed_size:
            self.transformation = self.dense(config.hidden_size, "embedding_transformation",
                                             inputs=config.transformed_size)
        self.norm = make_norm(config, config.hidden_size, self.dtype_policy, is_outer=True)
        self.make_ranges()

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        self.word_embeddings = self.add_table("word_embeddings", config.vocab_size)
        self.segment_embeddings = self.add_weight((config.type_vocab_size, config.hidden_size),
                                                  name="token_type_embeddings")
        self.position_embeddings = self.add_weight(
            (config.max_position_embeddings, config.hidden_size), name="position_embeddings")
        super().build()

    def call(self, input_ids: Tensor, segment_ids: Tensor | None = None,
             dropout_seed: Tensor | None = None, training: bool = False,
             word_noise: Tensor | None = None) -> Tensor:
        """Returns float [B, S, H], from ids and segments, integer [B, S]; no segments: all zero.
        `word_noise`, float [B, S, E], is added to the vectors of words; `training` is a training
        step, which a quantisation may not yet affect. Raises ValueError if S is larger than
        `max_position_embeddings`."""
        length = check_length(input_ids, self.config)
        x, positions = self.round_rows(
            ops.take(self.word_embeddings, input_ids, axis=0),                      # [B, S, E]
            self.position_embeddings[:length], training)                            # [S, H]
        x = plus(x, word_noise)
        if self.config.trigram_input:
            # As in the original, a neighbour beyond the row is zero, and padding counts as a token.
            x = ops.concatenate([ops.pad(x[:, 1:], ((0, 0), (0, 1), (0, 0))), x,
                                 ops.pad(x[:, :-1], ((0, 0), (1, 0), (0, 0)))], axis=-1)
        if self.transformation:
            x = self.transformation(x)                                              # [B, S, H]
        x = x + segment_vectors(self.segment_embeddings, segment_ids, x.dtype) + positions
        return dropout(self.norm(x), self.config.hidden_dropout_prob, dropout_seed)


class NormedDense(FromConfig, keras.layers.Layer):
    """A dense layer, dropout, the sum with a residual if there is one, and a normalisation."""

    def __init__(self, config: MobileBertConfig, input_size: int, width: int,
                 dropout_rate: float = 0.0, is_outer: bool = False, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.input_size, self.dropout_rate = input_size, dropout_rate
        self.projection = self.dense(width, inputs=input_size)
        self.norm = make_norm(config, width, self.dtype_policy, in_layer=True, is_outer=is_outer)

    def call(self, x: Tensor, residual: Tensor | None = None,
             dropout_seed: Tensor | None = None) -> Tensor:
        """[B, S, input_size] and the residual [B, S, width] -> [B, S, width]."""
        x = dropout(self.projection(x), self.dropout_rate, dropout_seed)
        return self.norm(plus(x, residual))


class MobileAttention(FromConfig, keras.layers.Layer):
    """Softmax(Q K^T / sqrt(D)) V in N heads; V may come from other vectors than Q and K."""

    def __init__(self, config: MobileBertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        for name, width in (("query", config.query_size), ("key", config.query_size),
                            ("value", config.value_size)):
            setattr(self, name, self.dense(config.inner_size, name, inputs=width))
        self.ranges: Any = None
        if rounds_all(config):
            self.ranges = MovingRanges(("scores", "masked", "summed", "context"),
                                       config.quantisation)

    def call(self, x: Tensor, values: Tensor, attended: Attended, head_mask: Tensor | None = None,
             dropout_seed: Tensor | None = None, training: bool = False
             ) -> tuple[Tensor, dict[str, Tensor]]:
        """The heads' outputs [B, S, A], and `SelfAttention`'s dict, from x, float [B, S,
        `query_size`], read by queries and keys, and values, float [B, S, `value_size`]. `head_mask`
        is float [N], or float that broadcasts to [B, N, S, D]; a training step moves ranges."""
        batch, length = ops.shape(x)[:2]
        heads, size = self.config.num_attention_heads, self.config.head_size

        def split(y):  # [B, S, A] -> [B, S, N, D]
            return ops.reshape(y, (batch, length, heads, size))

        def rounded(name, y):
            return self.ranges.round(name, y, training) if self.ranges else y

        query = ops.transpose(split(self.query(x)), (0, 2, 1, 3))                   # [B, N, S, D]
        key = ops.transpose(split(self.key(x)), (0, 2, 3, 1))                       # [B, N, D, S]
        value = ops.transpose(split(self.value(values)), (0, 2, 1, 3))              # [B, N, S, D]
        scores = rounded("scores", ops.cast(ops.matmul(query, key), "float32"))     # [B, N, S, S]
        scores = scores * size**-0.5
        if attended.bias is not None:
            scores = scores + attended.bias
        if attended.mask is not None or self.ranges:
            mask = 1.0 if attended.mask is None else attended.mask
            low = _HIDDEN_SCORE
            if self.config.as_in_transformers and not self.ranges:
                low = _THEIR_HIDDEN_SCORE
            scores = rounded("masked", scores * mask) + (1.0 - mask) * low
            scores = rounded("summed", scores)
        if self.ranges:
            scores = ops.clip(scores, _HIDDEN_SCORE, _GREATEST_SCORE)
        probs, dropped = softmax_and_dropout(
            scores, self.config.attention_probs_dropout_prob, dropout_seed, value.dtype)
        context = rounded("context", ops.matmul(dropped, value))                    # [B, N, S, D]
        context = mask_heads(ops.cast(context, value.dtype), head_mask)
        return join_heads(context, heads * size), {
            "attention_probs": probs, "attention_scores": scores}


class FeedForward(FromConfig, keras.layers.Layer):
    """A feed-forward network with its residual, of width A."""

    scopes = {"intermediate": "intermediate"}

    def __init__(self, config: MobileBertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        inner = config.inner_size
        self.intermediate = self.dense(config.intermediate_size, inputs=inner,
                                       activation=ACTIVATIONS[config.hidden_act])
        self.output_ = NormedDense(config, config.intermediate_size, inner, self.residual_dropout,
                                   self.is_last, name="output", dtype=self.dtype_policy)

    # A network before the layer's own never has dropout.
    residual_dropout, is_last = 0.0, False

    def transform(self, x: Tensor, dropout_seed: Tensor | None = None,
                  unit_mask: Tensor | None = None) -> Tensor:
        """[B, S, A] -> [B, S, A]; see `MobileBertLayer` for `unit_mask`."""
        inner = self.intermediate(x)                                                # [B, S, F]
        if unit_mask is not None:
            inner = inner * ops.cast(unit_mask, inner.dtype)
        return self.output_(inner, x, dropout_seed)

    def call(self, x: Tensor) -> Tensor:
        return self.transform(x)


class MobileBertLayer(FeedForward):
    """Self-attention and feed-forward networks between two bottlenecks."""

    is_last = True
    scopes = {**dict.fromkeys(("input_bottleneck", "query_bottleneck"), "bottleneck"),
              **dict.fromkeys(("attention", "attention_output"), "attention"),
              "output_bottleneck": "output", **FeedForward.scopes}

    def __init__(self, config: MobileBertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy, hidden, inner = self.dtype_policy, config.hidden_size, config.inner_size
        self.input_bottleneck = self.query_bottleneck = self.output_bottleneck = None
        if config.use_bottleneck:
            self.input_bottleneck = NormedDense(config, hidden, inner, name="input", dtype=policy)
            self.output_bottleneck = NormedDense(
                config, inner, hidden, config.hidden_dropout_prob, name="bottleneck", dtype=policy)
        if config.has_query_bottleneck:
            self.query_bottleneck = NormedDense(config, hidden, inner, name="attention",
                                                dtype=policy)
        self.attention = MobileAttention(config, name="self", dtype=policy)
        self.attention_output = NormedDense(config, inner, inner, self.residual_dropout,
                                            name="output", dtype=policy)
        # The feed-forward networks before the last.
        self.further = [FeedForward(config, name=f"ffn_layer_{i}", dtype=policy)
                        for i in range(config.num_feedforward_networks - 1)]

    @property
    def residual_dropout(self) -> float:    # type: ignore[override]
        """The rate of dropout before an inner residual."""
        return 0.0 if self.config.use_bottleneck else self.config.hidden_dropout_prob

    def call(self, x: Tensor, attended: Attended,     # type: ignore[override]
             dropout_seed: Tensor | None = None, head_mask: Tensor | None = None,
             unit_mask: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """[B, S, H] -> float [B, S, H], and `MobileAttention`'s dict. `unit_mask`, float that
        broadcasts to [B, S, F], is a factor for each unit of the last feed-forward network."""
        seeds = split_seed(dropout_seed, 3)
        inner = self.input_bottleneck(x) if self.input_bottleneck else x            # [B, S, A]
        queries = values = x
        if self.config.use_bottleneck_attention:
            queries = values = inner
        elif self.query_bottleneck:
            queries = self.query_bottleneck(x)
        context, maps = self.attention(queries, values, attended, head_mask, seeds[0])
        y = self.attention_output(context, inner, seeds[1])                         # [B, S, A]
        for network in self.further:
            y = network(y)
        if not self.output_bottleneck:
            return self.transform(y, seeds[2], unit_mask), maps
        return self.output_bottleneck(self.transform(y, None, unit_mask), x, seeds[2]), maps


class WiderTable(FromConfig, keras.layers.Layer):
    """Columns in addition to the embeddings', which predict tokens with them: the variable
    `output_weights` [V, H - E] (google-research, mobilebert/run_pretraining.py)."""

    def build(self, input_shape: Any = None) -> None:
        width = self.config.prediction_width - self.config.embedding_width
        self.output_weights = self.add_weight((self.config.vocab_size, width),
                                              name="output_weights")

    def call(self, table: Tensor) -> Tensor:
        """float [V, E] -> [V, H]."""
        return ops.concatenate([table, ops.cast(self.output_weights, table.dtype)], axis=-1)
