"""MPNet (Song et al., arXiv:2004.09297; transformers, `MPNetModel`), and its attention
(`MPNetEncoder.compute_position_bias`)."""

from typing import Any

import keras
from keras import ops

from bert_tf.bert.layers import SelfAttention
from bert_tf.layers.base import FromConfig, Tensor, register
from bert_tf.layers.encoder import EncoderLayer
from bert_tf.layers.functions import plus
from bert_tf.models.t5.layers import buckets
from bert_tf.networks.encoder import BertEncoder


class DistanceBias(FromConfig, keras.layers.Layer):
    """Each head's addend of a score by the distance from query to key, in T5's buckets."""

    def build(self, input_shape: Any = None) -> None:
        self.weight = self.add_weight((self.config.relative_attention_num_buckets,
                                       self.config.num_attention_heads), name="weight")

    def call(self, x: Tensor) -> Tensor:
        """[B, S, H], of which only S counts -> float32 [1, N heads, S, S]."""
        most = self.config.largest_distance
        places = ops.arange(ops.shape(x)[1], dtype="int32")
        distance = ops.clip(places[None, :] - places[:, None], -most, most) + most      # [S, S]
        bucket = ops.take(ops.convert_to_tensor(
            buckets(self.config.buckets, most, both_sides=True)), distance, axis=0)
        bias = ops.take(ops.cast(self.weight, "float32"), bucket, axis=0)                # [S, S, N]
        return ops.transpose(bias, (2, 0, 1))[None]


class DistanceAttention(SelfAttention):
    """`SelfAttention` with the network's `DistanceBias`, which each layer computes, so that it gets
    gradients where the backward pass computes the layers again."""

    distance_bias: DistanceBias     # set by the network

    def call(self, x: Tensor, bias: Tensor | None = None, dropout_seed: Tensor | None = None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        return super().call(x, plus(self.distance_bias(x), bias), dropout_seed)


class MPNetLayer(EncoderLayer):
    """An `EncoderLayer` whose scores depend on distances."""

    attention_class = DistanceAttention


@register
class MPNet(BertEncoder):
    """A `BertEncoder` without segments, whose layers share a bias of scores by distance."""

    layer_class = MPNetLayer

    def make_layers(self) -> list[Any]:
        self.distance_bias = DistanceBias(self.config, name="relative_attention_bias",
                                          dtype=self.dtype_policy)
        layers = super().make_layers()
        for layer in layers:
            layer.attention.distance_bias = self.distance_bias
        return layers
