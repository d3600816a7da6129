"""ERNIE 2.0's pre-training tasks in addition to the masked LM (arXiv:1907.12412, section 4).
PaddlePaddle/ERNIE has a head for tasks of sequences (model/ernie.py, get_task_output), but not for
tasks of tokens. `task_ids` gives a record's task by its place in the recipe.

Shapes: B batch, S sequence, H hidden.
"""

from typing import Any

from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch, LabelHead


class SequenceTask(LabelHead):
    """A class of the sequence: logits [B, num_labels], labels `next_sentence_labels`, for the
    records whose task is `task_id`. `defaults` has the defaults of `num_labels` and `task_id`."""

    defaults: tuple[int, int]
    checks_range = False
    reads: tuple[str, ...] = ("next_sentence_labels", "task_ids")
    config_keys = ("task_id",)

    def __init__(self, config: Sizes, num_labels: int = 0, task_id: int = 0,
                 dropout_rate: float = 0.0, **kwargs: Any):
        labels, place = self.defaults
        super().__init__(config, num_labels or labels, dropout_rate=dropout_rate, **kwargs)
        self.task_id = task_id or place

    def is_mine(self, batch: Batch) -> Tensor:
        """float32 [B], 1 where a record belongs to this task."""
        tasks = ops.reshape(batch["task_ids"], (-1,))
        return ops.cast(ops.equal(tasks, self.task_id), "float32")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B]; other tasks' labels are 0."""
        labels, weights = super().targets(batch)
        of_task = self.is_mine(batch)
        return ops.where(of_task > 0, labels, 0), weights * of_task


class TokenTask(SequenceTask):
    """A class of each token: logits [B, S, num_labels], labels where `token_label_weights` is 1."""

    source = "sequence_output"
    reads = ("token_label_ids", "token_label_weights", "task_ids")
    positional = ("logits", "probabilities")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, S]."""
        weights = ops.cast(batch["token_label_weights"], "float32")
        return batch["token_label_ids"], weights * self.is_mine(batch)[:, None]


@register
class Capitalization(TokenTask):
    """Whether a word of a lower-cased text begins with a capital."""

    defaults = 2, 1


@register
class TokenDocument(TokenTask):
    """Whether a token recurs in the rest of its document."""

    defaults = 2, 2


@register
class SentenceReordering(SequenceTask):
    """The order of the parts of a paragraph: one of 1! + 2! + 3!."""

    defaults = 9, 3


@register
class SentenceDistance(SequenceTask):
    """Whether two segments are adjacent, in the same document, or in two."""

    defaults = 3, 4


@register
class DiscourseRelation(SequenceTask):
    """The relation of two sentences, such as the word that joins them; as many as a file has."""

    defaults = 2, 5


@register
class IrRelevance(SequenceTask):
    """How relevant a title is to a query: strong, weak or random."""

    defaults = 3, 6
