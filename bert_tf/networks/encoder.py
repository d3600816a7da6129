"""BERT's encoder (arXiv:1810.04805; google-research/bert, `modeling.py`)."""

import keras
from keras import ops

from bert_tf.layers.attention import padding_bias
from bert_tf.layers.base import FromConfig, register
from bert_tf.layers.dropout import split_seed
from bert_tf.layers.embeddings import Embeddings
from bert_tf.layers.transformer import TransformerLayer

# The features that a network reads; only the first must be there.
INPUTS = ("input_ids", "input_mask", "segment_ids")


@register
class BertEncoder(FromConfig, keras.Model):
    """A bidirectional Transformer that returns every tensor one may want to look at.

    Shapes: B batch, S sequence, H hidden, N heads, L layers, V vocabulary. The weights exist as
    soon as the encoder does, drawn from the seed of `keras.utils.set_random_seed`.
    """

    def __init__(self, config, name="bert", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.embeddings = Embeddings(config, name="embeddings", dtype=self.dtype_policy)
        self.layers_ = [TransformerLayer(config, name=f"layer_{i}", dtype=self.dtype_policy)
                        for i in range(config.num_hidden_layers)]
        self.pooler = self.dense(config.hidden_size, activation="tanh")
        # For those who train with `fit`; a training loop that must resume passes `dropout_seed`.
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def build(self, input_shape=None):
        self.embeddings.build()
        with keras.name_scope("encoder"):
            for layer in self.layers_:
                layer.build()
        with keras.name_scope("pooler"):
            self.pooler.build((None, self.config.hidden_size))

    @property
    def embedding_table(self):
        """The variable [V, H] of word embeddings."""
        return self.embeddings.word_embeddings

    def call(self, inputs, training=False, dropout_seed=None, attention_bias=None, head_mask=None,
             return_attention=False):
        """
        Args:
            inputs: dict of integer [B, S]: `input_ids`; `input_mask`, 1 for tokens and 0 for
                padding, all 1 if absent; `segment_ids`, all 0 if absent. Others are ignored.
            training: whether to apply dropout.
            dropout_seed: integer [2], of which the dropout masks are a pure function; drawn from
                the encoder's own generator if None.
            attention_bias: float [B or 1, N or 1, S, S], added to every layer's attention scores.
            head_mask: float [L, N], a factor for each head's output.
            return_attention: whether to return `attention_probs` too.

        Returns:
            A dict: `sequence_output` [B, S, H], `pooled_output` [B, H], `embedding_output`
            [B, S, H], `layer_outputs` (list of L [B, S, H]), and on request `attention_probs`
            (list of L [B, N, S, S], before dropout).

        Raises:
            ValueError: S is larger than `max_position_embeddings`.
        """
        if not training:
            dropout_seed = None
        elif dropout_seed is None:
            dropout_seed = self.seed_generator.next()
        seeds = split_seed(dropout_seed, 1 + len(self.layers_))
        bias = attention_bias
        if inputs.get("input_mask") is not None:
            padding = padding_bias(inputs["input_mask"])
            bias = padding if bias is None else padding + ops.cast(bias, padding.dtype)

        x = self.embeddings(inputs["input_ids"], inputs.get("segment_ids"), seeds[0])
        outputs = {"embedding_output": x, "layer_outputs": []}
        attention_probs = []
        for i, layer in enumerate(self.layers_):
            x, probs = layer(x, bias, None if head_mask is None else head_mask[i], seeds[1 + i])
            outputs["layer_outputs"].append(x)
            attention_probs.append(probs)
        outputs["sequence_output"] = x
        outputs["pooled_output"] = self.pooler(x[:, 0])
        if return_attention:
            outputs["attention_probs"] = attention_probs
        return outputs
