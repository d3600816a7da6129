"""The normalisations of MobileBERT (arXiv:2004.02984; google-research, mobilebert/modeling.py)."""

from typing import Any

from keras import ops

from bert_tf.bert.layers import LayerNorm
from bert_tf.config import MobileBertConfig
from bert_tf.layers.base import Tensor, register
from bert_tf.models.mobilebert.affine import MovingRanges


@register
class NoNorm(LayerNorm):
    """A factor and an addend for each element, in place of a normalisation."""

    def call(self, x: Tensor) -> Tensor:
        """float [..., width] -> [..., width] in the compute dtype."""
        x = ops.cast(x, "float32") * ops.cast(self.gamma, "float32")
        return ops.cast(x + ops.cast(self.beta, "float32"), self.compute_dtype)


@register
class ManualLayerNorm(LayerNorm):
    """Layer normalisation with an epsilon of its own."""

    epsilon = 1e-6


@register
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


def make_norm(config: MobileBertConfig, width: int, policy: Any, in_layer: bool = False
              ) -> LayerNorm:
    """Makes a norm of `normalization_type`; `in_layer`: inside a layer of the encoder."""
    rounds = in_layer and rounds_all(config)
    kind = RoundedNoNorm if rounds else NORMS[config.normalization_type]
    return kind(config, width, dtype=policy)


def rounds_all(config: MobileBertConfig) -> bool:
    """Whether all tensors of the encoder's layers are rounded."""
    return config.quantisation is not None and config.quantisation.scheme == "affine"
