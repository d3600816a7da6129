"""EuroBERT (arXiv:2503.05500; transformers, `models/eurobert`).

Shapes: B batch, S sequence, H hidden.
"""

from typing import Any

from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import ACTIVATIONS
from bert_tf.models.eurobert.layers import EuroBertLayer, WordEmbeddings
from bert_tf.models.modernbert.network import ModernBert, mean_vector
from bert_tf.models.t5.layers import RMSNorm


@register
class EuroBert(ModernBert):
    """A `ModernBert` of global layers whose norms do not centre, and whose embeddings have no norm.

    Heads of tokens read `sequence_output`; those of texts a hidden layer, the pooler.
    """

    embeddings_class, layer_class = WordEmbeddings, EuroBertLayer

    def make_final_norm(self) -> RMSNorm:
        return RMSNorm(self.config, name="final_layer_norm", dtype=self.dtype_policy)

    def make_pooler(self) -> Any:
        return self.dense(self.config.hidden_size,
                          activation=ACTIVATIONS[self.config.classifier_activation])

    def pool(self, vectors: Tensor, input_mask: Tensor | None) -> Tensor:
        if self.config.classifier_pooling != "late":
            return super().pool(vectors, input_mask)
        # The classifier's layer of a mean is the mean of its layer: transformers takes this one.
        return mean_vector(self.pooler(vectors), input_mask)

    def read_tokens(self, x: Tensor) -> Tensor:
        return x
