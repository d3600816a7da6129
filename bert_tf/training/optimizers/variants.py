"""Optimizers that single systems were trained with: Adafactor, Adagrad, Adadelta, Adamax, and
variants of Adam and of LAMB."""

import math
import re
from typing import Any

from keras import ops

from bert_tf.errors import InputError
from bert_tf.layers.base import register
from bert_tf.models.mobilebert.objective import phase
from bert_tf.training.optimizers.adam import AdamWeightDecay, LayerwiseAdaptiveMoments


@register
class AveragedAdam(AdamWeightDecay):
    """Adam that evaluates and saves averages of the weights (tensorflow/models
    research/adversarial_text, layers.py).

    At step s their decay is min(0.999, (1 + s) / (10 + s)). The averages take the weights before
    the update.
    """

    MOST = 0.999
    default_name = "averaged_adam"

    def _add_state(self, variables):
        super()._add_state(variables)
        self.averages = self.add_optimizer_variables(variables, "average")
        for average, variable in zip(self.averages, variables):
            average.assign(variable)

    def _update(self, index, gradient, variable, rate):
        step = ops.cast(self.iterations, variable.dtype)
        # Weights may have been loaded since the averages were made.
        share = ops.where(step > 0, ops.minimum(self.MOST, (1 + step) / (10 + step)), 0.0)
        average = self.averages[index]
        self.assign(average, average - (1 - share) * (average - variable))
        super()._update(index, gradient, variable, rate)


@register
class RectifiedAdam(AdamWeightDecay):
    """R-Adam (arXiv:1908.03265; LiyuanLucasLiu/RAdam, radam.py), whose steps are short while the
    second moment has averaged few gradients.

    As in its code, the first steps do nothing, not even decay, until that moment's length is 5:
    five steps for a `beta_2` of 0.999. In the paper these are steps of the first moment alone.
    """

    LEAST = 5.0
    default_name = "radam"

    def _delta(self, index: int, variable: Any, m: Any, v: Any, corrections: Any,
               rounded: Any) -> Any:
        step = ops.cast(self.iterations + 1, "float32")
        # The second moment's correction as a difference of 1 would have few digits, and so would
        # the length of early steps without its series.
        first, second = corrections[0], -ops.expm1(step * math.log(self.beta_2))
        longest, half = 2 / (1 - self.beta_2) - 1, -math.log(self.beta_2) / 2
        x = step * half
        early = step * (1 - x / 3 + x**3 / 45 - 2 * x**5 / 945) + (longest - 1 / half)
        length = ops.where(x < 0.3, early, longest - 2 * step / ops.expm1(2 * x))
        known = ops.maximum(length, self.LEAST)
        factor = ops.sqrt(second * (known - 4) * (known - 2) * longest
                          / ((longest - 4) * (longest - 2) * known)) / first
        delta = ops.cast(factor, variable.dtype) * m / (ops.sqrt(v) + self.epsilon)
        if self._is_decayed[index]:
            delta = delta + self.decay * variable
        return ops.where(length >= self.LEAST, delta, ops.zeros_like(delta))


_LEAST = 1e-6       # added to a norm, as by torch.nn.utils.clip_grad_norm_


@register
class BertAdam(AdamWeightDecay):
    """Adam without bias correction, which clips the gradient of each variable by itself
    (huggingface/pytorch-pretrained-bert, optimization.py).

    Args:
        clip_each: largest norm of a variable's gradient; 0 for no clipping.
    """

    default_name = "pytorch_bert_adam"
    config_keys = ("clip_each",)

    def __init__(self, *args: Any, clip_each: float = 1.0, **kwargs: Any):
        super().__init__(*args, **{"bias_correction": False, "clip_norm": 0.0, **kwargs})
        self.clip_each = clip_each

    def _update(self, index, gradient, variable, rate):
        if self.clip_each:
            norm = ops.sqrt(ops.sum(ops.square(ops.cast(gradient, "float32"))))
            # norm - norm is NaN where the norm is infinite.
            scale = ops.minimum(self.clip_each / (norm + _LEAST), 1.0) + (norm - norm)
            gradient = gradient * ops.cast(scale, gradient.dtype)
        super()._update(index, gradient, variable, rate)


