"""The learning rate's warm-up, and how it falls after it."""

import math

import keras
from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizers.table import SCHEDULES


def _bert_decay(step, warmup_steps, total_steps):
    """google-research/bert optimization.py: a line from step 0, below the peak after a warm-up."""
    return 1.0 - ops.minimum(step / total_steps, 1.0)


def _roberta_decay(step, warmup_steps, total_steps):
    """fairseq polynomial_decay_schedule.py: a line from the peak, at the end of the warm-up."""
    falling = max(total_steps - warmup_steps, 1)
    return 1.0 - ops.minimum((step - warmup_steps) / falling, 1.0)


def _cosine_decay(step, warmup_steps, total_steps):
    """openai/finetune-transformer-lm opt.py, warmup_cosine: half a wave from step 0 on."""
    return 0.5 * (1.0 + ops.cos(math.pi * ops.minimum(step / total_steps, 1.0)))


def _xlnet_cosine_decay(step, warmup_steps, total_steps):
    """zihangdai/xlnet model_utils.py: half a wave from the end of the warm-up on."""
    return _cosine_decay(step - warmup_steps, 0, max(total_steps - warmup_steps, 1))


def _rsqrt_decay(step, warmup_steps, total_steps):
    """tensorflow/mesh learning_rate_schedules.py, `truncated_rsqrt`: the peak until the end of the
    warm-up, then it falls with the root of the step."""
    return ops.rsqrt(ops.maximum(step, max(warmup_steps, 1.0)) / max(warmup_steps, 1.0))


def _noam_decay(step, warmup_steps, total_steps):
    """`learning_rate_schedule_noam` as in its class: the same, and a line down to 0 in the last
    tenth of the steps. The original's rates after the last step are below 0."""
    falling = ops.clip((total_steps - step) / (0.1 * total_steps), 0.0, 1.0)
    return _rsqrt_decay(step, warmup_steps, total_steps) * falling


def _slanted_decay(step, warmup_steps, total_steps):
    """`slanted_triangular` (arXiv:1801.06146, section 3.2): from 1/32 of the peak up to it, and
    down again to the end of the run, after which the rate stays. The original falls in 9 times a
    warm-up of a tenth, rounded down, and then below 0: the same where 10 divides the steps."""
    step = ops.minimum(step, total_steps)
    rising, falling = max(warmup_steps, 1.0), max(total_steps - warmup_steps, 1.0)
    part = ops.where(step < warmup_steps, step / rising, 1.0 - (step - warmup_steps) / falling)
    return (1.0 + 31.0 * part) / 32.0


def _exponential_decay(step, warmup_steps, total_steps):
    """tensorflow/models research/adversarial_text: 0.9999 a step; its fine-tuning has 0.9998, the
    power 2."""
    return ops.exp(math.log(0.9999) * step)


def _constant(step, warmup_steps, total_steps):
    """The peak at every step."""
    return ops.ones_like(step)


# The factor of the peak after the warm-up, by the names in the table.
DECAYS = {"line": _bert_decay, "line_from_peak": _roberta_decay, "cosine": _cosine_decay,
          "cosine_from_peak": _xlnet_cosine_decay, "rsqrt": _rsqrt_decay, "noam": _noam_decay,
          "slanted": _slanted_decay, "constant": _constant, "exponential": _exponential_decay}


@register
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises from `start` to the peak, and falls to `end`; both are 0 but in stages of a run.

    At step t the rate is peak * t / warmup_steps while t < warmup_steps. After that it falls as the
    row of `SCHEDULES` has it: "bert" falls as peak * (1 - t / total_steps), "roberta" as peak * (1
    - (t - warmup_steps) / (total_steps - warmup_steps)).

    "electra": the rate is bert's line times min(1, t / warmup_steps) (google-research/electra
    model/optimization.py). "gpt" is one step later: its code counts a step before it takes it.
    "spanbert" is "bert" except in two steps at the peak: the first, before which SpanBERT's code
    sets no rate, and the last of the warm-up. "model_garden": the warm-up ends at bert's line
    (tensorflow/models official/modeling/optimization/lr_schedule.py).

    With a start and an end the warm-up is start + (peak - start) * t / warmup_steps, and a factor f
    of the peak becomes end + (peak - end) * f.

    google-research/albert optimization.py adds two numbers: the power of the factor that falls, and
    the step at which the warm-up begins, for a warm-up in the middle of a run. Rates before that
    step are below 0.
    """

    def __init__(self, peak: float, total_steps: int, warmup_steps: float = 0, form: str = "bert",
                 power: float = 1.0, warmup_start: int = 0, start: float = 0.0,
                 end: float = 0.0) -> None:
        self.peak, self.total_steps, self.warmup_steps = peak, total_steps, warmup_steps
        self.form, self.power, self.warmup_start = form, power, warmup_start
        self.start, self.end = start, end

    def _falling(self, step):
        """The rate at a step, float32, after the warm-up."""
        factor = DECAYS[SCHEDULES[self.form].decay](step, self.warmup_steps, self.total_steps)
        rate = (self.peak - self.end) * (factor if self.power == 1 else factor**self.power)
        return rate + self.end if self.end else rate

    def __call__(self, step):
        step = ops.cast(step, "float32") + (self.form == "gpt")
        rate = self._falling(step)
        leads_to = SCHEDULES[self.form].warmup
        if self.warmup_steps and leads_to != "own":
            if leads_to == "product":
                rising = rate
            elif leads_to == "peak":
                rising = self.peak
            else:
                rising = self._falling(ops.cast(self.warmup_steps, "float32"))
            if self.warmup_start:
                step = step - self.warmup_start
            warmup = (rising - self.start) * step / self.warmup_steps
            if self.start:
                warmup = warmup + self.start
            rate = ops.where(step < self.warmup_steps, warmup, rate)
        if self.form == "spanbert":
            is_peak = ops.logical_or(ops.equal(step, 0), ops.equal(step, self.warmup_steps))
            rate = ops.where(is_peak, self.peak, rate)
        return rate

    def get_config(self):
        return {"peak": self.peak, "total_steps": self.total_steps,
                "warmup_steps": self.warmup_steps, "form": self.form, "power": self.power,
                "warmup_start": self.warmup_start, "start": self.start, "end": self.end}
