"""A label for each word, such as the names in CoNLL-2003 (arXiv:1810.04805, section 5.3).

Shapes: B batch, S sequence, H hidden.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import EncoderConfig
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch, LabelHead
from bert_tf.objectives.lstms import LstmReader


@register
class Tagging(LabelHead):
    """Classifies every token: logits [B, S, num_labels], labels `label_ids` [B, S].

    A word's label is at its first sub-word, where `label_weights` [B, S] is 1, else 0.
    """

    source = "sequence_output"
    reads = ("label_ids", "label_weights")
    positional = ("logits", "probabilities")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, S]."""
        return batch["label_ids"], ops.cast(batch["label_weights"], "float32")


@register
class FeatureTagging(Tagging):
    """Classifies every token from features of an encoder that is not trained (arXiv:1810.04805,
    section 5.3 and Table 7).

    LSTMs read the features. Freeze the encoder with `bert_tf.training.transfer.freeze(encoder,
    -1)`.

    Args:
        layers: the source of the features: `embeddings`, `second_to_last`, `last`,
            `weighted_sum_last_4`, `concat_last_4`, `weighted_sum_all` (without the embeddings),
            `elmo` (with the embeddings), or `elmo_top`, the last layer, scaled.
        lstm_size: width of each direction of an LSTM.
        lstm_layers: how many bidirectional LSTMs read the features, one after the other, 1 to 4.
        do_layer_norm: whether summed layers are normalised first (see `lstms.mix_layers`).
        l2_coef: factor of the sum of the layer weights' squares in the loss.
        dropout_rate: between the LSTMs and the dense layer.
    """

    def __init__(self, config: EncoderConfig, num_labels: int, layers: str = "concat_last_4",
                 lstm_size: int = 768, lstm_layers: int = 2, do_layer_norm: bool = False,
                 l2_coef: float = 0.0, **kwargs: Any):
        self.l2_coef = l2_coef
        reader = LstmReader(config, layers, lstm_size, lstm_layers, do_layer_norm,
                            name="features", dtype=kwargs.get("dtype"))
        super().__init__(config, num_labels, reader=reader, **kwargs)

    def call(self, outputs: Mapping[str, Any], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`embedding_output` and `layer_outputs` -> float32 logits [B, S, num_labels]."""
        features = self.reader(outputs, batch.get("input_mask"))                # [B, S, width]
        return super().call({self.source: features}, batch, dropout_seed=dropout_seed)

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        total, count = super().loss(logits, labels, weights)
        if self.l2_coef and hasattr(self.reader, "layer_weights"):
            square = ops.sum(ops.square(ops.cast(self.reader.layer_weights, "float32")))
            total = total + self.l2_coef * square * count
        return total, count

    def get_config(self) -> dict[str, Any]:
        mixing = {"do_layer_norm": self.reader.do_layer_norm, "l2_coef": self.l2_coef}
        mixing = {name: value for name, value in mixing.items() if value}
        return {**super().get_config(), **mixing, "layers": self.reader.choice,
                "lstm_size": self.reader.width // 2, "lstm_layers": len(self.reader.lstms)}
