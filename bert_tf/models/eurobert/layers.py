"""The layers of EuroBERT (arXiv:2503.05500; transformers, `models/eurobert`): ModernBERT's global
layers with other norms, and with heads of keys and values that several heads of queries share.

Shapes: B batch, S sequence, H hidden, N heads, D = H / N width of a head, K heads of keys and
values.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.bert.layers import Embeddings
from bert_tf.layers.base import FromConfig, Tensor
from bert_tf.layers.encoder import EncoderEmbeddings
from bert_tf.models.eurobert.config import EuroBertConfig
from bert_tf.models.modernbert.layers import ModernBertLayer, RotaryAttention
from bert_tf.models.t5.layers import RMSNorm


class GroupedAttention(RotaryAttention):
    """`RotaryAttention` behind a norm in every layer, with N / K queries for each key."""

    def make_parts(self) -> None:
        self.layer_norm = RMSNorm(self.config, dtype=self.dtype_policy)
        self.qkv = self.dense(self.config.qkv_width, "qkv", use_bias=self.config.attention_bias)

    def split(self, joined: Tensor) -> list[Tensor]:
        config = self.config
        shared = self.num_heads // config.key_value_heads
        if shared == 1:
            return super().split(joined)
        width = config.key_value_heads * config.head_size
        query, key, value = (
            ops.reshape(part, (*ops.shape(part)[:2], -1, config.head_size)) for part in ops.split(
                joined, [config.hidden_size, config.hidden_size + width], axis=-1))
        return [query, ops.repeat(key, shared, axis=2), ops.repeat(value, shared, axis=2)]


class EuroBertLayer(ModernBertLayer):
    """A `ModernBertLayer` with other norms and other attention."""

    attention_class, norm_class = GroupedAttention, RMSNorm


class WordEmbeddings(EncoderEmbeddings):
    """The vectors of words as they are."""

    def __init__(self, config: EuroBertConfig, **kwargs: Any):
        super(Embeddings, self).__init__(config, **kwargs)      # which has a norm
        self.make_ranges()

    def normalise(self, x: Tensor, dropout_seed: Tensor | None) -> Tensor:
        return ops.cast(x, self.compute_dtype)


class NoHiddenLayer(FromConfig, keras.layers.Layer):
    """In place of the hidden layer of the masked language model, which has none."""

    def call(self, x: Tensor) -> Tensor:
        return x
