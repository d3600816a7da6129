"""NomicBERT (arXiv:2402.01613; nomic-ai/contrastors, modeling_hf_nomic_bert.py)."""

from typing import Any

from keras import ops

from bert_tf.bert.layers import LayerNorm
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.changes import mask_joined_heads
from bert_tf.layers.encoder import EncoderEmbeddings
from bert_tf.layers.functions import dropout, split_seed
from bert_tf.models.eurobert.layers import NoHiddenLayer
from bert_tf.models.eurobert.network import EuroBert
from bert_tf.models.modernbert.layers import ModernBertLayer, rotary_angles


class NomicBertLayer(ModernBertLayer):
    """A `ModernBertLayer` with norms after its parts."""

    norm_class = LayerNorm
    scopes = {**ModernBertLayer.scopes, "attention_norm": "attention output", "norm": "output"}

    def __init__(self, config: Any, number: int, **kwargs: Any):
        super().__init__(config, 0, **kwargs)       # whose attention has no norm before it
        self.attention_norm = LayerNorm(config, dtype=self.dtype_policy)

    def call(self, x: Tensor, bias: Any, dropout_seed: Tensor | None = None,
             head_mask: Tensor | None = None, unit_mask: Tensor | None = None
             ) -> tuple[Tensor, dict[str, Tensor]]:
        rate, seeds = self.config.hidden_dropout_prob, split_seed(dropout_seed, 3)
        context, maps = self.attention(x, bias, seeds[0])
        context = mask_joined_heads(context, self.config.head_size, head_mask)
        x = self.attention_norm(x + dropout(self.attention_output(context), rate, seeds[1]))
        inner = self.gated(x, unit_mask, dropout_seed is not None)
        return self.norm(x + dropout(self.output_(inner), rate, seeds[2])), maps


@register
class NomicBert(EuroBert):
    """A `EuroBert` with segments, whose embeddings and layers are normalised as BERT's are."""

    embeddings_class, layer_class = EncoderEmbeddings, NomicBertLayer
    reads = ("input_ids", "input_mask", "segment_ids")

    def make_final_norm(self) -> Any:
        return NoHiddenLayer(self.config)

    def turns(self, positions: Tensor, length: Any) -> Any:
        """See `ModernBert`; the base of the angles may grow with S, the `length`."""
        beyond = ops.cast(length, "float32") / self.config.max_trained_positions - 1
        growth = ops.maximum(self.config.rotary_scaling_factor * beyond + 1, 1)
        return rotary_angles(self.config, positions, growth)
