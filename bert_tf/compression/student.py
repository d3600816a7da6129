"""A student, which learns from a teacher and from gold labels, for one task or for several, some
with teachers (arXiv:1904.09482); and its auxiliary objectives, which teach it a teacher's answers,
and are not saved. Shapes: K layers that are compared."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor
from bert_tf.models.mtdnn.batches import IS_TAUGHT, IS_WORD_LABELLED, WORD_LOGITS, WORD_WEIGHTS
from bert_tf.models.mtdnn.learner import MultiTaskLearner
from bert_tf.objectives import divergences
from bert_tf.objectives.answer_span import AnswerSpan
from bert_tf.objectives.base import Batch, Objective
from bert_tf.objectives.classification import MultiLabel, Regression
from bert_tf.objectives.tagging import Tagging
from bert_tf.recipes.distillation import Distillation
from bert_tf.training.learners.learner import Learner, Measures

# The features of records that hold a teacher's answers.
TEACHER_LOGITS, TEACHER_CLS = "teacher_logits", "teacher_cls"
# Which examples have a gold label, int [B, 1]; all where it is absent.
IS_LABELLED = "is_labelled"
_NO_LOGIT = -1e9
# The feature that `Student` gives to an auxiliary objective: weights of the logits [...].
SOFT_WEIGHTS = "soft_weights"


class AnswerObjective(Objective):
    """An auxiliary objective that compares a student with a teacher's stored answers, of which the
    first of `reads` names the feature.

    `call` picks the compared tensor from the student's outputs; `outputs["head_logits"]` has the
    logits of its heads by name. `targets` picks the teacher's tensor from a batch. A batch without
    that tensor, such as a batch to be scored, has no part in the loss."""

    auxiliary = True
    measures = ("loss",)

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor
                ) -> dict[str, tuple[Tensor, Tensor]]:
        if labels is None:
            return {"loss": (ops.zeros(()), ops.zeros(()))}
        return {"loss": self.loss(logits, labels, weights)}

    def count(self, batch: Batch) -> Tensor:
        labels, weights = self.targets(batch)
        return ops.zeros(()) if labels is None else self.count_of(labels, weights)

    def count_of(self, labels: Tensor, weights: Tensor) -> Tensor:
        """Returns the divisor of the sum of the losses."""
        raise NotImplementedError

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        return {}


class SoftTargets(AnswerObjective):
    """Draws the logits of a head towards a teacher's: `teacher_logits` [B, C], of each token
    [B, C, S], or of each end of an answer [B, 2, S].

    Args:
        head: the name of the objective whose logits are compared.
        form: a name of `DIVERGENCES`.
        temperature: divides the logits first, except in the form "mse".
        scales_gradient: whether the loss is multiplied by the square of the temperature
            (arXiv:1503.02531, section 2).
        mean_over: "examples" (or tokens): the mean of the sums over classes; or "classes": this
            mean divided by C. "mse" and "hl" are always divided by C, but not `of_positions`.
        is_binary: whether each logit is a decision of its own.
        of_positions: whether one of the S positions is chosen; the teacher never chooses padding.
        scale, mean: of a regression, whose form is "mse": the mean is subtracted from the teacher's
            numbers, and they are divided by the scale.
    """

    reads = (TEACHER_LOGITS,)

    def __init__(self, config: Sizes, head: str, form: str = "kl", temperature: float = 1.0,
                 scales_gradient: bool = True, mean_over: str = "examples",
                 is_binary: bool = False, scale: float = 1.0, mean: float = 0.0,
                 of_positions: bool = False, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.head, self.form, self.temperature = head, form, temperature
        self.scales_gradient, self.mean_over = scales_gradient, mean_over
        self.is_binary, self.of_positions = is_binary, of_positions
        self.scale, self.mean = scale, mean

    def call(self, outputs: Mapping[str, Any], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        return outputs["head_logits"][self.head]

    def targets(self, batch: Batch) -> tuple[Any, Any]:
        """The teacher's logits [B, C], [B, S, C] or [B, 2, S]; weights [B], [B, S], [B, C], [B,
        2]."""
        if self.reads[0] not in batch:
            return None, None
        logits = ops.cast(batch[self.reads[0]], "float32")
        if self.of_positions:
            is_token = ops.cast(batch["input_mask"], "bool")[:, None]
            logits = ops.where(is_token, logits, _NO_LOGIT)
        elif len(logits.shape) == 3:
            logits = ops.transpose(logits, (0, 2, 1))
        return (logits - self.mean) / self.scale, batch[SOFT_WEIGHTS]

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the weighted sum of the losses, and its divisor (float32 scalars). Logits of
        student and teacher are float32 [..., C]; weights are [...], or [..., C] of decisions."""
        count = self.count_of(labels, weights)
        if self.is_binary:
            logits, labels = divergences.binary(logits), divergences.binary(labels)
        is_place = labels > _NO_LOGIT
        if self.of_positions and self.form in divergences.BOTH_WAYS:
            logits = ops.where(is_place, logits, _NO_LOGIT)
        divides = self.form not in divergences.OF_LOGITS and self.temperature != 1
        if divides:
            logits, labels = logits / self.temperature, labels / self.temperature
        values = divergences.DIVERGENCES[self.form](logits, labels)                  # [..., C]
        if self.of_positions and self.form in divergences.OF_EACH:
            values = ops.where(is_place, values, 0.0)
        if len(weights.shape) < len(values.shape):
            values = ops.sum(values, axis=-1)
        total = ops.sum(values * weights)
        if divides and self.scales_gradient:
            total = self.temperature**2 * total
        return total, count

    def count_of(self, labels: Tensor, weights: Tensor) -> Tensor:
        is_mean = self.form in divergences.OF_MEAN and not self.of_positions
        if (is_mean or self.mean_over == "classes") and len(weights.shape) < len(labels.shape):
            return ops.sum(weights) * ops.cast(ops.shape(labels)[-1], "float32")
        return ops.sum(weights)


