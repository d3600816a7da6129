"""GPT (Radford et al. 2018, Improving Language Understanding by Generative Pre-Training;
openai/finetune-transformer-lm, train.py).

Shapes: B batch, S sequence, H hidden, V vocabulary, P positions.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.bert.layers import check_length
from bert_tf.layers.base import FromConfig, Tensor, register
from bert_tf.layers.functions import causal_bias, dropout, plus
from bert_tf.networks.encoder import BertEncoder


class GPTEmbeddings(FromConfig, keras.layers.Layer):
    """The sum of a word's and a position's row of one table. Dropout applies to the table."""

    def build(self, input_shape: Any = None) -> None:
        self.word_embeddings = self.add_table("word_embeddings", self.config.vocab_size)
        self.position_embeddings = self.add_table("position_embeddings",
                                                  self.config.max_position_embeddings)

    def call(self, input_ids: Tensor, dropout_seed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """integer [B, S] -> float [B, S, H], and the table [V + P, H] with its dropout. ValueError:
        S > P."""
        length = check_length(input_ids, self.config)
        table = ops.concatenate([ops.cast(self.word_embeddings, self.compute_dtype),
                                 ops.cast(self.position_embeddings, self.compute_dtype)])
        table = dropout(table, self.config.embedding_dropout_prob, dropout_seed)
        words = self.config.vocab_size
        return ops.take(table, input_ids, axis=0) + table[words:words + length], table


@register
class GPT(BertEncoder):
    """BERT's layers from left to right, without segments, a norm of the embeddings or a pooler.

    In addition to `BertEncoder`'s outputs it returns `output_table` [V + P, H], with which a
    language model predicts: positions are among the predictable tokens, as in the original.
    `pooled_output` is the output at the last token, _classify_. No mask: padding is on the right.
    """

    embeddings_class = GPTEmbeddings
    reads = ("input_ids", "input_mask")
    also_reads = ()
    packs = False

    def __init__(self, config: Any, name: str = "gpt", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)

    def make_bias(self, inputs: Mapping[str, Tensor], attention_bias: Tensor | None) -> Any:
        causal = causal_bias(ops.shape(inputs["input_ids"])[1])             # [1, 1, S, S]
        return plus(causal, attention_bias)

    def embed(self, inputs: Mapping[str, Tensor], seed: Tensor | None) -> dict[str, Tensor]:
        x, table = self.embeddings(inputs["input_ids"], seed)
        return {"embedding_output": plus(x, inputs.get("word_noise")), "output_table": table}
