"""What every layer of ours shares: it is made from an EncoderConfig, and is saved as one."""

import keras

from bert_tf.config import EncoderConfig

register = keras.saving.register_keras_serializable("bert_tf")


class FromConfig:
    """Mixin for Keras layers and models that are made from an `EncoderConfig`.

    Weights depend on the configuration alone, never on an input, so `build` takes no shape. Calls
    never write `x += y`, which on PyTorch would change a tensor that the gradient still needs.
    """

    def __init__(self, config, **kwargs):
        # Each weight is cast where it is used; masks and biases stay in float32 on their way there.
        super().__init__(autocast=False, **kwargs)
        self.config = config

    def initializer(self):
        """A fresh truncated normal: Keras draws equal weights from an initializer used twice."""
        return keras.initializers.TruncatedNormal(stddev=self.config.initializer_range)

    def dense(self, units, name="dense", activation=None):
        """A dense layer with a 2-D kernel, in this layer's dtype."""
        return keras.layers.Dense(units, activation, name=name, dtype=self.dtype_policy,
                                  kernel_initializer=self.initializer())

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "config": EncoderConfig.from_dict(config["config"])})
