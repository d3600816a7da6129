"""TinyBERT's objectives for learning from its teacher's layers (arXiv:1909.10351;
huawei-noah/Pretrained-Language-Model, TinyBERT/task_distill.py).

Shapes: B batch, S sequence, N heads, H hidden, L layers, W the teacher's width.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from keras import ops

from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch, example_weights
from bert_tf.objectives.taught import FIRST_STATE, TaughtObjective, check_heads, of_teacher

# Scores up to this one belong to masked tokens, which the original does not compare.
_MASKED = -100.0


def layer_ratio(layers: int, teacher_layers: int) -> int:
    """The number of the teacher's layers for each layer, which must be whole."""
    if not layers or teacher_layers % layers:
        raise InputError(f"the teacher has {teacher_layers} layers and the student {layers}; "
                         "choose a student whose number of layers divides the teacher's.")
    return teacher_layers // layers


def mean_square(ours: Sequence[Tensor], theirs: Sequence[Tensor], real: Tensor) -> Tensor:
    """The summed squared differences of pairs of tensors [B, ...], times `real`: float32 [B]."""
    total: Tensor = 0.0
    for own, other in zip(ours, theirs):
        square = ops.square(ops.cast(own, "float32") - ops.cast(other, "float32"))
        total += ops.sum(ops.reshape(square, (ops.shape(square)[0], -1)), axis=1)
    return total * real


def real_rows(batch: Batch) -> Tensor:
    """float32 [B], 0 for examples that only fill up a batch; [B * C] of C choices."""
    sequences = ops.ones_like(batch["input_ids"][..., 0], "float32")        # [B] or [B, C]
    weights = example_weights(batch, sequences)
    if len(sequences.shape) > 1 and len(weights.shape) == 1:
        weights = weights[:, None]
    return ops.reshape(weights * sequences, (-1,))


class _LayerTransfer(TaughtObjective):
    """Compares tensors of layers. A layer's mean square is over all examples and elements, with
    padding; the loss is the sum of these means over layers."""

    idle_id = 0     # as PyTorch's embeddings of padding

    def size(self, length: Tensor) -> Tensor:
        """The number of elements of a layer's tensor for one example of `length` tokens."""
        raise NotImplementedError

    def count(self, batch: Batch) -> Tensor:
        length = ops.cast(ops.shape(batch["input_ids"])[-1], "float32")
        return ops.sum(real_rows(batch)) * self.size(length)


@register
class AttentionTransfer(_LayerTransfer):
    """Compares layers' attention scores, after the mask, with the last of their teacher layers."""

    internals = ("attention_scores",)

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """float32 [B]."""
        student, teacher = outputs["attention_scores"], batch[of_teacher("attention_scores")]
        every = layer_ratio(len(student), len(teacher))
        check_heads(student[0], teacher[0])
        student, teacher = ([ops.where(scores <= _MASKED, 0.0, scores) for scores in side]
                            for side in (student, teacher[every - 1::every]))
        return mean_square(student, teacher, real_rows(batch))

    def size(self, length: Tensor) -> Tensor:
        return self.config.num_attention_heads * length * length


@register
class HiddenTransfer(_LayerTransfer):
    """Compares the first layer's input and each layer's output with the last of its teacher layers,
    through one dense layer `fit_dense` to the teacher's width W."""

    internals = (FIRST_STATE, "layer_outputs")
    sizes: ClassVar[dict[str, str]] = {"teacher_width": "hidden_size"}
    config_keys = ("teacher_width",)

    def __init__(self, config: Sizes, teacher_width: int, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.teacher_width = teacher_width
        self.fit_dense = self.dense(teacher_width, "fit_dense")
        self.fit_dense.build((None, None, config.hidden_size))

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """float32 [B]."""
        student = [outputs[FIRST_STATE], *outputs["layer_outputs"]]
        teacher = [batch[of_teacher(FIRST_STATE)], *batch[of_teacher("layer_outputs")]]
        every = layer_ratio(len(student) - 1, len(teacher) - 1)
        return mean_square([self.fit_dense(x) for x in student], teacher[::every], real_rows(batch))

    def size(self, length: Tensor) -> Tensor:
        return length * self.teacher_width
