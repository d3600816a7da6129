"""MobileBERT's learner: progressive knowledge transfer, then pre-training with soft labels
(arXiv:2004.02984, section 3.4; google-research mobilebert/run_pretraining.py)."""

from typing import Any

import keras
from keras import ops

from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch
from bert_tf.objectives.taught import of_teacher
from bert_tf.training.distiller import Distiller
from bert_tf.training.learner import Learner


@register
class KnowledgeTransfer(Distiller):
    """A Distiller whose network has no dropout, as in the original.

    Args:
        encoder, objectives, teacher: see `Distiller`.
        temperature: factor of the vectors from which the teacher predicts masked tokens.
        phase_steps: how many steps each layer is trained; 0 for pre-training.
    """

    def __init__(self, *args: Any, temperature: float = 1.0, phase_steps: int = 0, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.temperature, self.phase_steps = temperature, phase_steps
        # Of masked tokens there may be none; positions there always are.
        self.epsilon = 0.0 if phase_steps else Learner.epsilon

    def run_network(self, batch: Batch, training: bool = False, dropout_seed: Tensor | None = None,
                    options: Any = None) -> dict[str, Any]:
        return super().run_network(batch, options=options)

    def see_teacher(self, outputs: dict[str, Any]) -> dict[str, Any]:
        return {**outputs, "sequence_output": outputs["sequence_output"] * self.temperature}
