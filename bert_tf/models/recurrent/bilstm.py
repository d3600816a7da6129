"""The bidirectional LSTM that learns from BERT (arXiv:1903.12136; castorini/d-bert,
dbert/distill/model/bi_rnn.py).

Shapes: B batch, S sequence, E width of the embeddings, U cells of each direction, H hidden, V
vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import BiLstmConfig
from bert_tf.layers.base import FromConfig, Network, Tensor, register
from bert_tf.models.recurrent.lstm import Lstm

_LARGEST = 0.25     # of the embeddings of words at first


class UniformEmbeddings(FromConfig, keras.layers.Layer):
    """Embeddings with a uniform initial distribution."""

    def build(self, input_shape: Any = None) -> None:
        self.word_embeddings = self.add_weight(
            (self.config.vocab_size, self.config.embedding_size),
            keras.initializers.RandomUniform(-_LARGEST, _LARGEST), name="word_embeddings")

    def call(self, input_ids: Tensor) -> Tensor:
        """integer [B, S] -> float [B, S, E]."""
        return ops.cast(ops.take(self.word_embeddings, input_ids, axis=0), self.compute_dtype)


@register
class BiLstm(Network):
    """One LSTM in each direction, and a layer with ReLU on both final states. Two texts a and b are
    read apart; the layer reads [a, b, |a - b|, a * b].

    Only the first feature of `reads` is required.
    """

    reads = ("input_ids", "input_mask", "segment_ids")

    def __init__(self, config: BiLstmConfig, name: str = "bilstm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.embeddings = UniformEmbeddings(config, name="embeddings", dtype=self.dtype_policy)
        self.lstms = [Lstm(config.embedding_size, config.lstm_size, name=way,
                           dtype=self.dtype_policy) for way in ("forward", "backward")]
        self.pooler = self.dense(config.hidden_size, activation="relu",
                                 initializer=keras.initializers.GlorotUniform())
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def build(self, input_shape: Any = None) -> None:
        self.embeddings.build()
        with keras.name_scope("encoder"):
            for lstm in self.lstms:
                lstm.build()
        with keras.name_scope("pooler"):
            self.pooler.build((None, self.config.read_width))

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Any]:
        """Returns named tensors. Dropout is before the last layer, in the head.

        Args:
            inputs: integer [B, S]: `input_ids`; `input_mask`, 1 for tokens and 0 for padding,
                default 1; `segment_ids`, 1 for the second text, default 0.

        Returns:
            `pooled_output` [B, H]; `sequence_output` [B, S, H], the same layer on each token's
            states, as if they were both texts; `embedding_output` [B, S, E]; `layer_outputs` (list
            of [B, S, 2 * U]).
        """
        ids = inputs["input_ids"]
        mask, segments = inputs.get("input_mask"), inputs.get("segment_ids")
        mask = ops.ones_like(ids) if mask is None else mask
        x = self.embeddings(ids)
        if not self.config.pairs:
            states, ends = self._read(x, mask)
            texts = (ends,)
        else:
            second = mask * (ops.zeros_like(ids) if segments is None else segments)
            both, ends = self._read(ops.concatenate([x, x]),
                                    ops.concatenate([mask - second, second]))
            first, other = ops.split(both, 2)
            states = ops.where(ops.cast(second, "bool")[:, :, None], other, first)
            texts = tuple(ops.split(ends, 2))
        return {"pooled_output": self._hidden(*texts),
                "sequence_output": self._hidden(*[states] * len(texts)),
                "embedding_output": x, "layer_outputs": [states]}

    def _read(self, x, mask):
        """Returns both directions' states at each token, float [B, S, 2 * U], and final states,
        [B, 2 * U]. Tokens of the texts have 1 in `mask`, integer [B, S]."""
        is_token, units = ops.cast(mask, "bool"), self.config.lstm_size
        forward, backward = self.lstms
        states, end = forward(x, is_token)
        # Steps without a token keep the state, also before the first token.
        back, begin = backward(ops.flip(x, axis=1), ops.flip(is_token, axis=1))
        return (ops.concatenate([states, ops.flip(back, axis=1)], axis=-1),
                ops.concatenate([end[:, units:], begin[:, units:]], axis=-1))

    def _hidden(self, a, b=None):
        """Applies the last layer to the states of a text or of two, float [..., 2 * U]."""
        if b is not None:
            a = ops.concatenate([a, b, ops.abs(a - b), a * b], axis=-1)
        return self.pooler(a)
