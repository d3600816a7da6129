"""Objectives for learning from a teacher's layers one after the other (Aguilar et al.,
arXiv:1910.03723).

Shapes: B batch, S sequence, N heads, H hidden, L layers.
"""

from collections.abc import Sequence
from typing import Any

from keras import ops

from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.models.tinybert.objective import layer_ratio, real_rows
from bert_tf.objectives.base import Batch
from bert_tf.objectives.divergences import kl
from bert_tf.objectives.taught import TaughtObjective, check_heads, of_teacher

_LEAST = 1e-8       # of a norm


class _InternalTransfer(TaughtObjective):
    """Compares each layer with the last of its teacher layers; losses add up over layers.

    Layer l begins to learn at step l * `phase_steps`. Progressive transfer compares the layer that
    began last, alone; `stacked` transfer, all layers that have begun. With 0 steps, and in
    evaluation, where a batch has no `step`, all layers are compared.
    """

    config_keys = ("phase_steps", "stacked")

    def __init__(self, config: Sizes, phase_steps: int = 0, stacked: bool = False, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.phase_steps, self.stacked = phase_steps, stacked

    def compare(self, ours: Tensor, theirs: Tensor, mask: Tensor) -> Tensor:
        """Returns the loss of each example, float32 [B], from a layer's tensors of both networks
        and the mask, float32 [B, S]."""
        raise NotImplementedError

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        (name,) = self.internals
        student, teacher = outputs[name], batch[of_teacher(name)]
        every = layer_ratio(len(student), len(teacher))
        mask = ops.cast(batch["input_mask"], "float32")
        mask = ops.reshape(mask, (-1, ops.shape(mask)[-1]))     # of choices, [B * C, S]
        total: Tensor = 0.0
        gates = self._gates(batch, len(student))
        for gate, own, other in zip(gates, student, teacher[every - 1::every]):
            total += gate * self.compare(ops.cast(own, "float32"), ops.cast(other, "float32"),
                                         mask)
        return total * real_rows(batch)

    def _gates(self, batch, layers) -> Sequence:
        """1 for each layer that is compared at the batch's step, else 0."""
        if not self.phase_steps or "step" not in batch:
            return [1.0] * layers
        last = ops.minimum(ops.cast(batch["step"], "int32") // self.phase_steps, layers - 1)
        return [ops.cast(layer <= last if self.stacked else ops.equal(layer, last), "float32")
                for layer in range(layers)]

    def count(self, batch: Batch) -> Tensor:
        return ops.sum(real_rows(batch))


@register
class InternalAttention(_InternalTransfer):
    """KL(teacher || student) of each token's attention, the mean over heads and tokens. Both
    networks must have the same number of heads."""

    internals = ("attention_scores",)

    def compare(self, ours: Tensor, theirs: Tensor, mask: Tensor) -> Tensor:
        """From the scores [B, N, S, S] after the mask."""
        check_heads(ours, theirs)
        rows = ops.mean(ops.sum(kl(ours, theirs), axis=-1), axis=1)             # [B, S]
        return ops.sum(rows * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)


@register
class InternalCosine(_InternalTransfer):
    """1 - the cosine of the vectors of [CLS]; both networks must have the width H."""

    internals = ("layer_outputs",)

    def compare(self, ours: Tensor, theirs: Tensor, mask: Tensor) -> Tensor:
        """From the outputs [B, S, H]."""
        if ours.shape[-1] != theirs.shape[-1]:
            raise InputError(f"the teacher is {theirs.shape[-1]} wide and the student "
                             f"{ours.shape[-1]}: the cosine of their vectors needs equal widths "
                             "(hidden_size); choose another student or recipe.")
        student, teacher = ours[:, 0], theirs[:, 0]
        lengths = ops.sqrt(ops.sum(ops.square(student), -1) * ops.sum(ops.square(teacher), -1))
        return 1.0 - ops.sum(student * teacher, axis=-1) / ops.maximum(lengths, _LEAST)
