"""Settings of DistilBERT's pre-training, under the flag names of transformers'
examples/research_projects/distillation."""

import dataclasses

from bert_tf.flags import option
from bert_tf.training.learners.teacher_settings import DistillerSettings


@dataclasses.dataclass(frozen=True)
class DistilBertSettings(DistillerSettings):
    """What is compared with the teacher (DistilBERT)."""

    restrict_ce_to_mask: bool = option(
        False, "Compare logits at the predicted tokens alone, not at all tokens.")
    alpha_ce: float | None = option(
        None, "Weight of the divergence from the teacher's logits (default: 5).", least=0)
    alpha_mse: float = option(
        0.0, "Weight of the squared difference of the logits from the teacher's.", least=0)
    alpha_mlm: float | None = option(
        None, "Weight of the masked LM loss (default: 2).", least=0)
    alpha_cos: float | None = option(
        None, "Weight of the cosine loss between hidden vectors (default: 1).", least=0)
    distill_temperature: float = option(
        1.0, "Temperature by which logits are divided (default of the recipe: 2).", above=0,
        most=10**6)
