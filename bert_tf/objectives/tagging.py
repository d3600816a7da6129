"""A label for each word, such as the names in CoNLL-2003 (arXiv:1810.04805, section 5.3).

Shapes: B batch, S sequence, H hidden.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import EncoderConfig, Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import FromConfig, Tensor, register
from bert_tf.objectives.base import Batch, LabelHead

# Where the features of `FeatureTagging` are taken from, and how many layers the encoder needs.
CHOICES = {"embeddings": 0, "second_to_last": 2, "last": 1, "weighted_sum_last_4": 4,
           "concat_last_4": 4, "weighted_sum_all": 1}


@register
class Tagging(LabelHead):
    """Classifies every token: logits [B, S, num_labels], labels `label_ids` [B, S].

    The label of a word is at its first sub-word, where `label_weights` [B, S] is 1; elsewhere the
    weight is 0, and so is the loss.
    """

    source = "sequence_output"
    reads = ("label_ids", "label_weights")
    positional = ("logits", "probabilities")

    def __init__(self, config: Sizes, num_labels: int, name: str = "tagging", **kwargs: Any):
        super().__init__(config, num_labels, name=name, **kwargs)

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, S]."""
        return batch["label_ids"], ops.cast(batch["label_weights"], "float32")


class _Features(FromConfig, keras.layers.Layer):
    """The outputs of a network for each token, read by bidirectional LSTMs.

    A weighted sum is `scale` times the sum of the layers by the softmax of `layer_weights`, all
    learned, as in ELMo (arXiv:1802.05365, equation 1); it begins as the mean.

    Attributes:
        choice: a key of `CHOICES`.
        width: of the result.
    """

    def __init__(self, config: EncoderConfig, choice: str, lstm_size: int, lstm_layers: int,
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


@register
class FeatureTagging(Tagging):
    """Classifies every token from features of an encoder that is not trained (arXiv:1810.04805,
    section 5.3 and Table 7).

    LSTMs read the features. Labels and weights are those of `Tagging`. Freeze the encoder with
    `bert_tf.training.transfer.freeze(encoder, -1)`.

    Args:
        config: `EncoderConfig`.
        num_labels: how many labels there are.
        layers: where the features come from: `embeddings`, `second_to_last`, `last`,
            `weighted_sum_last_4`, `concat_last_4` or `weighted_sum_all`, of all layers without the
            embeddings.
        lstm_size: width of each direction of an LSTM.
        lstm_layers: how many bidirectional LSTMs read the features, one after the other, 1 to 4.
        dropout_rate: of the dropout between the LSTMs and the dense layer.

    Raises:
        InputError: there is no such choice, the encoder has too few layers for it, or there can
            be no such LSTMs.
    """

    def __init__(self, config: EncoderConfig, num_labels: int, layers: str = "concat_last_4",
                 lstm_size: int = 768, lstm_layers: int = 2, name: str = "feature_tagging",
                 **kwargs: Any):
        if layers not in CHOICES:
            raise InputError(f"the features can't be taken from {layers!r}; choose from "
                             f"{', '.join(CHOICES)}.")
        if config.depth < CHOICES[layers]:
            raise InputError(f"features from {layers} need {CHOICES[layers]} layers, but the "
                             f"encoder has {config.depth}; choose others.")
        if lstm_size < 1:
            raise InputError(f"lstm_size is {lstm_size}; it must be at least 1.")
        if not 1 <= lstm_layers <= 4:
            raise InputError(f"lstm_layers is {lstm_layers}; it must be from 1 to 4.")
        reader = _Features(config, layers, lstm_size, lstm_layers, name="features",
                           dtype=kwargs.get("dtype"))
        super().__init__(config, num_labels, name=name, reader=reader, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        self.reader.build()
        self.classifier.build((None, None, self.reader.width))

    def call(self, outputs: Mapping[str, Any], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """From `embedding_output` and `layer_outputs` to float32 logits [B, S, num_labels]."""
        features = self.reader(outputs, batch.get("input_mask"))                # [B, S, width]
        return super().call({self.source: features}, batch, dropout_seed=dropout_seed)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "layers": self.reader.choice,
                "lstm_size": self.reader.width // 2, "lstm_layers": len(self.reader.lstms)}
