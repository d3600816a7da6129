"""Layer normalisation (arXiv:1607.06450)."""

import keras
from keras import ops

from bert_tf.layers.base import FromConfig, register


@register
class LayerNorm(FromConfig, keras.layers.Layer):
    """Normalises the last axis, of width H, in float32 whatever the dtype of its input.

    Keras's own layer rounds gamma and beta to the compute dtype first, and is a third slower.
    """

    def __init__(self, config, name="LayerNorm", **kwargs):
        super().__init__(config, name=name, **kwargs)

    def build(self, input_shape=None):
        shape = (self.config.hidden_size,)
        self.gamma = self.add_weight(shape, "ones", name="gamma", autocast=False)
        self.beta = self.add_weight(shape, "zeros", name="beta", autocast=False)

    def call(self, x):
        """From float [..., H] to [..., H] in the compute dtype."""
        x = ops.cast(x, "float32")
        x = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(x), axis=-1, keepdims=True)
        x = x * ops.rsqrt(variance + self.config.layer_norm_eps)
        x = x * ops.cast(self.gamma, "float32") + ops.cast(self.beta, "float32")
        return ops.cast(x, self.compute_dtype)