@register
class CountedAdam(AdamWeightDecay):
    """Adam with decay (transformers 4, optimization.py, AdamW).

    Every variable counts its own steps for the correction of its moments, from its first gradient
    that is not zero; before that it neither moves nor decays. Epsilon is added before the
    correction, and the decay is applied after the step.
    """

    default_name = "counted_adam"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **{"epsilon": 1e-8, **kwargs})

    def _add_state(self, variables: list) -> None:
        super()._add_state(variables)
        self._counts = [self.add_variable(
            (), "zeros", "float32", name=f"{v.path.replace('/', '_')}_count") for v in variables]

    def _update(self, index, gradient, variable, rate):
        m, v, count = self._momentums[index], self._velocities[index], self._counts[index]
        has_begun = ops.logical_or(count > 0, ops.any(gradient != 0))
        new_m = self.beta_1 * m + (1 - self.beta_1) * gradient
        new_v = self._second_moment(v, gradient)
        moved = self._moved(index, variable, rate, new_m, new_v, count)
        self._assign([(old, ops.where(has_begun, new, old)) for old, new in (
            (m, new_m), (v, new_v), (variable, moved), (count, count + 1))])

    def _second_moment(self, v, gradient):
        return self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient)

    def _moved(self, index, variable, rate, m, v, count):
        first, second = (1 - ops.power(ops.cast(beta, variable.dtype), count + 1)
                         for beta in (self.beta_1, self.beta_2))
        moved = variable - rate * ops.sqrt(second) / first * m / (ops.sqrt(v) + self.epsilon)
        if self._is_decayed[index]:
            moved = moved * (1 - rate * self.decay)
        return moved


@register
class Adamax(CountedAdam):
    """Adamax (arXiv:1412.6980, section 7.1) with decay, as in namisan/mt-dnn v0.1, bert_optim.py.

    Every variable also has the rate of its own count: the head of a task that first comes at step
    10 begins its warm-up there. From then on it is moved and decayed in steps of other tasks too.
    No moment is corrected, and all variables are decayed unless `not_decayed` names them.
    """

    default_name = "adamax"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{"not_decayed": (), "epsilon": 1e-6, **kwargs})

    def _second_moment(self, v, gradient):
        return ops.maximum(self.beta_2 * v, ops.abs(gradient) + self.epsilon)

    def _moved(self, index, variable, rate, m, v, count):
        if callable(self._learning_rate):
            rate = ops.cast(self._learning_rate(count), variable.dtype) * self._rate_factors[index]
        delta = m / (v + self.epsilon)
        if self._is_decayed[index]:
            delta = delta + self.decay * variable
        return variable - rate * delta


@register
class AdamaxWeightDecay(CountedAdam):
    """Adamax of namisan/mt-dnn's later code, mt_dnn/optim.py AdamaxW: the first moment is
    corrected, the decay comes before the step, and the rate follows the run's step."""

    default_name = "adamaxw"
    _second_moment = Adamax._second_moment

    def _moved(self, index, variable, rate, m, v, count):
        moved = variable
        if self._is_decayed[index]:
            moved = moved * (1 - rate * self.decay)
        correction = 1 - ops.power(ops.cast(self.beta_1, variable.dtype), count + 1)
        return moved - rate / correction * m / v


@register
class StableAdamW(AdamWeightDecay):
    """StableAdamW (arXiv:2304.13013) as ModernBERT was trained with it (AnswerDotAI/ModernBERT,
    optimizer.py): a variable takes a shorter step where its gradient is larger than the root of its
    second moment. No gradient is clipped, and variables of one axis are not decayed.

    Args:
        max_lr: the learning rate at which a step takes the share `weight_decay` off the weights,
            less at lower rates; None: the peak of the rate. With 1.0 the decay is per unit of
            learning rate, as in the paper.

    Raises:
        InputError: the rate is a schedule whose peak is not known, and there is no `max_lr`.
    """

    default_name = "stable_adamw"
    config_keys = ("max_lr",)

    def __init__(self, learning_rate: Any = 1e-4, *args: Any, max_lr: float | None = None,
                 **kwargs: Any):
        super().__init__(learning_rate, *args, **{
            "weight_decay": 1e-5, "beta_2": 0.98, "clip_norm": 0.0, **kwargs})
        if max_lr is None:
            max_lr = getattr(learning_rate, "peak", learning_rate)
        if callable(max_lr):
            raise InputError("the peak of this schedule of the learning rate is not known; give "
                             "StableAdamW its max_lr.")
        self.max_lr = float(max_lr)

    def build(self, variables: list) -> None:
        if not self.built:
            super().build(variables)
            self._is_decayed = [decays and len(variable.shape) > 1
                                for decays, variable in zip(self._is_decayed, variables)]

    def _update(self, index, gradient, variable, rate):
        # The moments are kept corrected for starting at 0.
        m, v = self._momentums[index], self._velocities[index]
        first, second = (ops.cast(value, variable.dtype) for value in self._corrections)
        square = ops.square(gradient)
        new_m = m + (1 - self.beta_1) / first * (gradient - m)
        new_v = v + (1 - self.beta_2) / second * (square - v)
        surprise = ops.sqrt(ops.mean(square / ops.maximum(new_v, self.epsilon**2)))
        rate = rate / ops.maximum(surprise, 1.0)
        moved = variable
        if self._is_decayed[index] and self.max_lr:
            moved = moved * (1 - rate * (self.decay / self.max_lr))
        moved = moved - rate * new_m / (ops.sqrt(new_v) + self.epsilon)
        self._assign([(m, new_m), (v, new_v), (variable, moved)])


