"""The probability with which a successor's module replaces its predecessor's (arXiv:2002.02925,
section 3.3; JetRunner/BERT-of-Theseus, bert_of_theseus/replacement_scheduler.py).

Data alone: flags are read before Keras is loaded.
"""

import dataclasses

from bert_tf.errors import InputError

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

    def __post_init__(self):
        if self.scheduler_type not in SCHEDULES:
            raise InputError(f"--scheduler_type must be one of {', '.join(SCHEDULES)}, not "
                             f"{self.scheduler_type!r}.")
        if not 0 < self.replacing_rate <= 1:
            raise InputError(f"--replacing_rate is {self.replacing_rate}; it must be above 0 and "
                             "at most 1.")
        if not 0 <= self.scheduler_linear_k < float("inf"):
            raise InputError(f"--scheduler_linear_k is {self.scheduler_linear_k}; it must be at "
                             "least 0.")
        if self.steps_for_replacing < 0:
            raise InputError(f"--steps_for_replacing is {self.steps_for_replacing}; it must be at "
                             "least 0.")
        if self.steps_for_replacing and self.scheduler_type != "constant":
            raise InputError("--steps_for_replacing is for --scheduler_type=constant; leave it "
                             "out.")
