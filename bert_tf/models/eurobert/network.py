"""EuroBERT (arXiv:2503.05500; transformers, `models/eurobert`).

Shapes: B batch, S sequence, H hidden.
"""

from typing import Any

from keras import ops

from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import ACTIVATIONS, pool
from bert_tf.models.eurobert.layers import EuroBertLayer, WordEmbeddings
from bert_tf.models.modernbert.network import ModernBert
from bert_tf.models.t5.layers import RMSNorm


@register
class EuroBert(ModernBert):
    """A `ModernBert` of global layers whose norms do not centre, and whose embeddings have no norm.

    Heads of tokens read `sequence_output`; those of texts a hidden layer, the pooler.
    """

    layer_class = EuroBertLayer

    def make_embeddings(self, **kwargs: Any) -> WordEmbeddings:
        return WordEmbeddings(self.config, **kwargs)

    def make_final_norm(self) -> RMSNorm:
        return RMSNorm(self.config, name="final_layer_norm", dtype=self.dtype_policy)

    def make_pooler(self) -> Any:
        return self.dense(self.config.hidden_size,
                          activation=ACTIVATIONS[self.config.classifier_activation])

    @property
    def pools_first(self) -> bool:      # type: ignore[override]
        return self.config.classifier_pooling == "bos"

    def pool(self, vectors: Tensor, input_mask: Tensor | None) -> Tensor:
        if self.pools_first:
            return self.pooler(vectors[:, 0])
        if input_mask is None or len(input_mask.shape) > 2:
            input_mask = ops.ones(ops.shape(vectors)[:2])
        if self.config.classifier_pooling == "mean":
            return self.pooler(ops.cast(pool(vectors, input_mask, "mean"), vectors.dtype))
        # The classifier's layer of a mean is the mean of its layer: transformers takes this one.
        return ops.cast(pool(self.pooler(vectors), input_mask, "mean"), vectors.dtype)

    def read_tokens(self, x: Tensor) -> Tensor:
        return x
