"""What all layers share: a layer is made from a configuration and is saved with it."""

from typing import Any, Self

import keras

from bert_tf.config import Sizes, config_from_dict
from bert_tf.layers.from_keras import Dense, Tensor, register
from bert_tf.layers.quantised_dense import quantised_dense

__all__ = ["Dense", "FromConfig", "Tensor", "register"]


class FromConfig:
    """Mixin for Keras layers and models that are made from a configuration of `bert_tf.config`.

    The shapes of weights depend on the configuration alone, never on an input, so `build` needs no
    shape. Calls never write `x += y`: on PyTorch this changes a tensor that the gradient needs.

    Attributes:
        quantised_as: which part of a network's quantisation its dense layers are, see
            `quantised_dense`; None if they are never rounded.
    """

    quantised_as: str | None = "layer"

    def __init__(self, config: Sizes, **kwargs: Any):
        # Each weight is cast where it is used; masks and biases stay in float32 on their way there.
        super().__init__(autocast=False, **kwargs)  # type: ignore[call-arg]
        self.config: Any = config

    def initializer(self) -> keras.initializers.Initializer:
        """A new normal, mostly truncated: an initializer that is used twice gives equal weights
        twice."""
        kind = (keras.initializers.TruncatedNormal if self.config.truncates_initializer
                else keras.initializers.RandomNormal)
        return kind(stddev=self.config.initializer_range)

    def dense(self, units: int, name: str = "dense", activation: Any = None,
              initializer: Any = None, use_bias: bool = True) -> keras.layers.Dense:
        """A dense layer with a 2-D kernel, in the dtype of this layer; `initializer` is that of the
        kernel, a truncated normal if None. It rounds its numbers if the configuration says so."""
        options = {"name": name, "kernel_initializer": initializer or self.initializer(),
                   "dtype": self.dtype_policy}  # type: ignore[attr-defined]
        how = getattr(self.config, "quantisation", None)
        if how and self.quantised_as:
            layer = quantised_dense(how, self.quantised_as, units, activation, use_bias, **options)
            if layer:
                return layer
        return Dense(units, activation, use_bias, **options)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "config": self.config.to_dict()}  # type: ignore[misc]

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "config": config_from_dict(config["config"])})
