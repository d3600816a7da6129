"""The masked LM of texts whose words are of two vocabularies (arXiv:1909.11687, section 3.1).

Shapes: B batch, P predictions, V tokens of the first vocabulary and of the second.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import EncoderConfig
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch
from bert_tf.objectives.pretraining import MaskedLM

_NEVER = -1e9


@register
class DualMaskedLM(MaskedLM):
    """Predicts each masked token among those of its own vocabulary. It is a teacher's, which learns
    beside a network, and is not saved.

    A batch without such a text has `masked_lm_weights` of zeros, and nothing is predicted then.

    Args:
        config: `EncoderConfig`, with V rows.
        second: how many of them are of the second vocabulary; they are the last.
    """

    auxiliary = True

    def __init__(self, config: EncoderConfig, second: int, name: str = "dual_masked_lm",
                 **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.first = config.vocab_size - second

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """As a `MaskedLM`'s; those of the other vocabulary than the label's are very small."""
        if "sequence_output" not in outputs:
            return ops.zeros((*ops.shape(batch["masked_lm_ids"]), self.config.vocab_size))
        logits = super().call(outputs, batch, outputs["embedding_table"])
        is_second = ops.expand_dims(batch["masked_lm_ids"] >= self.first, axis=-1)  # [B, P, 1]
        column = ops.arange(self.config.vocab_size) >= self.first                   # [V]
        return ops.where(ops.equal(is_second, column), logits, _NEVER)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "second": self.config.vocab_size - self.first}
