"""The stacks of layers of T5, and its table of words (arXiv:1910.10683; tensorflow/mesh,
`transformer/transformer.py`).

Shapes: B batch, Q queries, S keys, T tokens of a stack, H width, N heads, D width of a head.
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.config import T5Config
from bert_tf.layers.base import FromConfig, Tensor, register
from bert_tf.layers.seeds import dropout, split_seed
from bert_tf.models.t5.layers import HIDDEN, RelativeBias, RMSNorm, T5Layer, normal


def hide(visible: Tensor) -> Tensor:
    """Returns an addend of scores, float32: 0 where `visible`, bool [...], is True, else -1e9."""
    return ops.where(visible, 0.0, HIDDEN)


def same_segment(queries: Tensor, keys: Tensor) -> Tensor:
    """bool [B, 1, Q, S], from the segment numbers of queries [B, Q] and keys [B, S]."""
    return ops.equal(queries[:, None, :, None], keys[:, None, None, :])


@register
class T5Embeddings(FromConfig, keras.layers.Layer):
    """The table of words, without positions and without a norm."""

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        self.word_embeddings = self.add_weight(
            (config.vocab_size, config.d_model), normal(config.initializer_factor),
            name="word_embeddings")

    def call(self, ids: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """integer [B, S] -> float [B, S, H]."""
        x = ops.take(ops.cast(self.word_embeddings, self.compute_dtype), ids, axis=0)
        # Residuals of released models are too large for float16, so they are summed in float32.
        x = ops.cast(x, "float32") if self.compute_dtype == "float16" else x
        return dropout(x, self.config.dropout_rate, dropout_seed, shared=1)


@register
class T5Stack(FromConfig, keras.layers.Layer):
    """The layers of an encoder or of a decoder, their relative bias, and a norm."""

    config_keys = ("is_encoder",)

    def __init__(self, config: T5Config, is_encoder: bool, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy, self.is_encoder = self.dtype_policy, is_encoder
        self.relative_bias = RelativeBias(
            config, is_encoder or config.architecture == "prefix_lm",
            name="relative_attention_bias", dtype=policy)
        self.layers_: list[Any] = [
            T5Layer(config, config.has_encoder and not is_encoder,
                    len(config.fixed_heads) if is_encoder else 0, name=f"layer_{i}", dtype=policy)
            for i in range(config.num_layers if is_encoder else config.decoder_layers)]
        self.layer_norm = RMSNorm(config, dtype=policy)

    def build(self, input_shape: Any = None) -> None:
        parts: list[Any] = [self.relative_bias, *self.layers_, self.layer_norm]
        for part in parts:
            part.build()

    def call(self, x: Tensor, bias: Tensor, memory: Tensor | None = None,
             memory_bias: Tensor | None = None, dropout_seed: Tensor | None = None,
             head_masks: Sequence | None = None, maps: Tensor | None = None) -> dict[str, Any]:
        """Runs all positions.

        Args:
            x: embeddings, float [B, T, H].
            bias: of the mask, float32, broadcast to [B, N, T, T].
            memory, memory_bias: see `T5Layer`.
            head_masks: `T5Layer`'s for each layer.
            maps: of the encoder's fixed heads, float [B, F, T, T].

        Returns:
            `output`, float [B, T, H], normed; and `layers`, a list of `T5Layer`'s dicts.
        """
        seeds, places = split_seed(dropout_seed, 1 + len(self.layers_)), ops.arange(ops.shape(x)[1])
        relative: Any = self.relative_bias(places, places)
        bias = relative + bias if maps is None else (relative[:, maps.shape[1]:] + bias, maps)
        layers: list[dict] = []
        masks = head_masks or [(None, None)] * len(self.layers_)
        for layer, seed, of_layer in zip(self.layers_, seeds[1:], masks):
            layers.append(layer(x, bias, memory, memory_bias, seed, of_layer))
            x = layers[-1]["feed_forward"]
        x = dropout(self.layer_norm(x), self.config.dropout_rate, seeds[0], shared=1)
        return {"output": x, "layers": layers}

    def step(self, x: Tensor, places: Tensor, cache: list[Tensor], memory: list[Tensor],
             memory_bias: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """Computes one token of each row, float [B, 1, H], normed, and the next cache.

        Args:
            x: its embedding, float [B, 1, H].
            places: its place in the sequence, integer [B].
            cache: each layer's keys and values, one after the other, float [B, N, T, D].
            memory, memory_bias: see `T5Layer.step`, for each layer.
        """
        keys = ops.arange(ops.shape(cache[0])[2], dtype="int32")                    # [T]
        bias = ops.transpose(self.relative_bias(places, keys), (2, 1, 0, 3))        # [B, N, 1, T]
        bias = bias + hide(keys[None] <= places[:, None])[:, None, None, :]
        is_here = (keys[None] == places[:, None])[:, None, :, None]                 # [B, 1, T, 1]
        after: list[Tensor] = []
        for i, layer in enumerate(self.layers_):
            x, rows = layer.step(x, bias, is_here, cache[2 * i:2 * i + 2],
                                 memory[2 * i:2 * i + 2], memory_bias)
            after += rows
        return self.layer_norm(x), after
