"""One network with a head for each task; every batch trains one task (MT-DNN,
arXiv:1901.11504, algorithm 1).

Shapes: B examples of a batch, C candidates (1 in tasks without candidates), S sequence, H hidden.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.layers.base import Tensor, register
from bert_tf.models.mtdnn.batches import WORD_LABELS, WORD_WEIGHTS
from bert_tf.objectives.base import Batch, Objective
from bert_tf.objectives.classification import MultipleChoice, Regression
from bert_tf.objectives.tagging import Tagging
from bert_tf.training.learners.learner import Learner, Measures


@register
class MultiTaskLearner(Learner):
    """A Learner whose objectives are tasks, by their names.

    A batch has features [B, C, S], `label_ids` float32 [B, 1], `is_real_example` [B, 1], and
    `task_number` [B, 1], the place of its task among the objectives; a task about words also has
    the features of `models.mtdnn.batches.of_task`. Heads of other tasks get no gradient from
    it. A plain Learner is saved.
    """

    one_task_a_batch = True
    epsilon = 0.0

    @property
    def heads(self) -> list[Objective]:
        """The objectives that are tasks, which are saved."""
        return list(self.objectives)

    @property
    def measure_names(self) -> list[tuple[str, str]]:
        """The losses alone: there may be many tasks."""
        return [(objective.name, "loss") for objective in self.objectives]

    def seen_by(self, objective: Objective, outputs: Mapping[str, Any],
                batch: Batch) -> tuple[Mapping[str, Any], Batch]:
        """All candidates for a choice among them; the first for every other head."""
        if isinstance(objective, MultipleChoice):
            return outputs, batch
        count = ops.shape(batch["input_ids"])[1]
        first = {name: ops.reshape(outputs[name], (-1, count, *ops.shape(outputs[name])[1:]))[:, 0]
                 for name in ("pooled_output", "sequence_output") if name in outputs}
        return first, {name: value[:, 0] if len(value.shape) == 3 else value
                       for name, value in batch.items()}

    def batch_for(self, objective: Objective, batch: Batch) -> Batch:
        """Examples of other tasks, and their words, have the label 0 and no weight."""
        is_mine = ops.equal(batch["task_number"], self.objectives.index(objective))     # [B, 1]
        if isinstance(objective, Tagging):
            none = ops.zeros_like(batch["input_ids"][:, :1])
            labels, weights = (batch.get(name, none)[:, 0] * ops.cast(is_mine, none.dtype)
                               for name in (WORD_LABELS, WORD_WEIGHTS))
            return {**batch, "label_ids": labels, WORD_WEIGHTS: weights}
        labels = ops.where(is_mine, batch["label_ids"], 0.0)
        real = ops.cast(batch["is_real_example"], "float32") * ops.cast(is_mine, "float32")
        if not isinstance(objective, Regression):
            labels = ops.cast(labels, "int32")
        return {**batch, "is_real_example": real, "label_ids": labels}

    def measure_logits(self, logits: Mapping[str, Tensor], batch: Batch) -> Measures:
        return {name: {"loss": measures["loss"]}
                for name, measures in super().measure_logits(logits, batch).items()}

    def total_loss(self, measures: Measures, counts: Mapping[str, Tensor] | None = None) -> Tensor:
        """Returns the mean loss of the batch's task, times its weight; for sums over batches of
        several tasks, the mean of their losses."""
        total = super().total_loss(measures, counts)
        if counts is None:
            counts = {name: of_task["loss"][1] for name, of_task in measures.items()}
        tasks = sum(ops.cast(counts[task.name] > 0, "float32") for task in self.heads)
        return total / ops.maximum(tasks, 1.0)

    def parts(self) -> dict[str, Learner]:
        return {"model": Learner(self.encoder, self.heads)}
