"""DeBERTa's masked words (arXiv:2006.03654, section 3.2)."""

from collections.abc import Mapping

from bert_tf.bert.objective import MaskedLM
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch


@register
class EnhancedMaskedLM(MaskedLM):
    """`MaskedLM` on the vectors of the enhanced mask decoder, which know positions; for a network
    with `enhanced_mask_decoder`."""

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """See `MaskedLM.call`."""
        return super().call({"sequence_output": outputs["decoder_output"]}, batch, embedding_table,
                            dropout_seed)