class Patience(AnswerObjective):
    """Draws the vectors of [CLS] in a student's layers, except the top one, towards a teacher's
    vectors, `teacher_cls` [B, K * H] (arXiv:1908.09355, equation 6). They are scaled to the length
    1 first if this `normalizes`; `layers` names the teacher's, see `patience_layers`. The loss is
    the mean of the squared differences over examples, layers and H. The original rounds it to
    float16."""

    reads = (TEACHER_CLS,)

    def __init__(self, config: Sizes, layers: str = "skip", normalizes: bool = True, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.layers, self.normalizes = layers, normalizes

    def call(self, outputs: Mapping[str, Any], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """float32 [B, K, H]."""
        vectors = [layer[:, 0] for layer in outputs["layer_outputs"][:-1]]
        return ops.cast(ops.stack(vectors, axis=1), "float32")

    def targets(self, batch: Batch) -> tuple[Any, Any]:
        """The teacher's vectors, float32 [B, K, H], and weights [B]."""
        if self.reads[0] not in batch:
            return None, None
        vectors = ops.cast(batch[self.reads[0]], "float32")
        rows = ops.shape(vectors)[0]
        shape = (rows, self.config.depth - 1, self.config.hidden_size)
        # Numbers and labels of an example, [B, C], have one weight.
        weights = ops.reshape(batch[SOFT_WEIGHTS], (rows, -1))[:, 0]
        return ops.reshape(vectors, shape), weights

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        if self.normalizes:
            logits, labels = (ops.normalize(x, axis=-1, epsilon=1e-12) for x in (logits, labels))
        values = ops.sum(ops.square(logits - labels), axis=(1, 2))              # [B]
        return ops.sum(values * weights), self.count_of(labels, weights)

    def count_of(self, labels: Tensor, weights: Tensor) -> Tensor:
        return ops.sum(weights) * (labels.shape[1] * labels.shape[2])


# The terms that learn from stored answers.
TERMS = {"SoftTargets": SoftTargets, "Patience": Patience}


class Student(Learner):
    """A Learner whose last objectives, `AnswerObjective`, compare it with a teacher, whose answers
    the batch holds. The first objectives are heads, which learn gold labels where `is_labelled` is
    1. A mean without examples is 0. A plain Learner of the heads is saved."""

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
        if counts is None:
            counts = {one.name: measures[one.name]["loss"][1] for one in self.objectives}
        taught = sum(counts[one.name] for one in self.objectives if one not in self.heads)
        total: Tensor = 0.0
        for objective in self.objectives:
            count, weight = counts[objective.name], objective.loss_weight
            if objective in self.heads:
                weight = ops.where(taught > 0, weight, 1.0)
            total += weight * measures[objective.name]["loss"][0] / ops.where(count > 0, count, 1.0)
        return total


class MultiTaskStudent(Student, MultiTaskLearner):
    """A `MultiTaskLearner` with a `SoftTargets` for each task that has teachers. A batch also has
    the teachers' answers (`data.batches.task_batches`), and `is_taught` [B, 1], 0 where its task
    has no teachers. `without_auxiliary` is a learner of the tasks alone."""

    without_auxiliary = MultiTaskLearner

    def batch_for(self, objective: Objective, batch: Batch) -> Batch:
        """See `MultiTaskLearner`; soft targets have the weights of their task's examples."""
        head = next((one for one in self.heads if one.name == getattr(objective, "head", "")),
                    objective)
        features = MultiTaskLearner.batch_for(self, head, batch) if head in self.heads else batch
        name, logits = "is_real_example", batch.get(TEACHER_LOGITS)
        of_words = isinstance(head, Tagging)
        if of_words:
            name, logits = WORD_WEIGHTS, batch.get(WORD_LOGITS)
        if logits is None:
            return {name: value for name, value in features.items() if name != TEACHER_LOGITS}
        if isinstance(objective, AnswerObjective):
            weights = head.targets(features)[1]                            # [B], [B, 1] or [B, S]
            taught = ops.reshape(ops.cast(batch[IS_TAUGHT], "float32"), (-1,))
            if len(weights.shape) == 2:
                taught = taught[:, None]
            return {**features, SOFT_WEIGHTS: weights * taught,
                    TEACHER_LOGITS: logits[:, :head.num_labels]}
        counts = batch[IS_WORD_LABELLED][:, 0] if of_words else batch[IS_LABELLED]
        return {**features, name: ops.cast(features[name], "float32") * ops.cast(counts, "float32")}

    def total_loss(self, measures: Measures, counts: Mapping[str, Tensor] | None = None) -> Tensor:
        """See `MultiTaskLearner`: soft targets are not tasks."""
        return MultiTaskLearner.total_loss(self, measures, counts)


def make_terms(row: Distillation, config: Sizes, head: Objective, dtype: str | None = None,
               name: str = "") -> list[AnswerObjective]:
    """Makes the terms that a student learns from a teacher in addition to gold labels."""
    made: list[AnswerObjective] = []
    for term in row.terms:
        options = {**term.options, "loss_weight": term.weight, "dtype": dtype}
        if name:
            options["name"] = name
        if term.objective == "SoftTargets":
            options["head"] = head.name
            if isinstance(head, Regression):
                options |= {"form": "mse", "mean_over": "examples", "scale": head.scale,
                            "mean": head.mean}
            options["is_binary"] = isinstance(head, MultiLabel)
            options["of_positions"] = isinstance(head, AnswerSpan)
        made.append(TERMS[term.objective](config, **options))
    return made
