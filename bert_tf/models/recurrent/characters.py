"""Word vectors from characters by convolutions and highway layers, as in allenai/bilm-tf
(arXiv:1508.06615, arXiv:1602.02410).

Shapes: B batch, S sequence, W characters of a word, F filters of all widths.
"""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.layers.activations import ACTIVATIONS
from bert_tf.layers.base import FromConfig, Tensor
from bert_tf.spelling import BITS, EACH

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
            [self.dense(total, f"highway_{i}_{name}", initializer=_normal(total))
             for i in range(config.n_highway)] for name in ("carry", "transform"))
        for carry in self.carries:
            carry.bias_initializer = keras.initializers.Constant(_FIRST_CARRY)
        self.projection = self.dense(
            config.projection_dim, "projection",
            initializer=_normal(total)) if total != config.projection_dim else None

    def build(self, input_shape: Any = None) -> None:
        width, total = self.config.char_embedding_dim, self.config.num_filters
        self.table = self.add_weight((N_CHARACTERS, width), keras.initializers.RandomUniform(-1, 1),
                                     name="char_embeddings")
        for convolution in self.convolutions:
            convolution.build((None, self.config.max_characters_per_token, width))
        for layer in (*self.carries, *self.transforms, *filter(None, [self.projection])):
            layer.build((None, total))

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
