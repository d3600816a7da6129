"""One network for several tasks, some of which have teachers (arXiv:1904.09482).

Shapes: B batch, C the most labels of a task with teachers.
"""

from collections.abc import Mapping

from keras import ops

from bert_tf.compression.soft_targets import (
    IS_LABELLED,
    SOFT_WEIGHTS,
    TEACHER_LOGITS,
    AnswerObjective,
)
from bert_tf.compression.student import Student
from bert_tf.data.batches.task_batches import IS_TAUGHT, IS_WORD_LABELLED, WORD_LOGITS, WORD_WEIGHTS
from bert_tf.layers.base import Tensor
from bert_tf.objectives.base import Batch, Objective
from bert_tf.objectives.tagging import Tagging
from bert_tf.training.learners.learner import Measures
from bert_tf.training.learners.multitask import MultiTaskLearner


class MultiTaskStudent(Student, MultiTaskLearner):
    """A `MultiTaskLearner` with a `SoftTargets` for each task that has teachers.

    A batch also has the teachers' answers (`data.batches.task_batches`), and `is_taught` [B, 1], 0
    where its task has no teachers. `without_auxiliary` is the class of a learner of the tasks
    alone.
    """

    without_auxiliary = MultiTaskLearner

    def batch_for(self, objective: Objective, batch: Batch) -> Batch:
        """See `MultiTaskLearner`; soft targets have the weights of their task's examples."""
        head = next((one for one in self.heads if one.name == getattr(objective, "head", "")),
                    objective)
        found = MultiTaskLearner.batch_for(self, head, batch) if head in self.heads else batch
        of_words = isinstance(head, Tagging)
        logits = batch.get(WORD_LOGITS if of_words else TEACHER_LOGITS)
        if logits is None:
            return {name: value for name, value in found.items() if name != TEACHER_LOGITS}
        if isinstance(objective, AnswerObjective):
            weights = head.targets(found)[1]                            # [B], [B, 1] or [B, S]
            taught = ops.reshape(ops.cast(batch[IS_TAUGHT], "float32"), (-1,))
            if len(weights.shape) == 2:
                taught = taught[:, None]
            return {**found, SOFT_WEIGHTS: weights * taught,
                    TEACHER_LOGITS: logits[:, :head.num_labels]}
        name = WORD_WEIGHTS if of_words else "is_real_example"
        counts = batch[IS_WORD_LABELLED][:, 0] if of_words else batch[IS_LABELLED]
        return {**found, name: ops.cast(found[name], "float32") * ops.cast(counts, "float32")}

    def measure_logits(self, logits: Mapping[str, Tensor], batch: Batch) -> Measures:
        targets = self.targets(batch)
        return {one.name: {"loss": (one.measure(logits[one.name], *targets[one.name])["loss"]
                                    if isinstance(one, AnswerObjective) else
                                    one.loss(logits[one.name], *targets[one.name]))}
                for one in self.objectives}

    def total_loss(self, measures: Measures, counts: Mapping[str, Tensor] | None = None) -> Tensor:
        """See `MultiTaskLearner`: soft targets are no tasks of their own."""
        return MultiTaskLearner.total_loss(self, measures, counts)
