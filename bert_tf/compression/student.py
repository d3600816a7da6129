"""A student, which learns from a teacher and from gold labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras import ops

from bert_tf.compression.soft_targets import (
    IS_LABELLED,
    SOFT_WEIGHTS,
    AnswerObjective,
    Patience,
    SoftTargets,
)
from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor
from bert_tf.objectives.answer_span import AnswerSpan
from bert_tf.objectives.base import Batch, Objective
from bert_tf.objectives.classification import MultiLabel, Regression
from bert_tf.recipes.distillation import Distillation
from bert_tf.training.learners.learner import Learner, Measures


class Student(Learner):
    """A Learner whose last objectives, `AnswerObjective`, compare it with a teacher.

    The first ones are heads, of which gold labels are learned where `is_labelled` is 1. What a
    teacher answers is part of the batch. A mean without examples is 0. What is saved is a plain
    Learner of the heads.
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
                options |= {"form": "mse", "mean_over": "examples", "scale": head.scale}
            options["is_binary"] = isinstance(head, MultiLabel)
            options["of_positions"] = isinstance(head, AnswerSpan)
        made.append(TERMS[term.objective](config, **options))
    return made