_LAYER = re.compile(r"encoder/layer_(\d+)/")
# The factors of the rate of all layers, and of those whose phase is over.
_BOOST, _AFTER = 3.0, 0.1


@register
class ProgressiveLamb(LayerwiseAdaptiveMoments):
    """LAMB of MobileBERT's first stage, which trains one layer after the other
    (google-research mobilebert/lamb_optimizer.py and distill_util.py).

    A layer's rate is 0 before its phase of `phase_steps` steps, three times the schedule's in it,
    and a tenth of that after it. In phases of several steps the rate also rises at the beginning of
    each phase and falls a little until its end. Everything outside the layers keeps its weights.
    """

    default_name = "progressive_lamb"
    config_keys = ("phase_steps",)

    def __init__(self, *args: Any, phase_steps: int = 1, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.phase_steps = phase_steps

    def build(self, variables: list) -> None:
        super().build(variables)
        self._layers = [_LAYER.search(variable.path) for variable in variables]

    def factor(self, layer: int) -> Any:
        """The factor of the rate of a layer at this step, float32."""
        step = ops.cast(self.iterations, "float32")
        part = ops.mod(step, float(self.phase_steps)) / self.phase_steps
        background = ops.minimum(0.9 + 0.1 * ops.sqrt(1.0 - part), 10.0 * part)
        if self.phase_steps == 1:
            background = 1.0
        where = phase(self.iterations, layer, self.phase_steps)
        gate = ops.where(where < 0, 0.0, ops.where(where > 0, _AFTER, 1.0))
        return _BOOST * background * gate

    def _update(self, index, gradient, variable, rate):
        layer = self._layers[index]
        if not layer:
            return
        factor = ops.cast(self.factor(int(layer[1])), variable.dtype)
        super()._update(index, gradient, variable, rate * factor)
        is_trained = ops.cast(factor > 0, variable.dtype)   # the moments are 0 while the rate is
        for moment in (self._momentums[index], self._velocities[index]):
            self.assign(moment, moment * is_trained)


@register
class Adadelta(AdamWeightDecay):
    """Adadelta (arXiv:1212.5701) as PyTorch has it: the length of a step follows the steps before
    it, times the learning rate. `beta_2` is its rho. It has no decay."""

    default_name = "adadelta"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **{"beta_2": 0.95, "epsilon": 1e-6, **kwargs})

    def _add_state(self, variables):
        self._squares, self._steps = self.add_optimizer_variables(variables, ["square", "step"])

    def _update(self, index, gradient, variable, rate):
        rho, squares, steps = self.beta_2, self._squares[index], self._steps[index]
        new_squares = rho * squares + (1 - rho) * ops.square(gradient)
        step = gradient * ops.sqrt((steps + self.epsilon) / (new_squares + self.epsilon))
        self._assign([
            (squares, new_squares), (steps, rho * steps + (1 - rho) * ops.square(step)),
            (variable, variable - rate * step)])


