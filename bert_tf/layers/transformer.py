"""One layer of the Transformer encoder, normalised after each residual (arXiv:1706.03762)."""

import keras

from bert_tf.layers.activations import ACTIVATIONS
from bert_tf.layers.attention import SelfAttention
from bert_tf.layers.base import FromConfig, register
from bert_tf.layers.dropout import dropout, split_seed
from bert_tf.layers.layer_norm import LayerNorm


@register
class Residual(FromConfig, keras.layers.Layer):
    """Back to the width H, dropout, plus the residual, normalised."""

    def __init__(self, config, input_size, **kwargs):
        super().__init__(config, **kwargs)
        self.input_size = input_size
        self.projection = self.dense(config.hidden_size)
        self.norm = LayerNorm(config, dtype=self.dtype_policy)

    def build(self, input_shape=None):
        self.projection.build((None, None, self.input_size))
        self.norm.build()

    def call(self, x, residual, dropout_seed=None):
        """From [B, S, input_size] and the residual [B, S, H] to [B, S, H]."""
        x = dropout(self.projection(x), self.config.hidden_dropout_prob, dropout_seed)
        return self.norm(x + residual)

    def get_config(self):
        return {**super().get_config(), "input_size": self.input_size}


@register
class TransformerLayer(FromConfig, keras.layers.Layer):
    """Self-attention and a feed-forward network; variables are named as in google-research/bert."""

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        self.attention = SelfAttention(config, name="self", dtype=self.dtype_policy)
        self.attention_output = Residual(config, config.hidden_size, name="output",
                                         dtype=self.dtype_policy)
        self.intermediate = self.dense(config.intermediate_size,
                                       activation=ACTIVATIONS[config.hidden_act])
        self.output_ = Residual(config, config.intermediate_size, name="output",
                                dtype=self.dtype_policy)

    def build(self, input_shape=None):
        with keras.name_scope("attention"):
            self.attention.build()
            self.attention_output.build()
        with keras.name_scope("intermediate"):
            self.intermediate.build((None, None, self.config.hidden_size))
        self.output_.build()

    def call(self, x, bias=None, head_mask=None, dropout_seed=None):
        """Takes what `SelfAttention` takes.

        Returns:
            float [B, S, H] and the attention probabilities [B, N, S, S].
        """
        seeds = split_seed(dropout_seed, 3)
        context, probs = self.attention(x, bias, head_mask, seeds[0])
        x = self.attention_output(context, x, seeds[1])
        return self.output_(self.intermediate(x), x, seeds[2]), probs
