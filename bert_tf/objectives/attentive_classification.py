"""The baseline "BiLSTM + ELMo + Attn" of GLUE: LSTMs read features, and two texts attend to each
other (arXiv:1804.07461, section 4; the attention is arXiv:1611.01603's).

Shapes: B batch, S sequence, W width of both directions of the LSTMs together.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.layers import padding_bias
from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import dropout
from bert_tf.objectives.base import Batch, LabelHead
from bert_tf.objectives.lstms import LstmReader, bidirectional

_LEAST = -1e9


@register
class AttentiveClassification(LabelHead):
    """Bidirectional LSTMs read features of a network that need not be trained. The maximum over a
    text's tokens is its vector, u or v; a hidden layer reads u, or [u; v; |u - v|; u * v].

    With two texts, each token is first joined with the mean of the other text's tokens, weighted by
    the softmax of their dot products, and another bidirectional LSTM reads both.

    Args:
        layers: the source of the features, see `FeatureTagging`.
        lstm_size: width of each direction of an LSTM.
        lstm_layers: how many LSTMs read the features, one after the other.
        hidden_size: width of the hidden layer.
        pairs: whether `segment_ids` mark two texts.
        dropout_rate: before the LSTMs and before the hidden layer.

    Raises:
        InputError: the network's embeddings differ in width from its layers.
    """

    def __init__(self, config: Sizes, num_labels: int, layers: str = "elmo", lstm_size: int = 1500,
                 lstm_layers: int = 2, hidden_size: int = 512, pairs: bool = False,
                 dropout_rate: float = 0.2, **kwargs: Any):
        self._hidden_size, self.pairs = hidden_size, pairs
        self.sequences = ("segment_ids",) if pairs else ()
        reader = LstmReader(config, layers, lstm_size, lstm_layers, name="features",
                            dtype=kwargs.get("dtype"))
        super().__init__(config, num_labels, dropout_rate=dropout_rate, reader=reader, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        self.reader.build()
        width = self.reader.width
        if self.pairs:
            self.compare = bidirectional(width // 2, "compare_lstm", self.dtype_policy)
            self.compare.build((None, None, 2 * width))
        self.hidden = self.dense(self._hidden_size, "hidden", "tanh")
        self.hidden.build((None, width * (4 if self.pairs else 1)))
        self.classifier.build((None, self._hidden_size))

    def call(self, outputs: Mapping[str, Any], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`embedding_output` and `layer_outputs` -> float32 logits [B, num_labels]."""
        mask = ops.cast(batch["input_mask"], "int32")                   # [B, S]
        x = self.reader(outputs, mask)                                  # [B, S, W]
        if not self.pairs:
            vector = self._maximum(x, mask)
        else:
            second = mask * ops.cast(ops.equal(batch["segment_ids"], 1), "int32")
            first = mask - second
            # Tokens look at each other where the second text is empty, not at padding.
            other = ops.where(ops.any(second > 0, axis=1, keepdims=True), second, mask)
            attended = ops.where(ops.expand_dims(second, 2) > 0, self._attend(x, first),
                                 self._attend(x, other))
            x = self.compare(ops.concatenate([x, attended], axis=-1), mask=ops.cast(mask, "bool"))
            u, v = self._maximum(x, first), self._maximum(x, second)
            vector = ops.concatenate([u, v, ops.abs(u - v), u * v], axis=-1)
        vector = dropout(vector, self.dropout_rate, dropout_seed)
        return ops.cast(self.classifier(self.hidden(vector)), "float32")

    @staticmethod
    def _attend(x, mask):
        """For each token the mean of `mask`'s tokens, weighted by their dot products with it."""
        scores = ops.cast(ops.matmul(x, ops.transpose(x, (0, 2, 1))), "float32")
        probs = ops.softmax(scores + padding_bias(mask)[:, 0])          # [B, S, S]
        return ops.matmul(ops.cast(probs, x.dtype), x)

    @staticmethod
    def _maximum(x, mask):
        """Returns the maximum over the tokens of `mask`, [B, W]; 0 without tokens."""
        most = ops.max(ops.where(ops.expand_dims(mask, 2) > 0, x, _LEAST), axis=1)
        return ops.where(most > _LEAST, most, 0.0)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "layers": self.reader.choice,
                "lstm_size": self.reader.width // 2, "lstm_layers": len(self.reader.lstms),
                "hidden_size": self._hidden_size, "pairs": self.pairs}
