"""Word, segment and position embeddings."""

import keras
from keras import ops

from bert_tf.layers.base import FromConfig, register
from bert_tf.layers.dropout import dropout
from bert_tf.layers.layer_norm import LayerNorm


@register
class Embeddings(FromConfig, keras.layers.Layer):
    """The sum of three embeddings, normalised (google-research/bert, `embedding_postprocessor`)."""

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        self.norm = LayerNorm(config, dtype=self.dtype_policy)

    def build(self, input_shape=None):
        width = self.config.hidden_size

        def table(name, rows):
            return self.add_weight((rows, width), self.initializer(), name=name, autocast=False)

        self.word_embeddings = table("word_embeddings", self.config.vocab_size)
        self.segment_embeddings = table("token_type_embeddings", self.config.type_vocab_size)
        self.position_embeddings = table("position_embeddings", self.config.max_position_embeddings)
        self.norm.build()

    def call(self, input_ids, segment_ids=None, dropout_seed=None):
        """
        Args:
            input_ids: integer [B, S].
            segment_ids: integer [B, S]; all zero if None.
            dropout_seed: integer [2]; no dropout if None.

        Returns:
            float [B, S, H].

        Raises:
            ValueError: S is larger than `max_position_embeddings`.
        """
        length = ops.shape(input_ids)[1]
        longest = self.config.max_position_embeddings
        if isinstance(length, int) and length > longest:
            raise ValueError(f"the input is {length} tokens long, but max_position_embeddings is "
                             f"{longest}.")
        x = ops.take(self.word_embeddings, input_ids, axis=0)
        if segment_ids is None:
            x = x + self.segment_embeddings[0]
        else:
            # As in the original: for a handful of rows a product is faster than a gather.
            one_hot = ops.one_hot(segment_ids, self.config.type_vocab_size, dtype=x.dtype)
            x = x + ops.matmul(one_hot, self.segment_embeddings)
        x = x + self.position_embeddings[:length]
        return dropout(self.norm(x), self.config.hidden_dropout_prob, dropout_seed)
