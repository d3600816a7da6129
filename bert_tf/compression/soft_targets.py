"""Auxiliary objectives that teach a student a teacher's answers; they are not saved.

Shapes: B batch, C classes, K layers that are compared, H hidden, S sequence.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor
from bert_tf.objectives.base import Batch, Objective
from bert_tf.objectives.divergences import BOTH_WAYS, DIVERGENCES, OF_EACH, OF_LOGITS, binary

# The features of records that hold a teacher's answers.
TEACHER_LOGITS, TEACHER_CLS = "teacher_logits", "teacher_cls"
# Which examples have a gold label, int [B, 1]; all where it is absent.
IS_LABELLED = "is_labelled"
_NO_LOGIT = -1e9
# The feature that `Student` gives to an auxiliary objective: weights of the logits [...].
SOFT_WEIGHTS = "soft_weights"


class AnswerObjective(Objective):
    """An auxiliary objective that compares a student with a teacher's stored answers.

    `call` picks the compared tensor from the student's outputs; `outputs["head_logits"]` has the
    logits of its heads by name. `targets` picks the teacher's tensor from a batch. A batch without
    that tensor, such as a batch to be scored, has no part in the loss.

    Attributes:
        reads: its first name is the feature of the teacher.
    """

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
            mean divided by C.
        is_binary: whether each logit is a decision of its own.
        of_positions: whether one of the S positions is chosen; the teacher never chooses padding.
        scale, mean: of a regression, whose form is "mse": the mean is subtracted from the teacher's
            numbers, and they are divided by the scale.

    Raises:
        InputError: there is no such form, or the temperature is not above 0.
    """

    reads = (TEACHER_LOGITS,)

    def __init__(self, config: Sizes, head: str, form: str = "kl", temperature: float = 1.0,
                 scales_gradient: bool = True, mean_over: str = "examples",
                 is_binary: bool = False, scale: float = 1.0, mean: float = 0.0,
                 of_positions: bool = False, **kwargs: Any):
        if form not in DIVERGENCES:
            raise InputError(f"there is no form {form!r} of soft targets; choose from "
                             f"{', '.join(DIVERGENCES)}.")
        if not 0 < temperature < float("inf"):
            raise InputError(f"--temperature is {temperature}; it must be above 0.")
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
            logits, labels = binary(logits), binary(labels)
        is_place = labels > _NO_LOGIT
        if self.of_positions and self.form in BOTH_WAYS:
            logits = ops.where(is_place, logits, _NO_LOGIT)
        divides = self.form not in OF_LOGITS and self.temperature != 1
        if divides:
            logits, labels = logits / self.temperature, labels / self.temperature
        values = DIVERGENCES[self.form](logits, labels)                              # [..., C]
        if self.of_positions and self.form in OF_EACH:
            values = ops.where(is_place, values, 0.0)
        if len(weights.shape) < len(values.shape):
            values = ops.sum(values, axis=-1)
        factor = self.temperature**2 if divides and self.scales_gradient else 1.0
        return factor * ops.sum(values * weights), count

    def count_of(self, labels: Tensor, weights: Tensor) -> Tensor:
        by_class = self.mean_over == "classes" and len(weights.shape) < len(labels.shape)
        return ops.sum(weights) * (ops.cast(ops.shape(labels)[-1], "float32") if by_class else 1.0)


class Patience(AnswerObjective):
    """Draws the vectors of [CLS] in a student's layers, except the top one, towards a teacher's
    vectors, `teacher_cls` [B, K * H] (arXiv:1908.09355, equation 6).

    The loss is the mean of the squared differences over examples, layers and H. The original rounds
    it to float16.

    Args:
        layers: which of the teacher's layers are compared; see `patience_layers`.
        normalizes: whether vectors are scaled to the length 1 first.
    """

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