@register
class Adafactor(AdamWeightDecay):
    """Adafactor as T5 was trained with it (arXiv:1804.04235; tensorflow/mesh, optimize.py).

    Second moments of large matrices are kept as the means of their rows and columns, and a step's
    size is relative to the weights. It has neither weight decay nor clipping of the global norm.
    Keras's own Adafactor factors every matrix, over its last two axes.

    Args:
        decay_exponent: moments decay by 1 - step^-exponent.
        clipping_threshold: largest root mean square of a variable's update; 0 for no bound.
        min_dim_size_to_factor: smallest second largest axis of a variable whose moments are
            factored.
        multiply_by_parameter_scale: whether a step's size is relative to the weights.
    """

    default_name = "adafactor"
    config_keys = ("decay_exponent", "momentum", "clipping_threshold", "factored",
                   "min_dim_size_to_factor", "multiply_by_parameter_scale")
    _TINY, _LEAST_SCALE = 1e-30, 1e-3

    def __init__(self, *args: Any, decay_exponent: float = 0.8, momentum: float = 0.0,
                 clipping_threshold: float = 1.0, factored: bool = True,
                 min_dim_size_to_factor: int = 128, multiply_by_parameter_scale: bool = True,
                 **kwargs: Any):
        super().__init__(*args, **{"clip_norm": 0.0, **kwargs})
        self.decay_exponent, self.momentum = decay_exponent, momentum
        self.clipping_threshold, self.factored = clipping_threshold, factored
        self.min_dim_size_to_factor = min_dim_size_to_factor
        self.multiply_by_parameter_scale = multiply_by_parameter_scale

    def _axes(self, shape):
        """The largest axis and the second largest, if the moments of this shape are factored."""
        axes = sorted(range(len(shape)), key=lambda axis: -shape[axis])[:2]
        if self.factored and len(axes) == 2 and shape[axes[1]] >= self.min_dim_size_to_factor:
            return axes
        return None

    def _add_state(self, variables):
        self._slots = []
        for variable in variables:
            shape, slots = tuple(variable.shape), {}
            if axes := self._axes(shape):
                for name, axis in zip(("vr", "vc"), axes):
                    slots[name] = shape[:axis] + shape[axis + 1:]
            else:
                slots["v"] = shape
            if self.momentum:
                slots["m"] = shape
            path = variable.path.replace("/", "_")
            self._slots.append({name: self.add_variable(
                size, "zeros", "float32", name=f"{path}_slot_{name}")
                for name, size in slots.items()})

    def _update(self, index, gradient, variable, rate):
        slots, gradient, rate = self._slots[index], *(
            ops.cast(value, "float32") for value in (gradient, rate))
        decay = 1.0 - ops.power(ops.cast(self.iterations, "float32") + 1.0, -self.decay_exponent)
        square, updates = ops.square(gradient) + self._TINY, []

        def mix(name, mean):
            new = decay * slots[name] + (1.0 - decay) * mean
            updates.append((slots[name], new))
            return new

        if axes := self._axes(tuple(variable.shape)):
            row = ops.expand_dims(mix("vr", ops.mean(square, axis=axes[0])), axes[0])
            column = ops.expand_dims(mix("vc", ops.mean(square, axis=axes[1])), axes[1])
            step = gradient * ops.rsqrt(row / ops.mean(row, axis=axes[1], keepdims=True))
            step = step * ops.rsqrt(column)
        else:
            step = gradient * ops.rsqrt(mix("v", square))
        if self.clipping_threshold:
            step = step / ops.maximum(_rms(step) / self.clipping_threshold, 1.0)
        if self.multiply_by_parameter_scale:
            rate = rate * ops.maximum(_rms(variable), self._LEAST_SCALE)
        step = rate * step
        if self.momentum:
            step = self.momentum * slots["m"] + (1.0 - self.momentum) * step
            updates.append((slots["m"], step))
        self._assign([*updates, (variable, variable - ops.cast(step, variable.dtype))])


def _rms(x):
    return ops.sqrt(ops.mean(ops.square(ops.cast(x, "float32"))))


@register
class Adagrad(AdamWeightDecay):
    """Adagrad as TensorFlow 1 has it, without an epsilon: accumulators of squared gradients begin
    at 1 (allenai/bilm-tf). It has neither moments nor decay."""

    rows_apart = True
    default_name = "adagrad"

    def _add_state(self, variables):
        self._accumulators = [self.add_variable_from_reference(
            variable, "accumulator", initializer="ones") for variable in variables]

    def _update(self, index, gradient, variable, rate):
        accumulator = self._accumulators[index]
        total = accumulator + ops.square(gradient)
        self._assign([(accumulator, total),
                      (variable, variable - rate * gradient / ops.sqrt(total))])
