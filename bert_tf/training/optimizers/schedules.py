"""The learning rate's warm-up, and how it falls after it."""

import math

import keras
from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizers.table import SCHEDULES

# Functions of the step, float32, and of the `WarmupLinearDecay` that asks.


def _line(step, its):
    """A line from step 0, below the peak after a warm-up (google-research/bert optimization.py)."""
    return 1.0 - ops.minimum(step / its.total_steps, 1.0)


def _line_from_peak(step, its):
    """A line from the peak, at the end of the warm-up (fairseq polynomial_decay_schedule.py)."""
    falling = max(its.total_steps - its.warmup_steps, 1)
    return 1.0 - ops.minimum((step - its.warmup_steps) / falling, 1.0)


def _half_wave(step, steps):
    return 0.5 * (1.0 + ops.cos(math.pi * ops.minimum(step / steps, 1.0)))


def _cosine(step, its):
    """Half a wave from step 0 on, and the peak where the warm-up ends
    (openai/finetune-transformer-lm opt.py, warmup_cosine)."""
    return ops.where(step <= its.warmup_steps, 1.0, _half_wave(step, its.total_steps))


def _cosine_from_peak(step, its):
    """Half a wave from the end of the warm-up on."""
    return _half_wave(step - its.warmup_steps, max(its.total_steps - its.warmup_steps, 1))


def _rsqrt(step, its):
    """tensorflow/mesh learning_rate_schedules.py, `truncated_rsqrt`: the peak until the end of the
    warm-up, then it falls with the root of the step."""
    return ops.rsqrt(ops.maximum(step, max(its.warmup_steps, 1.0)) / max(its.warmup_steps, 1.0))


def _noam(step, its):
    """`learning_rate_schedule_noam` as in its class: the same, and a line down to 0 in the last
    tenth of the steps. The original's rates after the last step are below 0."""
    falling = ops.clip((its.total_steps - step) / (0.1 * its.total_steps), 0.0, 1.0)
    return _rsqrt(step, its) * falling


def _slanted(step, its):
    """`slanted_triangular` (arXiv:1801.06146, section 3.2): from 1/32 of the peak up to it, and
    down again to the end of the run, after which the rate stays. The original falls in 9 times a
    warm-up of a tenth, rounded down, and then below 0: the same where 10 divides the steps."""
    step = ops.minimum(step, its.total_steps)
    warmup_steps, falling = its.warmup_steps, max(its.total_steps - its.warmup_steps, 1.0)
    part = ops.where(step < warmup_steps, step / max(warmup_steps, 1.0),
                     1.0 - (step - warmup_steps) / falling)
    return (1.0 + 31.0 * part) / 32.0


def _exponential(step, its):
    """tensorflow/models research/adversarial_text: 0.9999 a step; its fine-tuning: power 2."""
    return ops.exp(math.log(0.9999) * step)


def _cosine_rsqrt(step, its):
    """AnswerDotAI/ModernBERT scheduler.py, CosineInverseSqrtScheduler (arXiv:2402.17834): in a
    quarter of the run a quarter of a cosine wave, and then an inverse square root that continues it
    with the same slope."""
    quarter, floor = max(its.total_steps // 4, 1), its.end and its.end / its.peak
    fall = max(1.0 - floor, 1e-6)
    step, reach = step - its.warmup_steps, quarter * (1.0 + floor) / (math.pi * fall)
    root = ops.sqrt(reach / (ops.maximum(step - quarter, 0.0) + reach))
    return ops.where(step <= quarter, _half_wave(step, 2 * quarter),
                     (0.5 * (1.0 + floor) * root - floor) / fall)


def _constant(step, its):
    return ops.ones_like(step)


# The factor of the peak after the warm-up, by the names in the table.
DECAYS = {decay.__name__[1:]: decay for decay in (
    _line, _line_from_peak, _cosine, _cosine_from_peak, _rsqrt, _noam, _slanted, _exponential,
    _cosine_rsqrt, _constant)}


@register
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises from `start` to the peak, and falls to `end`; both are 0 but in stages of a run.

    At step t the rate is peak * t / warmup_steps while t < warmup_steps. After that it falls as the
    row `form` of `SCHEDULES` has it: "bert" falls as peak * (1 - t / total_steps). A row with a
    `tail` falls to `end` in the last `decay_steps` of `total_steps`; 0: in a tenth of them
    (AnswerDotAI/ModernBERT scheduler.py, whose warm-up has 1e-10 of the peak as its start).

    With a start and an end the warm-up is start + (peak - start) * t / warmup_steps, and a factor f
    of the peak becomes end + (peak - end) * f. `power` is that of the factor that falls, and
    `warmup_start` the step at which a warm-up in the middle of a run begins; rates before it are
    below 0.
    """

    def __init__(self, peak: float, total_steps: int, warmup_steps: float = 0, form: str = "bert",
                 power: float = 1.0, warmup_start: int = 0, start: float = 0.0,
                 end: float = 0.0, decay_steps: int = 0) -> None:
        self.peak, self.total_steps, self.warmup_steps = peak, total_steps, warmup_steps
        self.form, self.power, self.warmup_start = form, power, warmup_start
        self.start, self.end, self.decay_steps = start, end, decay_steps

    def _falling(self, step):
        """The rate at a step, float32, after the warm-up."""
        row = SCHEDULES[self.form]
        if row.tail:
            steps = self.decay_steps or self.total_steps // 10
            before = self.total_steps - steps
            part = ops.clip((step - before) / max(steps, 1), 0.0, 1.0)
            if row.tail == "root":
                part = ops.sqrt(part)
            factor = DECAYS[row.decay](ops.minimum(step, before), self) * (1.0 - part)
        else:
            factor = DECAYS[row.decay](step, self)
        if self.power != 1:
            factor = factor**self.power
        rate = (self.peak - self.end) * factor
        return rate + self.end if self.end else rate

    def __call__(self, step):
        row = SCHEDULES[self.form]
        step = ops.cast(step, "float32") + row.ahead
        rate, leads_to = self._falling(step), row.warmup
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
        if row.peaks:
            is_peak = ops.logical_or(ops.equal(step, 0), ops.equal(step, self.warmup_steps))
            rate = ops.where(is_peak, self.peak, rate)
        return rate

    def get_config(self):
        return dict(vars(self))
