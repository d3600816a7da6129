"""Bidirectional LSTMs between a network and a head (arXiv:1810.04805, tables 5 and 7).

Shapes: B batch, S sequence, H hidden, E width of the embeddings.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import FromConfig, Tensor

# Where the features of `LstmReader` are taken from, and how many layers the encoder needs.
CHOICES = {"embeddings": 0, "second_to_last": 2, "last": 1, "weighted_sum_last_4": 4,
           "concat_last_4": 4, "weighted_sum_all": 1}


class LstmReader(FromConfig, keras.layers.Layer):
    """The outputs of a network for each token, read by bidirectional LSTMs.

    A weighted sum is `scale` times the sum of the layers by the softmax of `layer_weights`, all
    learned, as in ELMo (arXiv:1802.05365, equation 1); it begins as the mean.

    Attributes:
        choice: a key of `CHOICES`.
        width: of the result.
    """

    def __init__(self, config: Sizes, choice: str, lstm_size: int, lstm_layers: int,
                 **kwargs: Any):
        super().__init__(config, **kwargs)
        self.choice, self.width = choice, 2 * lstm_size
        # XLA, which compiles the training step on GPUs, can't compile cuDNN's LSTM.
        self.lstms = [keras.layers.Bidirectional(
            keras.layers.LSTM(lstm_size, return_sequences=True, use_cudnn=False, name="lstm",
                              dtype=self.dtype_policy),
            name=f"lstm_{i}", dtype=self.dtype_policy) for i in range(lstm_layers)]

    def build(self, input_shape: Any = None) -> None:
        width = self.config.hidden_size * (4 if self.choice == "concat_last_4" else 1)
        if self.choice == "embeddings":
            width = self.config.embedding_width
        if self.choice.startswith("weighted_sum"):
            count = 4 if self.choice.endswith("last_4") else self.config.depth
            self.layer_weights = self.add_weight(
                (count,), "zeros", name="layer_weights", autocast=False)
            self.scale = self.add_weight((), "ones", name="scale", autocast=False)
        for lstm in self.lstms:
            lstm.build((None, None, width))
            width = self.width

    def call(self, outputs: Mapping[str, Any], input_mask: Tensor | None = None) -> Tensor:
        """From the outputs of a network to float [B, S, width].

        Padding, where `input_mask`, integer [B, S], is 0, is passed over in both directions.
        """
        x = self._chosen(outputs)
        mask = None if input_mask is None else ops.cast(input_mask, "bool")     # [B, S]
        for lstm in self.lstms:
            x = lstm(x, mask=mask)                                              # [B, S, width]
        return x

    def _chosen(self, outputs):
        """float [B, S, H], [B, S, 4 * H], or [B, S, E] of the embeddings."""
        if self.choice == "embeddings":
            return outputs["embedding_output"]
        hidden = outputs["layer_outputs"]
        if self.choice in ("last", "second_to_last"):
            return hidden[-1 if self.choice == "last" else -2]
        if self.choice == "concat_last_4":
            return ops.concatenate(hidden[-4:], axis=-1)
        count = self.layer_weights.shape[0]
        weights = ops.cast(self.scale, "float32") * ops.softmax(
            ops.cast(self.layer_weights, "float32"))                            # [count]
        return sum(ops.cast(weights[i], x.dtype) * x for i, x in enumerate(hidden[-count:]))
