"""DistilBERT's objectives for learning from its teacher in addition to the masked LM
(arXiv:1910.01108; transformers examples/research_projects/distillation, distiller.py).

Shapes: B batch, S sequence, H hidden, V vocabulary.
"""

from typing import Any, ClassVar

from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch
from bert_tf.objectives.divergences import kl, mse
from bert_tf.objectives.taught import TOKEN_LOGITS, TaughtObjective, of_teacher

_LEAST = 1e-8       # of a norm, as in torch.nn.CosineEmbeddingLoss


class _OfTokens(TaughtObjective):
    """A mean over the tokens that are not padding."""

    def token_weights(self, batch: Batch) -> Tensor:
        """float32 [B, S], 1 for tokens."""
        return ops.cast(batch["input_mask"], "float32")

    def count(self, batch: Batch) -> Tensor:
        return ops.sum(self.token_weights(batch))


class _OfPredictions(_OfTokens):
    """Compares the masked LM's logits; `restrict_ce_to_mask` counts the predicted tokens only."""

    internals = (TOKEN_LOGITS,)
    settings: ClassVar[dict[str, str]] = {"restrict_ce_to_mask": "restrict_ce_to_mask"}
    config_keys = ("restrict_ce_to_mask",)

    def __init__(self, config: Sizes, restrict_ce_to_mask: bool = False, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.restrict_ce_to_mask = restrict_ce_to_mask

    def token_weights(self, batch: Batch) -> Tensor:
        if not self.restrict_ce_to_mask:
            return super().token_weights(batch)
        length = ops.shape(batch["input_ids"])[1]
        places = ops.one_hot(batch["masked_lm_positions"], length, dtype="float32")     # [B, P, S]
        chosen = ops.cast(batch["masked_lm_weights"], "float32")[:, :, None]
        return ops.sum(places * chosen, axis=1)


@register
class TokenDistillation(_OfPredictions):
    """KL(teacher || student) of the masked LM's distribution for each token at a temperature, above
    0, times its square (arXiv:1503.02531)."""

    settings: ClassVar[dict[str, str]] = {"temperature": "distill_temperature",
                                          **_OfPredictions.settings}
    config_keys = ("temperature",)

    def __init__(self, config: Sizes, temperature: float = 2.0, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.temperature = temperature

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """float32 [B, S]."""
        divergence = ops.sum(kl(outputs[TOKEN_LOGITS] / self.temperature,
                                batch[of_teacher(TOKEN_LOGITS)] / self.temperature), axis=-1)
        return divergence * self.token_weights(batch) * self.temperature**2


@register
class TokenSquaredError(_OfPredictions):
    """The squared difference of the masked LM's logits from the teacher's, summed over the
    vocabulary, for each token (`alpha_mse` of distiller.py)."""

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """float32 [B, S]."""
        squares = mse(outputs[TOKEN_LOGITS], batch[of_teacher(TOKEN_LOGITS)])
        return ops.sum(squares, axis=-1) * self.token_weights(batch)


@register
class HiddenCosine(_OfTokens):
    """1 - the cosine of each token's vector with the teacher's; both have the width H."""

    internals = ("sequence_output",)

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """float32 [B, S]."""
        student, teacher = (ops.cast(vectors, "float32") for vectors in (
            outputs["sequence_output"], batch[of_teacher("sequence_output")]))
        return (1.0 - ops.sum(_unit(student) * _unit(teacher), axis=-1)) * self.token_weights(batch)


def _unit(x):
    return x / ops.maximum(ops.sqrt(ops.sum(ops.square(x), axis=-1, keepdims=True)), _LEAST)
