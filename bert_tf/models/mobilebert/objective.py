"""MobileBERT's objectives for learning from its teacher, layer by layer and then from its
predictions (arXiv:2004.02984, section 3.4; google-research mobilebert/run_pretraining.py and
distill_util.py).

Shapes: B batch, S sequence, P predictions, N heads, H hidden, L layers, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

from keras import ops

from bert_tf.config import Sizes
from bert_tf.errors import InputError, counted
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch
from bert_tf.objectives.divergences import cross_entropy
from bert_tf.objectives.taught import TaughtObjective, check_heads, of_teacher

_EPSILON = 1e-12


def phase(step: Tensor, layer: int, phase_steps: int) -> Tensor:
    """A step's place in progressive transfer for a layer, int32: -1 before the layer's phase, 0 in
    it, 1 after it. A phase has the steps `phase_steps` * layer + 1 to `phase_steps` * (layer + 1);
    step 0 belongs to no phase, as in the original."""
    step = ops.cast(step, "int32")
    begins, ends = phase_steps * layer, phase_steps * (layer + 1)
    return ops.where(step <= begins, -1, ops.where(step <= ends, 0, 1))


class _ProgressiveTransfer(TaughtObjective):
    """Compares each layer with the teacher's layer of the same number, in its phase of
    `phase_steps` steps only (0: at all steps); in evaluation, where a batch has no `step`, always.
    The mean is over all positions, with padding; the layers' losses are added up and divided by
    L."""

    config_keys = ("phase_steps",)

    def __init__(self, config: Sizes, phase_steps: int = 0, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.phase_steps = phase_steps

    def compare(self, ours: Tensor, theirs: Tensor, layers: Sequence[Tensor]) -> Tensor:
        """Each position's loss, float32 [B, S], from both layers' tensors and all the teacher's."""
        raise NotImplementedError

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """float32 [B, S]."""
        name = self.internals[-1]
        student, teacher = outputs[name], batch[of_teacher(name)]
        if len(student) != len(teacher):
            raise InputError(f"the teacher has {counted(len(teacher), 'layer')} and the student "
                             f"{len(student)}: layers are compared one by one; give the student as "
                             "many layers as the teacher (num_hidden_layers).")
        layers = [batch[of_teacher(other)] for other in self.internals[:-1]] + list(teacher)
        gates = [1.0] * len(student)
        if self.phase_steps and "step" in batch:
            gates = [ops.cast(ops.equal(phase(batch["step"], i, self.phase_steps), 0), "float32")
                     for i in range(len(student))]
        terms = [gate * self.compare(own, other, layers)
                 for gate, own, other in zip(gates, student, teacher)]
        return sum(terms[1:], start=terms[0]) / len(terms)

    def count(self, batch: Batch) -> Tensor:
        return ops.cast(ops.size(batch["input_ids"]), "float32")


@register
class FeatureMapTransfer(_ProgressiveTransfer):
    """The mean square of the difference of both layers' normalised outputs, of equal width H."""

    internals = ("layer_outputs",)

    def compare(self, ours: Tensor, theirs: Tensor, layers: Sequence[Tensor]) -> Tensor:
        return ops.mean(ops.square(_normalised(theirs) - _normalised(ours)), axis=-1)


@register
class AttentionMapTransfer(_ProgressiveTransfer):
    """The cross-entropy of both layers' attention maps, mean over equally many heads."""

    internals = ("attention_scores",)

    def compare(self, ours: Tensor, theirs: Tensor, layers: Sequence[Tensor]) -> Tensor:
        check_heads(ours, theirs)
        return ops.mean(ops.sum(cross_entropy(ours, theirs), axis=-1), axis=1)


class _StatisticsTransfer(_ProgressiveTransfer):
    """Compares a statistic of the outputs' width. `of_all_layers` compares each layer with all
    layers of the teacher, its embeddings first, as the original's code does; otherwise with its own
    layer, as in the paper. The original compares neither means nor variances if a weight of the two
    is 0."""

    internals = ("embedding_output", "layer_outputs")
    config_keys = ("of_all_layers",)

    def __init__(self, config: Sizes, phase_steps: int = 0, of_all_layers: bool = True,
                 **kwargs: Any):
        super().__init__(config, phase_steps, **kwargs)
        self.of_all_layers = of_all_layers

    def differ(self, ours: Tensor, theirs: Tensor) -> Tensor:
        """Returns each position's loss, float32 [B, S], from two outputs, float32 [B, S, H]."""
        raise NotImplementedError

    def compare(self, ours: Tensor, theirs: Tensor, layers: Sequence[Tensor]) -> Tensor:
        ours = ops.cast(ours, "float32")
        if not self.of_all_layers:
            layers = [theirs]
        differences = [self.differ(ours, ops.cast(layer, "float32")) for layer in layers]
        return sum(differences[1:], start=differences[0]) / len(differences)


@register
class MeanTransfer(_StatisticsTransfer):
    """The square of the difference of means."""

    def differ(self, ours: Tensor, theirs: Tensor) -> Tensor:
        return ops.square(ops.mean(theirs, axis=-1) - ops.mean(ours, axis=-1))


@register
class VarianceTransfer(_StatisticsTransfer):
    """The absolute difference of variances."""

    def differ(self, ours: Tensor, theirs: Tensor) -> Tensor:
        return ops.abs(ops.var(theirs, axis=-1) - ops.var(ours, axis=-1))


@register
class PredictionTransfer(TaughtObjective):
    """The cross-entropy of the masked LM's predictions with the teacher's, at masked positions."""

    internals = ("masked_lm",)

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """float32 [B, P]."""
        losses = cross_entropy(outputs["masked_lm"], batch[of_teacher("masked_lm")])     # [B, P, V]
        return ops.sum(losses, axis=-1) * ops.cast(batch["masked_lm_weights"], "float32")

    def count(self, batch: Batch) -> Tensor:
        return ops.sum(ops.cast(batch["masked_lm_weights"], "float32"))


def _normalised(x):
    """Outputs [B, S, H] normalised to mean 0 and variance 1, float32."""
    x = ops.cast(x, "float32")
    x = x - ops.mean(x, axis=-1, keepdims=True)
    return x * ops.rsqrt(ops.mean(ops.square(x), axis=-1, keepdims=True) + _EPSILON)
