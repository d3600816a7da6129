"""A pass over a batch, and the plain gradient of its loss.

Shapes: B rows of a batch, S sequence.
"""

from typing import Any

import tensorflow as tf
from keras import ops

from bert_tf.layers.seeds import split_seed
from bert_tf.training.learners.learner import Learner, Measures

# Dropout and gates take the first seeds that are split off a step's seed.
_SEEDS_OF_LEARNERS = 2


def gradient(tape: tf.GradientTape, loss: Any, variables: list[Any]) -> list[Any]:
    return tape.gradient(loss, variables, unconnected_gradients="zero")


class Pass:
    """The function to differentiate for a batch: a Learner with the batch, the counts that losses
    are divided by, and the factor of the loss in float16."""

    def __init__(self, learner: Learner, batch: Any, counts: Any, loss_scale: Any):
        self.learner, self.batch, self.counts = learner, batch, counts
        self.loss_scale = loss_scale
        self.variables = [v.value for v in learner.trainable_variables]

    def logits(self, seed: Any, **noise: Any) -> dict[str, Any]:
        """The result of the Learner's `call`, with noise added to the embeddings."""
        return self.learner({**self.batch, **noise}, training=True, dropout_seed=seed)

    def loss(self, measures: Measures) -> Any:
        return self.learner.total_loss(measures, self.counts) * self.loss_scale

    def mask(self) -> Any:
        """float32 [B, S, 1], 1 for tokens and 0 for padding."""
        mask = self.batch["input_mask"]
        return tf.cast(tf.reshape(mask, [-1, ops.shape(mask)[-1], 1]), tf.float32)

    def seeds(self, seed: Any, count: int) -> list[Any]:
        """Seeds, integer [2], that differ from the seeds that the Learner makes of `seed`."""
        skipped = _SEEDS_OF_LEARNERS + len(self.learner.objectives)
        return split_seed(seed, skipped + count)[skipped:]


class Plain:
    """The gradient of the loss."""

    measure_names: tuple[tuple[str, str], ...] = ()

    def check(self, learner: Learner) -> None:
        """Raises InputError if a learner can't be trained in this way."""

    def gradients(self, of: Pass, seed: Any) -> tuple[Measures, list[Any], dict[str, Any]]:
        """Returns the measures of a batch, the gradient of its loss by the trainable variables, and
        its logits. `seed`, integer [2], determines all that is drawn."""
        with tf.GradientTape() as tape:
            logits = of.logits(seed)
            measures = of.learner.measure_logits(logits, of.batch)
            loss = of.loss(measures)
        return measures, gradient(tape, loss, of.variables), logits
