"""Rounding for networks that run on integers alone, as in google-research's mobilebert/
(`use_quantized_training`): every tensor has a range from low to high and a zero point, as in
tf.quantization.fake_quant_with_min_max_vars.

A kernel's range is symmetric and its own; other ranges are moving averages over training. Numbers
beyond their range are clipped, and get no gradient.
"""

from typing import Any

from keras import ops

from bert_tf.config.quantisation import Quantisation
from bert_tf.layers import quantisation
from bert_tf.layers.base import Tensor

# The range of tensors before training.
_FIRST = {"low": -6.0, "high": 6.0}


def affine(x: Tensor, low: Tensor, high: Tensor, bits: int, is_narrow: bool = False
           ) -> tuple[Tensor, Tensor, Tensor]:
    """The whole numbers that represent x, float32 of any shape: the numbers, float32, in the shape
    of x; the scale that multiplies them, a scalar; and x clipped to the range. `low` and `high`,
    float32 scalars, are the range, which includes 0. A number has `bits`; `is_narrow`: the least of
    the 2^bits whole numbers is unused."""
    first, last = float(is_narrow), 2.0**bits - 1
    scale = ops.where(high > low, high - low, 1.0) / (last - first)
    # The range moves a little, so that 0 is a whole number.
    zero = ops.clip(ops.floor(first - low / scale + 0.5), first, last)
    low, high = (first - zero) * scale, (last - zero) * scale
    # JAX gives `clip` half the gradient at the ends, where each kernel's greatest number is.
    inside = ops.where(x < low, low, ops.where(x > high, high, x))
    return ops.floor((inside - low) * (1 / scale) + 0.5) + (first - zero), scale, inside


def fake_affine(x: Tensor, low: Tensor, high: Tensor, bits: int, is_narrow: bool = False) -> Tensor:
    """x rounded by `affine`. Without a range all numbers are 0."""
    numbers, scale, inside = affine(x, low, high, bits, is_narrow)
    return quantisation.straight_through(inside, ops.where(high > low, numbers * scale, 0.0))


class MovingRanges(quantisation.KeepsRanges):
    """The ranges of a layer's named tensors: moving averages of their least and greatest numbers,
    which begin with the first batch's. `how` gives the decay and the bits."""

    def __init__(self, tensors: tuple[str, ...], how: Quantisation, **kwargs: Any):
        super().__init__(name="ranges", **kwargs)
        self._tensors, self._how = tensors, how

    def build(self, input_shape: Any = None) -> None:
        for name in self._tensors:
            # A sum over steps, which `_average` divides by the sum of its weights.
            for end in ("steps", "low", "high"):    # in the order of `names.MOVING_PARTS`
                setattr(self, f"{name}_{end}", self.add_range(f"{name}_{end}"))

    def _average(self, name, end):
        steps = ops.convert_to_tensor(getattr(self, f"{name}_steps"))
        share = 1 - ops.power(ops.cast(self._how.ema_decay, "float32"), ops.maximum(steps, 1.0))
        average = getattr(self, f"{name}_{end}") / share
        return ops.where(steps > 0, average, _FIRST[end])

    def round(self, name: str, x: Tensor, training: bool) -> Tensor:
        """A tensor rounded; a training step moves its range first."""
        x = ops.cast(x, "float32")
        if training:
            seen = ops.stop_gradient(x)
            ends = {"low": -self.over_replicas(ops.maximum(ops.max(-seen), 0.0)),
                    "high": self.over_replicas(ops.maximum(ops.max(seen), 0.0))}
            for end, value in ends.items():
                variable = getattr(self, f"{name}_{end}")
                variable.assign(variable - (variable - value) * (1 - self._how.ema_decay))
            steps = getattr(self, f"{name}_steps")
            steps.assign(steps + 1)
        return fake_affine(x, self._average(name, "low"), self._average(name, "high"),
                           self._how.activation_bits)


class AffineDense(quantisation.QuantisedDense):
    """A dense layer that rounds its input and kernel so."""

    def make_ranges(self) -> MovingRanges:
        return MovingRanges(("input",), self.how)

    def multiply(self, x: Tensor, training: bool) -> Tensor:
        kernel = ops.convert_to_tensor(self.kernel)
        greatest = quantisation.greatest_magnitude(kernel)
        rounded = fake_affine(kernel, -greatest, greatest, self.bits, is_narrow=True)
        return self._with_bias(self._product(self.ranges.round("input", x, training), rounded))
