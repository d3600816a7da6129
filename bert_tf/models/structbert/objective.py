"""StructBERT's masked LM, which also puts shuffled words in order (arXiv:1908.04577)."""

from keras import ops

from bert_tf.bert.objective import MaskedLM, used
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch


@register
class WordOrderLM(MaskedLM):
    """Predicts masked tokens, and shuffled ones, which have 1 in the feature `word_order_weights`.
    Both are measured apart too. The loss is the mean over all predictions."""

    likelihood = "masked_loss"
    measures = (*MaskedLM.measures, "masked_loss", "masked_accuracy", "word_order_loss",
                "word_order_accuracy")

    def targets(self, batch: Batch) -> tuple[Tensor, ...]:
        """Labels and weights of the logits, and the weights of shuffled tokens alone."""
        labels, weights = super().targets(batch)
        shuffled = batch.get("word_order_weights", ops.zeros_like(batch["masked_lm_weights"]))
        return labels, weights, used(ops.cast(shuffled, "float32"), batch)

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor,      # type: ignore[override]
                shuffled: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        measures = super().measure(logits, labels, weights)
        for name, part in (("masked", weights - shuffled), ("word_order", shuffled)):
            measures[f"{name}_loss"] = self.loss(logits, labels, part)
            measures[f"{name}_accuracy"] = self.accuracy(logits, labels, part)
        return measures
