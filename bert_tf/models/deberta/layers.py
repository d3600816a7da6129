"""The layers of DeBERTa, versions 2 and 3 (microsoft/DeBERTa, `disentangled_attention.py`).

Shapes: B batch, S sequence, H hidden, N heads, D width of a head, R rows of the table of distances.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf.bert.layers import LayerNorm, SelfAttention, attend
from bert_tf.config import DebertaConfig
from bert_tf.layers.base import FromConfig, Tensor
from bert_tf.layers.changes import call_masked
from bert_tf.layers.encoder import EncoderEmbeddings, EncoderLayer
from bert_tf.layers.functions import ACTIVATIONS, dropout, slice_axis, split_seed
from bert_tf.models.deberta.config import DIFFERENCE


def rows_of_distances(config: DebertaConfig) -> np.ndarray:
    """The rows in the table of distances for query minus key from -n to n, int32 [2n + 1]; farther
    ones have the rows of the ends.

    Half of the buckets are single distances, and the others grow logarithmically (`da_utils.py`,
    `make_log_bucket_position`), in float32, since rounding decides where some of them begin.

    The rows are transformers'. In microsoft/DeBERTa all distances from `longest_distance` on have
    the row of the distance before it, which rounding moves by one in some configurations.
    """
    end, span = config.longest_distance, config.relative_attention_num_buckets // 2
    middle, ratio = span // 2, 0.0
    if config.position_buckets > 0:     # of an odd number, the last bucket begins far beyond
        ratio = (end - 1) / middle
        steps = max(middle - 1, 1)
        end = int(min(middle * ratio**((span - middle - 1) / steps) + 2, 1 << 20))
    rows = np.arange(-end, end + 1)
    if ratio:
        far = np.maximum(np.abs(rows), middle).astype("float32")
        steps = np.log(far / middle) / np.log(np.float32(ratio)) * (middle - 1)
        rows = np.where(far <= middle, rows, np.sign(rows) * (np.ceil(steps) + middle))
    return np.clip(rows + span, 0, 2 * span - 1).astype("int32")


class DebertaEmbeddings(EncoderEmbeddings):
    """`EncoderEmbeddings` that a dense layer without a bias projects to H before the norm, if their
    width is another one."""

    def __init__(self, config: DebertaConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.projection = None
        if config.embedding_size:
            self.projection = self.dense(config.hidden_size, "embed_proj", use_bias=False,
                                         inputs=config.embedding_width)

    def normalise(self, x: Tensor, dropout_seed: Tensor | None) -> Tensor:
        if self.projection:
            x = self.projection(x)
        return super().normalise(x, dropout_seed)


class DisentangledEmbeddings(DebertaEmbeddings):
    """Embeddings of words that are those of `others()`, without a gradient, plus differences that
    are trained and begin at 0 (arXiv:2111.09543, section 3.3). What a function returns is no part
    of this layer for Keras."""

    def __init__(self, config: DebertaConfig, others: Any, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.others = others

    def add_table(self, name: str, rows: int, initializer: Any = None) -> Any:
        if name != "word_embeddings":
            return super().add_table(name, rows, initializer)
        return super().add_table(name + DIFFERENCE, rows, "zeros")

    @property
    def word_embeddings(self) -> Tensor:        # type: ignore[override]
        """float32 [V, H], the sum."""
        return ops.stop_gradient(ops.convert_to_tensor(self.others().word_embeddings)
                                 ) + ops.convert_to_tensor(self.difference)

    @word_embeddings.setter
    def word_embeddings(self, difference: keras.Variable) -> None:
        self.difference = difference

    def look_up(self, input_ids: Tensor) -> Tensor:
        others = ops.stop_gradient(ops.take(self.others().word_embeddings, input_ids, axis=0))
        return others + ops.take(self.difference, input_ids, axis=0)


class DistanceEmbeddings(FromConfig, keras.layers.Layer):
    """The table of vectors of distances, which all layers share."""

    def __init__(self, config: DebertaConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.norm: LayerNorm | None = None
        if config.norm_rel_ebd == "layer_norm":
            self.norm = LayerNorm(config, dtype=self.dtype_policy)

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        if config.relative_attention:
            self.weight = self.add_weight(
                (config.relative_attention_num_buckets, config.hidden_size), name="weight")
        super().build()

    def call(self, x: Tensor) -> Tensor:
        """Any tensor, which only shows the dtype -> float [R, H]."""
        table = ops.cast(self.weight, x.dtype)
        return self.norm(table) if self.norm else table


def skew(products: Tensor) -> Tensor:
    """[B, N, S, 2S] -> [B, N, S, S]: place (r, c) gets the column S - 1 - r + c of row r."""
    batch, heads, length = ops.shape(products)[:3]
    flat = ops.reshape(products, (batch, heads, 2 * length * length))
    flat = slice_axis(flat, 2, length - 1, length * (2 * length - 1))
    rows = ops.reshape(flat, (batch, heads, length, 2 * length - 1))
    return slice_axis(rows, 3, 0, length)


def see_any(bias: Tensor) -> Tensor:
    """Returns which tokens see any token, bool [B, 1, S, 1], from the addend of scores."""
    return ops.max(bias, axis=-1, keepdims=True) > -5000.0


class DisentangledAttention(SelfAttention):
    """Attention whose scores add the products of contents with places (arXiv:2006.03654, section
    3.1; `DisentangledSelfAttention`): products with all distances at once, then shifted."""

    distances: DistanceEmbeddings       # set by the network

    def __init__(self, config: DebertaConfig, num_heads: int | None = None, **kwargs: Any):
        super().__init__(config, num_heads, **kwargs)
        terms = config.distance_terms * (not config.share_att_key)
        self.pos_key = self.make_projection("pos_key") if "c2p" in terms else None
        self.pos_query = self.make_projection("pos_query") if "p2c" in terms else None

    def look(self, x: Tensor, seen: Tensor, bias: Tensor | None, dropout_seed: Tensor | None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        """See `SelfAttention.look`; Q is S. A token that sees none, as padding, takes the mean of
        all values, as in transformers."""
        config, seeds = self.config, split_seed(dropout_seed, 2)
        batch, length = ops.shape(x)[:2]
        heads, size = self.num_heads, config.head_size
        scale = (size * (1 + len(config.pos_att_type)))**-0.5
        query, key, value = (ops.reshape(y, (batch, length, heads, size)) for y in (
            self.query(x) * scale, self.key(seen), self.value(seen)))
        addends, terms = [] if bias is None else [bias], config.distance_terms
        if bias is not None:
            seeing = see_any(bias)
            query = query * ops.cast(ops.transpose(seeing, (0, 2, 1, 3)), query.dtype)
        if terms:
            table = dropout(self.distances(x), config.hidden_dropout_prob, seeds[0])    # [R, H]
            ahead = ops.arange(2 * length, dtype="int32") - (length - 1)                # [2S]
        if "c2p" in terms:
            places = (self.pos_key or self.key)(table)
            addends.append(skew(self.products(query, places, -ahead)))
        if "p2c" in terms:
            places = (self.pos_query or self.query)(table) * scale
            addends.append(ops.transpose(skew(self.products(key, places, ahead)), (0, 1, 3, 2)))
        addend = sum(addends) if addends else None
        if bias is not None:
            addend = ops.where(seeing, addend, 0.0)
        context, maps = attend(query, key, value, addend, config.attention_probs_dropout_prob,
                               seeds[1])
        return ops.reshape(context, (batch, length, heads * size)), maps

    def products(self, x: Tensor, places: Tensor, distances: Tensor) -> Tensor:
        """Returns the products of [B, S, N, D] with the vectors, rows of `places` [R, N * D], of
        `distances` [2S]: float32 [B, N, S, 2S]."""
        rows = rows_of_distances(self.config)
        end = len(rows) // 2
        row = ops.take(ops.convert_to_tensor(rows), ops.clip(distances, -end, end) + end, axis=0)
        vectors = ops.reshape(ops.take(places, row, axis=0), (-1, *x.shape[2:]))        # [2S, N, D]
        vectors = ops.transpose(vectors, (1, 2, 0))
        if self.num_heads == 1:     # TensorFlow 2.20 crashes where one matrix is for several
            vectors = ops.repeat(vectors[None], ops.shape(x)[0], axis=0)
        return ops.cast(ops.matmul(ops.transpose(x, (0, 2, 1, 3)), vectors), "float32")


class Convolution(FromConfig, keras.layers.Layer):
    """A convolution of a layer's input, added to its output, and their norm (`ConvLayer`)."""

    def __init__(self, config: DebertaConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.norm = LayerNorm(config, dtype=self.dtype_policy)

    def build(self, input_shape: Any = None) -> None:
        config, width = self.config, self.config.hidden_size
        self.kernel = self.add_weight(
            (config.conv_kernel_size, width // config.conv_groups, width), name="kernel")
        self.bias = self.add_weight((width,), "zeros", name="bias")
        super().build()

    def call(self, x: Tensor, output: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """The layer's input and output, [B, S, H] -> [B, S, H]. Padding must be 0 in the input."""
        y = ops.conv(x, ops.cast(self.kernel, x.dtype), padding="same",
                     data_format="channels_last") + ops.cast(self.bias, x.dtype)
        y = dropout(y, self.config.hidden_dropout_prob, dropout_seed)
        return self.norm(output + ACTIVATIONS[self.config.conv_act](y))


class DebertaLayer(EncoderLayer):
    """An `EncoderLayer` with `DisentangledAttention`, and perhaps a convolution beside it."""

    attention_class = DisentangledAttention
    # Set by the network: a value of the class would hide what PyTorch keeps among its modules.
    convolution: Convolution | None

    def call(self, x: Tensor, bias: Tensor | None = None, dropout_seed: Tensor | None = None,
             head_mask: Tensor | None = None, unit_mask: Tensor | None = None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        output, maps = call_masked(self, x, bias, dropout_seed, head_mask, unit_mask)
        if self.convolution:
            output = self.convolution(x, output, split_seed(dropout_seed, 4)[3])
            if bias is not None:
                output = output * ops.cast(ops.any(see_any(bias), axis=1), output.dtype)
        return output, maps
