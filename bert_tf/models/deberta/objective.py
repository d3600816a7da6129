"""The head of DeBERTa 3 (arXiv:2111.09543; microsoft/DeBERTa,
`replaced_token_detection_model.py`)."""

from collections.abc import Mapping
from typing import Any

from bert_tf.bert.layers import LayerNorm
from bert_tf.layers.base import Tensor, register
from bert_tf.models.electra.objective import ReplacedToken
from bert_tf.objectives.base import Batch


@register
class ReplacedTokenInContext(ReplacedToken):
    """`ReplacedToken` on the normalised sum of each token's vector and the first token's."""

    def build(self, input_shape: Any = None) -> None:
        self.norm = LayerNorm(self.config, dtype=self.dtype_policy)
        super().build()

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """See `ReplacedToken.call`."""
        x = outputs["sequence_output"]                                              # [B, S, H]
        return super().call({"sequence_output": self.norm(x + x[:, :1])}, batch)
