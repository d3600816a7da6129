"""The layers of recurrent networks: LSTMs as in TensorFlow 1's `tf.nn.rnn_cell`, and words from
their characters as in allenai/bilm-tf (arXiv:1508.06615, arXiv:1602.02410).

Shapes: B batch, S sequence, I input, U units, P output of an LSTM: the projection, or U; W
characters of a word, F filters of all widths.
"""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.layers.base import FromConfig, Tensor
from bert_tf.layers.functions import ACTIVATIONS
from bert_tf.spelling import BITS, EACH


class Lstm(keras.layers.Layer):
    """One LSTM in one direction, from I = `inputs` to U = `units`, with a projection to P; 0 for
    none. The clips are bounds of the cells, before the output is computed, and of the projection; 0
    for no clipping. Keras's own LSTM has neither.

    The kernel's columns are the gates: input, new input, forget, output. Its first I rows multiply
    the input, the others the last output. `forget_bias` is added to the forget gate.
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
        """Runs all steps of x, float [B, S, I]; returns the outputs, float [B, S, P], and the state
        after the last step, float [B, state_size]. Steps with 0 in `is_token`, integer or boolean
        [B, S], keep the state, without an output. `state` is before the first step; None: zeros."""
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
    """Reverses each sequence's tokens, float [B, S, I]; padding, 0 in the mask, stays behind."""
    if input_mask is None:
        return ops.flip(x, axis=1)
    place = ops.arange(ops.shape(x)[1], dtype="int32")[None]            # [1, S]
    lengths = ops.sum(ops.cast(input_mask, "int32"), axis=1, keepdims=True)
    source = ops.where(place < lengths, lengths - 1 - place, place)     # [B, S]
    return ops.take_along_axis(x, source[:, :, None], axis=1)


# Ids of characters without the mask, 0: 256 bytes, begin and end of sentence and of word, padding.
N_CHARACTERS = 261
_FIRST_CARRY = -2.0


def _normal(size):
    return keras.initializers.RandomNormal(stddev=math.sqrt(1 / size))


def unpack_spelling(packed: Sequence[Tensor], max_characters: int) -> Tensor:
    """Features of `bert_tf.spelling`, integer [B, S] -> int32 [B, S, W]."""
    columns = ops.stack([ops.cast(part, "int32") for part in packed], axis=-1)
    parts = ops.stack([ops.floor_divide(columns, 1 << (BITS * i)) % (1 << BITS)
                       for i in range(EACH)], axis=-1)                  # [B, S, K, 3]
    shape = ops.shape(columns)
    return ops.reshape(parts, (shape[0], shape[1], -1))[:, :, :max_characters]


class CharacterCnn(FromConfig, keras.layers.Layer):
    """Characters of words -> vectors of width `projection_dim`."""

    def __init__(self, config: Any, **kwargs: Any):
        super().__init__(config, **kwargs)
        total, width = config.num_filters, config.char_embedding_dim
        self.convolutions = [keras.layers.Conv1D(
            count, size, name=f"convolution_{i}", dtype=self.dtype_policy,
            kernel_initializer=keras.initializers.RandomUniform(-0.05, 0.05)
            if config.activation == "relu" else _normal(size * width))
            for i, (size, count) in enumerate(config.filters)]
        self.carries, self.transforms = (
            [self.dense(total, f"highway_{i}_{name}", initializer=_normal(total), inputs=total)
             for i in range(config.n_highway)] for name in ("carry", "transform"))
        for carry in self.carries:
            carry.bias_initializer = keras.initializers.Constant(_FIRST_CARRY)
        self.projection: Any = None
        if total != config.projection_dim:
            self.projection = self.dense(config.projection_dim, "projection",
                                         initializer=_normal(total), inputs=total)

    def build(self, input_shape: Any = None) -> None:
        width = self.config.char_embedding_dim
        self.table = self.add_weight((N_CHARACTERS, width), keras.initializers.RandomUniform(-1, 1),
                                     name="char_embeddings")
        for convolution in self.convolutions:
            convolution.build((None, self.config.max_characters_per_token, width))
        super().build()

    def call(self, char_ids: Tensor) -> Tensor:
        """integer [B, S, W], 0 where there is no word -> float [B, S, projection_dim]."""
        table = ops.cast(self.table, self.compute_dtype)
        table = ops.concatenate([ops.zeros_like(table[:1]), table])
        characters = ops.reshape(char_ids, (-1, self.config.max_characters_per_token))
        x = ops.take(table, characters, axis=0)                         # [B * S, W, width]
        activation = ACTIVATIONS[self.config.activation]
        x = ops.concatenate([activation(ops.max(convolution(x), axis=1))
                             for convolution in self.convolutions], axis=-1)    # [B * S, F]
        for carry, transform in zip(self.carries, self.transforms):
            gate = ops.sigmoid(carry(x))
            x = gate * ops.relu(transform(x)) + (1 - gate) * x
        if self.projection:
            x = self.projection(x)
        return ops.reshape(x, (-1, ops.shape(char_ids)[1], self.config.projection_dim))
