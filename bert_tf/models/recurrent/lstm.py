"""LSTMs as TensorFlow 1's `tf.nn.rnn_cell.LSTMCell` and `BasicLSTMCell`.

Shapes: B batch, S sequence, I input, U units, P output: the projection, or U.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.layers.base import Tensor


class Lstm(keras.layers.Layer):
    """One LSTM in one direction.

    The kernel's columns are the gates: input, new input, forget, output. Its first I rows multiply
    the input, the others the last output. Keras's own LSTM has neither a projection nor clipping.

    Args:
        inputs: I.
        units: U.
        projection: P; 0 for none.
        forget_bias: added to the forget gate.
        cell_clip: bound of the cells, before the output is computed; 0 for no clipping.
        proj_clip: bound of the projection; 0 for no clipping.
    """

    def __init__(self, inputs: int, units: int, projection: int = 0, forget_bias: float = 0.0,
                 cell_clip: float = 0.0, proj_clip: float = 0.0, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.inputs, self.units, self.projection = inputs, units, projection
        self.forget_bias, self.cell_clip, self.proj_clip = forget_bias, cell_clip, proj_clip

    def build(self, input_shape: Any = None) -> None:
        rows = self.inputs + (self.projection or self.units)
        glorot = keras.initializers.GlorotUniform
        self.kernel = self.add_weight((rows, 4 * self.units), glorot(), name="kernel",
                                      autocast=False)
        self.bias = self.add_weight((4 * self.units,), "zeros", name="bias", autocast=False)
        if self.projection:
            self.projection_kernel = self.add_weight(
                (self.units, self.projection), glorot(), name="projection_kernel", autocast=False)

    @property
    def state_size(self) -> int:
        """The width of the state: U + P, the cells and the last output."""
        return self.units + (self.projection or self.units)

    def call(self, x: Tensor, is_token: Tensor | None = None,
             state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Runs all steps; returns the outputs, float [B, S, P], and the state after the last step.

        Args:
            x: float [B, S, I].
            is_token: boolean [B, S]; False for steps that keep the state, without an output.
            state: before the first step, float [B, state_size]; None: zeros.
        """
        kernel = ops.cast(self.kernel, x.dtype)
        of_input = ops.matmul(x, kernel[:self.inputs]) + ops.cast(self.bias, x.dtype)
        recurrent, units = kernel[self.inputs:], self.units
        if is_token is not None:    # in one tensor: Keras wants to know S where there are several
            is_token = ops.cast(is_token, x.dtype)[:, :, None]
            of_input = ops.concatenate([of_input, is_token], axis=-1)   # [B, S, 4 * U + 1]

        def step(carried, given):
            gates = given[:, :4 * units] + ops.matmul(carried[:, units:], recurrent)
            new = ops.concatenate(self._step(gates, carried[:, :units]), axis=-1)
            if is_token is not None:
                new = ops.where(given[:, 4 * units:] > 0, new, carried)
            return new, new     # Keras wants both of one shape

        rows = ops.shape(x)[0]
        if state is None:
            state = ops.zeros((rows, self.state_size), x.dtype)
        state, states = ops.scan(step, ops.cast(state, x.dtype),
                                 ops.transpose(of_input, (1, 0, 2)))    # [S, B, U + P]
        return ops.transpose(states[..., units:], (1, 0, 2)), state

    def _step(self, gates, cells):
        """The new cells and output from the sums of the gates [B, 4 * U] and the cells [B, U]."""
        i, j, f, o = ops.split(gates, 4, axis=-1)
        cells = ops.sigmoid(f + self.forget_bias) * cells + ops.sigmoid(i) * ops.tanh(j)
        if self.cell_clip:
            cells = ops.clip(cells, -self.cell_clip, self.cell_clip)
        output = ops.sigmoid(o) * ops.tanh(cells)                       # [B, U]
        if self.projection:
            output = ops.matmul(output, ops.cast(self.projection_kernel, output.dtype))
            if self.proj_clip:
                output = ops.clip(output, -self.proj_clip, self.proj_clip)
        return cells, output


def reverse_tokens(x: Tensor, input_mask: Tensor | None = None) -> Tensor:
    """Reverses each sequence's tokens, float [B, S, I]; padding stays behind them. `input_mask`,
    integer [B, S], is 0 for padding; None: no padding."""
    if input_mask is None:
        return ops.flip(x, axis=1)
    place = ops.arange(ops.shape(x)[1], dtype="int32")[None]            # [1, S]
    lengths = ops.sum(ops.cast(input_mask, "int32"), axis=1, keepdims=True)
    source = ops.where(place < lengths, lengths - 1 - place, place)     # [B, S]
    return ops.take_along_axis(x, source[:, :, None], axis=1)
