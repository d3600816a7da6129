"""MPNet (Song et al., arXiv:2004.09297; transformers, `MPNetModel`)."""

from typing import Any

import keras

from bert_tf.layers.base import register
from bert_tf.models.mpnet.layers import DistanceBias, MPNetLayer
from bert_tf.networks.encoder import BertEncoder


@register
class MPNet(BertEncoder):
    """A `BertEncoder` without segments, whose layers share a bias of scores by distance."""

    def make_layers(self) -> list[Any]:
        self.distance_bias = DistanceBias(self.config, name="relative_attention_bias",
                                          dtype=self.dtype_policy)
        layers = super().make_layers()
        for layer in layers:
            layer.attention.distance_bias = self.distance_bias
        return layers

    def make_layer(self, *shared: Any, **kwargs: Any) -> MPNetLayer:
        return MPNetLayer(self.config, *shared, **kwargs)

    def build_layers(self) -> None:
        with keras.name_scope("encoder"):
            self.distance_bias.build()
        super().build_layers()
