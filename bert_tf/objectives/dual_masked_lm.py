"""The masked LM of texts that mix words of two vocabularies (arXiv:1909.11687, section 3.1).

Shapes: B batch, P predictions, V tokens of both vocabularies.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.objective import MaskedLM
from bert_tf.config import EncoderConfig
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch

_NEVER = -1e9


@register
class DualMaskedLM(MaskedLM):
    """Predicts each masked token among its own vocabulary's tokens. It is a teacher's objective,
    trained with a student and not saved.

    A batch without the teacher's texts has zero `masked_lm_weights`, and predicts nothing. `second`
    is the number of the second vocabulary's tokens, which are the last ones.
    """

    auxiliary = True

    def __init__(self, config: EncoderConfig, second: int, name: str = "dual_masked_lm",
                 **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.first = config.vocab_size - second

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """Logits as `MaskedLM.call`; tokens of the vocabulary that the label is not from get a
        large negative logit."""
        if "sequence_output" not in outputs:
            return ops.zeros((*ops.shape(batch["masked_lm_ids"]), self.config.vocab_size))
        logits = super().call(outputs, batch, outputs["embedding_table"])
        is_second = ops.expand_dims(batch["masked_lm_ids"] >= self.first, axis=-1)  # [B, P, 1]
        column = ops.arange(self.config.vocab_size) >= self.first                   # [V]
        return ops.where(ops.equal(is_second, column), logits, _NEVER)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "second": self.config.vocab_size - self.first}
