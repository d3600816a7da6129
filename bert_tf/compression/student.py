"""A student, which learns from a teacher and from gold labels: for one task, or for several tasks,
some with teachers (arXiv:1904.09482).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from keras import ops

from bert_tf.compression.soft_targets import (
    IS_LABELLED,
    SOFT_WEIGHTS,
    TEACHER_LOGITS,
    AnswerObjective,
    Patience,
    SoftTargets,
)
from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor
from bert_tf.models.mtdnn.batches import IS_TAUGHT, IS_WORD_LABELLED, WORD_LOGITS, WORD_WEIGHTS
from bert_tf.models.mtdnn.learner import MultiTaskLearner
from bert_tf.objectives.answer_span import AnswerSpan
from bert_tf.objectives.base import Batch, Objective
from bert_tf.objectives.classification import MultiLabel, Regression
from bert_tf.objectives.tagging import Tagging
from bert_tf.recipes.distillation import Distillation
from bert_tf.training.learners.learner import Learner, Measures


class Student(Learner):
    """A Learner whose last objectives, `AnswerObjective`, compare it with a teacher.

    The first objectives are heads. They learn gold labels where `is_labelled` is 1. The batch holds
    the teacher's answers. A mean without examples is 0. A plain Learner of the heads is saved.
    """

    epsilon = 0.0

    @property
    def heads(self) -> list[Objective]:
        """The objectives that are saved."""
        return [one for one in self.objectives if not isinstance(one, AnswerObjective)]

    def read_outputs(self, outputs: Any, batch: Batch, seeds: Sequence) -> dict[str, Tensor]:
        logits: dict[str, Tensor] = {}
        for objective, seed in zip(self.objectives, seeds):
            seen, features = self.seen_by(objective, outputs, batch)
            if isinstance(objective, AnswerObjective):
                seen = {**seen, "head_logits": dict(logits)}
            logits[objective.name] = objective(seen, features, self.encoder.embedding_table, seed)
        return logits

    def batch_for(self, objective: Objective, batch: Batch) -> Batch:
        if isinstance(objective, AnswerObjective):
            name = getattr(objective, "head", "")
            head = next((one for one in self.heads if one.name == name), self.heads[0])
            return {**batch, SOFT_WEIGHTS: head.targets(batch)[1]}
        if IS_LABELLED not in batch:
            return batch
        name = "label_weights" if "label_weights" in batch else "is_real_example"
        counts = ops.cast(batch[IS_LABELLED], "float32")                # [B, 1], of words [B, S]
        return {**batch, name: ops.cast(batch[name], "float32") * counts}

    def total_loss(self, measures: Measures, counts: Mapping[str, Tensor] | None = None) -> Tensor:
        """Returns a Learner's total loss, where an empty mean is 0. Without a teacher's answers, as
        in evaluation, it is the loss of the gold labels."""
        counts = {one.name: measures[one.name]["loss"][1] if counts is None else counts[one.name]
                  for one in self.objectives}
        taught = sum(counts[one.name] for one in self.objectives if one not in self.heads)
        total: Tensor = 0.0
        for objective in self.objectives:
            count, weight = counts[objective.name], objective.loss_weight
            if objective in self.heads:
                weight = ops.where(taught > 0, weight, 1.0)
            total += weight * measures[objective.name]["loss"][0] / ops.where(count > 0, count, 1.0)
        return total


class MultiTaskStudent(Student, MultiTaskLearner):
    """A `MultiTaskLearner` with a `SoftTargets` for each task that has teachers.

    A batch also has the teachers' answers (`data.batches.task_batches`), and `is_taught` [B, 1], 0
    where its task has no teachers. `without_auxiliary` is a learner of the tasks alone.
    """

    without_auxiliary = MultiTaskLearner

    def batch_for(self, objective: Objective, batch: Batch) -> Batch:
        """See `MultiTaskLearner`; soft targets have the weights of their task's examples."""
        head = next((one for one in self.heads if one.name == getattr(objective, "head", "")),
                    objective)
        features = MultiTaskLearner.batch_for(self, head, batch) if head in self.heads else batch
        of_words = isinstance(head, Tagging)
        logits = batch.get(WORD_LOGITS if of_words else TEACHER_LOGITS)
        if logits is None:
            return {name: value for name, value in features.items() if name != TEACHER_LOGITS}
        if isinstance(objective, AnswerObjective):
            weights = head.targets(features)[1]                            # [B], [B, 1] or [B, S]
            taught = ops.reshape(ops.cast(batch[IS_TAUGHT], "float32"), (-1,))
            if len(weights.shape) == 2:
                taught = taught[:, None]
            return {**features, SOFT_WEIGHTS: weights * taught,
                    TEACHER_LOGITS: logits[:, :head.num_labels]}
        name = WORD_WEIGHTS if of_words else "is_real_example"
        counts = batch[IS_WORD_LABELLED][:, 0] if of_words else batch[IS_LABELLED]
        return {**features, name: ops.cast(features[name], "float32") * ops.cast(counts, "float32")}

    def total_loss(self, measures: Measures, counts: Mapping[str, Tensor] | None = None) -> Tensor:
        """See `MultiTaskLearner`: soft targets are not tasks."""
        return MultiTaskLearner.total_loss(self, measures, counts)


# The terms that learn from stored answers.
TERMS = {"SoftTargets": SoftTargets, "Patience": Patience}


def make_terms(row: Distillation, config: Sizes, head: Objective, dtype: str | None = None,
               name: str = "") -> list[AnswerObjective]:
    """Makes the terms that a student learns from a teacher in addition to gold labels."""
    made: list[AnswerObjective] = []
    for term in row.terms:
        options = {**term.options, "loss_weight": term.weight, "dtype": dtype}
        options |= {"name": name} if name else {}
        if term.objective == "SoftTargets":
            options["head"] = head.name
            if isinstance(head, Regression):
                options |= {"form": "mse", "mean_over": "examples", "scale": head.scale,
                            "mean": head.mean}
            options["is_binary"] = isinstance(head, MultiLabel)
            options["of_positions"] = isinstance(head, AnswerSpan)
        made.append(TERMS[term.objective](config, **options))
    return made
