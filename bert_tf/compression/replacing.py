"""The probability that a successor's module replaces its predecessor's (arXiv:2002.02925,
section 3.3; JetRunner/BERT-of-Theseus, bert_of_theseus/replacement_scheduler.py).

Data alone: flags are read before Keras is loaded.
"""

import dataclasses

SCHEDULES = ("linear", "constant", "none")


@dataclasses.dataclass(frozen=True)
class Replacing:
    """The probability of replacing at each step.

    Attributes:
        scheduler_type: "linear", a line from `replacing_rate` up to 1; "constant", that rate until
            `steps_for_replacing`, then 1; "none", that rate at all steps.
        replacing_rate: above 0, at most 1.
        scheduler_linear_k: the slope of the line, a step.
        steps_for_replacing: the first step always has `replacing_rate`, as in the original, so that
            0 means from the second step on.
    """

    scheduler_type: str = "linear"
    replacing_rate: float = 0.3
    scheduler_linear_k: float = 0.0006
    steps_for_replacing: int = 0
