"""MobileBERT and its teacher, IB-BERT (Sun et al., arXiv:2004.02984; google-research,
mobilebert/modeling.py).
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.layers.base import Tensor, register
from bert_tf.models.mobilebert.layers import Attended, MobileBertLayer, MobileEmbeddings
from bert_tf.networks.encoder import BertEncoder


@register
class MobileBert(BertEncoder):
    """A `BertEncoder` whose layers are thinner, or for the teacher wider, inside than between.

    `embedding_output` is [B, S, H]. Padding keeps a small weight in attention, as in the original,
    so that outputs depend on the length of a batch, unless `as_in_transformers`.
    """

    embeddings_class = MobileEmbeddings
    also_reads = ()
    packs = False

    def embed(self, inputs: Mapping[str, Tensor], seed: Tensor | None) -> dict[str, Tensor]:
        return {"embedding_output": self.embeddings(inputs["input_ids"], inputs.get("segment_ids"),
                                                    seed, word_noise=inputs.get("word_noise"))}

    def make_layer(self, *shared: Any, numbers: Any = None, **kwargs: Any) -> Any:
        return MobileBertLayer(self.config, **kwargs)

    def make_bias(self, inputs: Mapping[str, Tensor], attention_bias: Tensor | None) -> Attended:
        mask = inputs.get("input_mask")
        if mask is not None:
            mask = ops.cast(mask[:, None, None, :], "float32")              # [B, 1, 1, S]
        if attention_bias is not None:
            attention_bias = ops.cast(attention_bias, "float32")
        return Attended(mask, attention_bias)
