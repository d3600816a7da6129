"""A label for each word, from features of a BERT that is not trained (arXiv:1810.04805, section
5.3 and Table 7).
"""

import keras
from keras import ops

from bert_tf.errors import InputError
from bert_tf.layers.base import FromConfig, register
from bert_tf.objectives.tagging import Tagging

# Which layers the features are taken from, and how many there must be.
CHOICES = {"embeddings": 0, "second_to_last": 2, "last": 1, "weighted_sum_last_4": 4,
           "concat_last_4": 4, "weighted_sum_all": 1}


class _Features(FromConfig, keras.layers.Layer):
    """What a network says of each token, read by bidirectional LSTMs.

    A weighted sum is `scale` times the sum of the layers by the softmax of `layer_weights`, all
    learned, as in ELMo (arXiv:1802.05365, equation 1); it begins as the mean.

    Attributes:
        width: of the result.
    """

    def __init__(self, config, choice, lstm_size, lstm_layers, **kwargs):
        super().__init__(config, **kwargs)
        self.choice, self.width = choice, 2 * lstm_size
        # cuDNN's LSTM can't be compiled with XLA, with which training compiles the step on GPUs.
        self.lstms = [keras.layers.Bidirectional(
            keras.layers.LSTM(lstm_size, return_sequences=True, use_cudnn=False, name="lstm",
                              dtype=self.dtype_policy),
            name=f"lstm_{i}", dtype=self.dtype_policy) for i in range(lstm_layers)]

    def build(self, input_shape=None):
        width = self.config.hidden_size * (4 if self.choice == "concat_last_4" else 1)
        if self.choice.startswith("weighted_sum"):
            count = 4 if self.choice.endswith("last_4") else self.config.num_hidden_layers
            self.layer_weights = self.add_weight(
                (count,), "zeros", name="layer_weights", autocast=False)
            self.scale = self.add_weight((), "ones", name="scale", autocast=False)
        for lstm in self.lstms:
            lstm.build((None, None, width))
            width = self.width

    def call(self, outputs, input_mask=None):
        """From the outputs of a network to float [B, S, width].

        Padding, where `input_mask`, integer [B, S], is 0, is passed over in both directions.
        """
        x = self._chosen(outputs)
        mask = None if input_mask is None else ops.cast(input_mask, "bool")
        for lstm in self.lstms:
            x = lstm(x, mask=mask)
        return x

    def _chosen(self, outputs):
        """float [B, S, H], or [B, S, 4 * H]."""
        if self.choice == "embeddings":
            return outputs["embedding_output"]
        hidden = outputs["layer_outputs"]
        if self.choice in ("last", "second_to_last"):
            return hidden[-1 if self.choice == "last" else -2]
        if self.choice == "concat_last_4":
            return ops.concatenate(hidden[-4:], axis=-1)
        count = self.layer_weights.shape[0]
        weights = ops.cast(self.scale, "float32") * ops.softmax(
            ops.cast(self.layer_weights, "float32"))
        return sum(ops.cast(weights[i], x.dtype) * x for i, x in enumerate(hidden[-count:]))


@register
class FeatureTagging(Tagging):
    """Classifies every token as `Tagging` does, with the same labels and weights, but after LSTMs
    that read one or several layers of an encoder which is not to be trained itself: freeze it, with
    `bert_tf.training.transfer.freeze(encoder, -1)`.

    Args:
        config: `EncoderConfig`.
        num_labels: how many labels there are.
        layers: where the features come from: `embeddings`, `second_to_last`, `last`,
            `weighted_sum_last_4`, `concat_last_4` or `weighted_sum_all`, of all layers without the
            embeddings.
        lstm_size: width of each direction of an LSTM.
        lstm_layers: how many bidirectional LSTMs read them, one after the other; 4 at most.
        dropout_rate: of the dropout between them and the dense layer.

    Raises:
        InputError: there is no such choice, the encoder has too few layers for it, or there can
            be no such LSTMs.
    """

    def __init__(self, config, num_labels, layers="concat_last_4", lstm_size=768, lstm_layers=2,
                 name="feature_tagging", **kwargs):
        if layers not in CHOICES:
            raise InputError(f"the features can't be taken from {layers!r}; choose from "
                             f"{', '.join(CHOICES)}.")
        if config.num_hidden_layers < CHOICES[layers]:
            raise InputError(f"features from {layers} need {CHOICES[layers]} layers, but the "
                             f"encoder has {config.num_hidden_layers}; choose others.")
        if lstm_size < 1:
            raise InputError(f"lstm_size is {lstm_size}; it must be at least 1.")
        if not 1 <= lstm_layers <= 4:
            raise InputError(f"lstm_layers is {lstm_layers}; it must be from 1 to 4.")
        reader = _Features(config, layers, lstm_size, lstm_layers, name="features",
                           dtype=kwargs.get("dtype"))
        super().__init__(config, num_labels, name=name, reader=reader, **kwargs)

    def build(self, input_shape=None):
        self.reader.build()
        self.classifier.build((None, None, self.reader.width))

    def call(self, outputs, batch, embedding_table=None, dropout_seed=None):
        """From `embedding_output` and `layer_outputs` to float32 logits [B, S, num_labels]."""
        features = self.reader(outputs, batch.get("input_mask"))
        return super().call({self.source: features}, batch, dropout_seed=dropout_seed)

    def get_config(self):
        return {**super().get_config(), "layers": self.reader.choice,
                "lstm_size": self.reader.width // 2, "lstm_layers": len(self.reader.lstms)}
