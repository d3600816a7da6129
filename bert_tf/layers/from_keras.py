"""The layers' imports from Keras: the type of tensors, the registration of classes, the dense
layer, and `argmax`.
"""

from typing import Any, TypeAlias

import keras
from keras import ops

from bert_tf.layers.activations import form_of

# A tensor of the backend, or a value that `keras.ops` accepts for one, such as `np.ndarray`.
Tensor: TypeAlias = Any

register = keras.saving.register_keras_serializable("bert_tf")


def argmax(x: Tensor) -> Tensor:
    """Returns the index of the largest element along the last axis, the first of equal ones, int32.

    `keras.ops.argmax` also looks for negative zeros, which takes TensorFlow five times as long.
    """
    return ops.top_k(x, 1, sorted=False)[1][..., 0]


class Dense(keras.layers.Dense):
    """Keras's dense layer on the rows of a matrix, which needs fewer operations than on more axes.

    TensorFlow fuses the product with the bias, and in prediction with the activation.
    """

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """float [..., I] -> [..., O]."""
        shape = ops.shape(inputs)
        rows = ops.matmul(ops.reshape(inputs, (-1, shape[-1])), self.kernel)
        if self.bias is not None:
            rows = ops.add(rows, self.bias)
        activation = form_of(self.activation, training)
        if activation is not None:
            rows = activation(rows)
        return ops.reshape(rows, (*shape[:-1], self.units))
