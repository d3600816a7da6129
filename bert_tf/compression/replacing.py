"""The probability that a successor's module replaces its predecessor's (arXiv:2002.02925, section
3.3; JetRunner/BERT-of-Theseus, bert_of_theseus/replacement_scheduler.py). Data alone: flags are
read before Keras is loaded."""

import dataclasses

SCHEDULES = ("linear", "constant", "none")


@dataclasses.dataclass(frozen=True)
class Replacing:
    """The probability of replacing at each step: on a "linear" line of the slope
    `scheduler_linear_k` from `replacing_rate` up to 1; or "constant", that rate until
    `steps_for_replacing`, then 1; or "none", that rate at all steps. The first step always has
    `replacing_rate`, as in the original, so that 0 `steps_for_replacing` mean from the second step
    on."""

    scheduler_type: str = "linear"
    replacing_rate: float = 0.3
    scheduler_linear_k: float = 0.0006
    steps_for_replacing: int = 0
