"""Bidirectional LSTMs between a network and a head (arXiv:1810.04805, tables 5 and 7).

Shapes: B batch, S sequence, H hidden, E width of the embeddings.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import FromConfig, Tensor
from bert_tf.layers.functions import last_token

# Sources of `LstmReader`'s features, and the number of layers that the encoder needs.
CHOICES = {"embeddings": 0, "second_to_last": 2, "last": 1, "weighted_sum_last_4": 4,
           "concat_last_4": 4, "weighted_sum_all": 1, "elmo": 1, "elmo_top": 1}


def mix_layers(layers: Sequence[Tensor], weights: Tensor, scale: Tensor,
               input_mask: Tensor | None = None, do_layer_norm: bool = False) -> Tensor:
    """Returns `scale` times the sum of the layers, float [B, S, H], weighted by the softmax of
    `weights` [L] (arXiv:1802.05365, equation 1; allenai/bilm-tf, elmo.py).

    `do_layer_norm` first brings each layer to mean 0 and variance 1 over all tokens and channels of
    the batch together; `input_mask`, integer [B, S], excludes padding.
    """
    shares = ops.cast(scale, "float32") * (
        ops.softmax(ops.cast(weights, "float32")) if len(layers) > 1 else ops.ones((1,)))
    if do_layer_norm:
        layers = [_normalize(x, input_mask) for x in layers]
    return sum(ops.cast(shares[i], x.dtype) * x for i, x in enumerate(layers))


def _normalize(x, input_mask):
    real = ops.ones(ops.shape(x)[:2]) if input_mask is None else input_mask
    real = ops.cast(real, "float32")[:, :, None]                                # [B, S, 1]
    values = ops.cast(x, "float32")
    count = ops.sum(real) * x.shape[-1]
    mean = ops.sum(values * real) / count
    variance = ops.sum(ops.square((values - mean) * real)) / count
    return ops.cast((values - mean) * ops.rsqrt(variance + 1e-12), x.dtype)


def bidirectional(lstm_size: int, name: str, dtype: Any) -> keras.layers.Bidirectional:
    """Returns a bidirectional LSTM with an output for each token."""
    # XLA, which compiles the training step on GPUs, can't compile cuDNN's LSTM.
    return keras.layers.Bidirectional(
        keras.layers.LSTM(lstm_size, return_sequences=True, use_cudnn=False, name="lstm",
                          dtype=dtype), name=name, dtype=dtype)


class LstmReader(FromConfig, keras.layers.Layer):
    """A network's outputs for each token, read by bidirectional LSTMs.

    A weighted sum is `scale` times the sum of the layers by the softmax of `layer_weights`, all
    learned, as in ELMo (arXiv:1802.05365, equation 1); it begins as the mean. "elmo" includes the
    embeddings, as ELMo does; "elmo_top" is the last layer, scaled.

    Attributes:
        choice: a key of `CHOICES`.
        do_layer_norm: see `mix_layers`.
        width: of the result.

    Raises:
        InputError: there are no such layers, or widths differ.
    """

    def __init__(self, config: Sizes, choice: str, lstm_size: int, lstm_layers: int,
                 do_layer_norm: bool = False, **kwargs: Any):
        if config.depth < CHOICES[choice]:
            raise InputError(f"features from {choice} need {CHOICES[choice]} layers, but the "
                             f"encoder has {config.depth}; choose other layers.")
        if choice == "elmo" and config.embedding_output_width != config.hidden_size:
            raise InputError("elmo adds the embeddings and the layers, but their widths differ "
                             f"({config.embedding_output_width} and {config.hidden_size}); give "
                             "weighted_sum_all.")
        super().__init__(config, **kwargs)
        self.choice, self.width = choice, 2 * lstm_size
        self.do_layer_norm = do_layer_norm
        self.lstms = [bidirectional(lstm_size, f"lstm_{i}", self.dtype_policy)
                      for i in range(lstm_layers)]

    def build(self, input_shape: Any = None) -> None:
        width = self.config.hidden_size * (4 if self.choice == "concat_last_4" else 1)
        if self.choice == "embeddings":
            width = self.config.embedding_output_width
        if self.choice.startswith(("weighted_sum", "elmo")):
            count = {"weighted_sum_last_4": 4, "elmo": self.config.depth + 1,
                     "elmo_top": 1}.get(self.choice, self.config.depth)
            self.layer_weights = self.add_weight((count,), "zeros", name="layer_weights")
            self.scale = self.add_weight((), "ones", name="scale")
        for lstm in self.lstms:
            lstm.build((None, None, width))
            width = self.width

    def call(self, outputs: Mapping[str, Any], input_mask: Tensor | None = None) -> Tensor:
        """A network's outputs -> float [B, S, width]. Both directions skip padding, where
        `input_mask`, integer [B, S], is 0."""
        x = self.choose(outputs, input_mask)
        mask = None if input_mask is None else ops.cast(input_mask, "bool")     # [B, S]
        for lstm in self.lstms:
            x = lstm(x, mask=mask)                                              # [B, S, width]
        return x

    def choose(self, outputs: Mapping[str, Any], input_mask: Tensor | None = None) -> Tensor:
        """Returns the LSTMs' input: float [B, S, H], [B, S, 4 * H], or [B, S, E] for embeddings."""
        if self.choice == "embeddings":
            return outputs["embedding_output"]
        hidden = outputs["layer_outputs"]
        if self.choice in ("last", "second_to_last"):
            return hidden[-1 if self.choice == "last" else -2]
        if self.choice == "concat_last_4":
            return ops.concatenate(hidden[-4:], axis=-1)
        if self.choice == "elmo":
            hidden = [outputs["embedding_output"], *hidden]
        return mix_layers(hidden[-self.layer_weights.shape[0]:], self.layer_weights, self.scale,
                          input_mask, self.do_layer_norm)


class HeadReader(LstmReader):
    """The LSTM between a network and a head of one layer.

    Args:
        size: width of each direction.
        source: the output that it replaces, `sequence_output` or `pooled_output`.
    """

    def __init__(self, config: Sizes, size: int, source: str, **kwargs: Any):
        super().__init__(config, "last", size, 1, name="bilstm", **kwargs)
        self.source = source

    def call(self, outputs: Mapping[str, Any], input_mask: Tensor = None) -> Tensor:
        """A network's outputs, and integer [..., S] -> float [B, S, 2 * size]; the last states of
        both directions, [B, 2 * size], in place of a pooled output."""
        mask = ops.reshape(input_mask, (-1, ops.shape(input_mask)[-1]))         # [B, S]
        x = super().call(outputs, mask)
        if self.source == "sequence_output":
            return x
        size = self.width // 2
        return ops.concatenate([last_token(x[:, :, :size], mask), x[:, 0, size:]], axis=-1)
