"""One network of several tasks, some of which have teachers (arXiv:1904.09482).

Shapes: B batch, C the most labels of a task with teachers.
"""

from collections.abc import Mapping

from keras import ops

from bert_tf.compression.soft_targets import IS_LABELLED, SOFT_WEIGHTS, TEACHER_LOGITS, Teaching
from bert_tf.compression.student import Student
from bert_tf.data.task_batches import IS_TAUGHT
from bert_tf.layers.base import Tensor
from bert_tf.objectives.base import Batch, Objective
from bert_tf.training.learner import Measures
from bert_tf.training.multitask import MultiTaskLearner


class MultiTaskStudent(Student, MultiTaskLearner):
    """A `MultiTaskLearner` with a `SoftTargets` for each task that has teachers.

    A batch has `teacher_logits` [B, C] too, and `is_taught` [B, 1], 0 where its task has no
    teachers.
    """

    def learned_by(self, objective: Objective, batch: Batch) -> Batch:
        """As of a `MultiTaskLearner`; soft targets have the weights of their task's examples."""
        head = next((one for one in self.heads if one.name == getattr(objective, "head", "")),
                    objective)
        found = MultiTaskLearner.learned_by(self, head, batch) if head in self.heads else batch
        if TEACHER_LOGITS not in batch:
            return found
        if isinstance(objective, Teaching):
            weights = head.targets(found)[1]                                    # [B] or [B, 1]
            taught = ops.reshape(ops.cast(batch[IS_TAUGHT], "float32"), (-1,))
            if len(weights.shape) == 2:
                taught = taught[:, None]
            return {**found, SOFT_WEIGHTS: weights * taught,
                    TEACHER_LOGITS: batch[TEACHER_LOGITS][:, :head.num_labels]}
        return {**found, "is_real_example": found["is_real_example"] * ops.cast(
            batch[IS_LABELLED], "float32")}

    def measure_logits(self, logits: Mapping[str, Tensor], batch: Batch) -> Measures:
        targets = self.targets(batch)
        return {one.name: {"loss": (one.measure(logits[one.name], *targets[one.name])["loss"]
                                    if isinstance(one, Teaching) else
                                    one.loss(logits[one.name], *targets[one.name]))}
                for one in self.objectives}

    def total_loss(self, measures: Measures, counts: Mapping[str, Tensor] | None = None) -> Tensor:
        """As of a `MultiTaskLearner`: soft targets are no tasks of their own."""
        return MultiTaskLearner.total_loss(self, measures, counts)
