"""Dense layers whose numbers are rounded to a few bits in training: Q8BERT
(IntelLabs/nlp-architect, nn/torch/quantization.py; arXiv:1910.06188), and Q-BERT (arXiv:1909.05840)
with the quantiser of its authors' ZeroQ (utils/quantization_utils).

Integers are simulated in float32. Rounding passes gradients unchanged, also for clipped numbers.
Shapes: I inputs and O outputs of a layer, G groups.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from bert_tf.config.quantisation import FLOAT_BITS, Quantisation
from bert_tf.layers.base import Dense, Tensor, variant
from bert_tf.layers.functions import custom_gradient


class KeepsRanges(keras.layers.Layer):
    """The state of a quantised layer from step to step.

    `over_replicas` returns the greatest value of a scalar over all replicas; a training loop of
    several replicas sets it.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.over_replicas: Callable[[Tensor], Tensor] = lambda greatest: greatest

    def add_range(self, name: str) -> keras.Variable:
        # All replicas write the same.
        return self.add_weight((), "zeros", "float32", trainable=False, name=name, autocast=False,
                               aggregation="only_first_replica")


class Ranges(KeepsRanges):
    """A layer's training steps, and the greatest magnitudes of its input and, if that is rounded
    too, of its output; 0 where unused. `is_fixed` is whether they stay as they are in training."""

    is_fixed = False

    def __init__(self, start_step: int, ema_decay: float, **kwargs: Any):
        super().__init__(name="ranges", **kwargs)
        self._start_step, self._decay = start_step, ema_decay

    def build(self, input_shape: Any = None) -> None:
        self.steps, self.input_threshold, self.output_threshold = map(
            self.add_range, ("steps", "input_threshold", "output_threshold"))

    @property
    def is_active(self) -> Tensor:
        """Whether training has reached the first step with rounding (scalar)."""
        return self.steps >= self._start_step

    def end_step(self) -> None:
        if not self.is_fixed:
            self.steps.assign(self.steps + 1)

    def greatest(self, x: Tensor) -> Tensor:
        """Returns the greatest magnitude of a step's `x` over all replicas."""
        return self.over_replicas(greatest_magnitude(x))

    def update(self, threshold: keras.Variable, x: Tensor) -> Tensor:
        """Moves `threshold` towards the greatest magnitude in `x`, and returns it."""
        greatest = self.greatest(x)
        if self.is_fixed:
            return ops.where(threshold > 0, ops.convert_to_tensor(threshold), greatest)
        moved = threshold - (1 - self._decay) * (threshold - greatest)
        moved = ops.where(self.steps > self._start_step, moved, greatest)
        threshold.assign(ops.where(self.is_active, moved, 0.0))
        return moved


def greatest_magnitude(x: Tensor) -> Tensor:
    """Returns a scalar without a gradient."""
    return ops.max(ops.abs(ops.stop_gradient(x)))


@custom_gradient
def straight_through(x, value):
    """Returns `value` with the gradient of `x`; both have one shape."""
    return value, lambda upstream: (upstream, ops.zeros_like(upstream))


def symmetric(x: Tensor, threshold: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Returns the integers that represent `x`, and their scale.

    Args:
        x: float32, any shape.
        threshold: float32 scalar, the largest representable magnitude; 0 makes all numbers 0.
        bits: of an integer.

    Returns:
        float32: whole numbers within +-(2^(bits - 1) - 1), rounded half to even, in the shape of
            `x`; and the scalar that divides them.
    """
    largest = 2.0 ** (bits - 1) - 1
    # The reciprocal comes first, as in PyTorch: one bit of the scale decides exact halves.
    scale = (1 / ops.where(threshold > 0, threshold, 1.0)) * largest
    return ops.clip(ops.round(x * scale), -largest, largest), scale


def _fake_symmetric(x, threshold, bits):
    integers, scale = symmetric(x, threshold, bits)
    return straight_through(x, integers / scale)


def ranges_of_groups(matrix: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """The least and the greatest number, float32 [G], of runs of columns of a matrix [I, O]."""
    parts = ops.reshape(matrix, (matrix.shape[0], groups, -1))
    return ops.min(parts, axis=(0, 2)), ops.max(parts, axis=(0, 2))


def asymmetric(matrix: Tensor, low: Tensor, high: Tensor, bits: int
               ) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the integers that represent a matrix, with a scale and a zero point for each group.

    The zero point is a whole number too, so that 0 is kept exactly.

    Args:
        matrix: float32 [..., O].
        low, high: float32 [G], the ranges of G runs of columns.
        bits: of an integer.

    Returns:
        float32: whole numbers from -2^(bits - 1) to 2^(bits - 1) - 1, [..., O]; scales [O]; and
            zero points [O]. The matrix is (integers + zero points) / scales.
    """
    half, steps = 2.0 ** (bits - 1), 2.0**bits - 1
    scale = steps / ops.maximum(high - low, 1e-8)                       # [G]
    zero = ops.round(scale * low) + half
    columns = matrix.shape[-1] // low.shape[0]
    scale, zero = ops.repeat(scale, columns), ops.repeat(zero, columns)     # [O]
    return ops.clip(ops.round(scale * matrix - zero), -half, half - 1), scale, zero


def fake_weights(rows: Tensor, matrix: Tensor, bits: int, how: Quantisation) -> Tensor:
    """Returns rows of a matrix, or all of it, rounded: float32 [..., O].

    Args:
        rows: float32 [..., O].
        matrix: float32 [I, O], which gives the range.
        bits: of each weight.
        how: the scheme, and its groups.
    """
    if bits == FLOAT_BITS:
        return rows
    matrix = ops.stop_gradient(matrix)
    if how.scheme == "symmetric":
        return _fake_symmetric(rows, ops.max(ops.abs(matrix)), bits)
    integers, scale, zero = asymmetric(rows, *ranges_of_groups(matrix, how.groups), bits)
    return straight_through(rows, (integers + zero) / scale)


class RoundsTables:
    """Mixin for embeddings whose tables of words and positions are rounded if the configuration
    says so. Only the steps of `ranges` are used; it may be None."""

    config: Any
    word_embeddings: keras.Variable
    position_embeddings: keras.Variable | None

    def make_ranges(self) -> None:
        how = self.config.quantisation
        self.ranges: Any = None
        if how and how.keeps_ranges and how.scheme != "affine":
            self.ranges = Ranges(how.start_step, how.ema_decay)

    def round_rows(self, words: Tensor, positions: Tensor | None, training: bool
                   ) -> tuple[Tensor, Tensor | None]:
        """Rounds the looked-up rows of words, float [B, S, width], and of positions, float
        [S, width] or None. `training` is whether this is a training step."""
        how = self.config.quantisation
        if not how:
            return words, positions
        rounded: list[Tensor | None] = []
        for rows, table, bits in ((words, self.word_embeddings, how.embedding_bits),
                                  (positions, self.position_embeddings, how.position_bits)):
            if rows is None:
                rounded.append(None)
                continue
            value = fake_weights(ops.cast(rows, "float32"), ops.convert_to_tensor(table), bits, how)
            if training and how.start_step:
                value = ops.where(self.ranges.is_active, value, rows)
            rounded.append(ops.cast(value, rows.dtype))
        if training and self.ranges:
            self.ranges.end_step()
        return rounded[0], rounded[1]


class QuantisedDense(keras.layers.Dense):
    """A dense layer that rounds its kernel, its input, and on request its output.

    In training the bias is a float. Otherwise it is rounded to 32 bits where kernel and input are
    both symmetric, and the product is one of integers.

    Attributes:
        bits: of the kernel.
        requantises: whether the output is rounded too, before the activation.
    """

    def __init__(self, units: int, activation: Any = None, use_bias: bool = True, *,
                 how: Quantisation, bits: int, start_step: int = 0, requantises: bool = False,
                 **kwargs: Any):
        super().__init__(units, activation, use_bias, autocast=False, **kwargs)
        self.how, self.bits, self.start_step = how, bits, start_step
        self.requantises = requantises
        self.ranges: Any = self.make_ranges()

    def make_ranges(self) -> KeepsRanges | None:
        return Ranges(self.start_step, self.how.ema_decay) if self.how.keeps_ranges else None

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        self.how.check_groups(self.units, f"the columns of {self.path}")
        if self.ranges:
            self.ranges.build()

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """float [..., I] -> [..., O] in the compute dtype."""
        x = ops.cast(inputs, "float32")
        y = self.multiply(x, training)
        if self.activation is not None:
            y = self.activation(ops.cast(y, self.compute_dtype))
        return ops.cast(y, self.compute_dtype)

    def multiply(self, x: Tensor, training: bool) -> Tensor:
        """The rounded input times the rounded kernel, with the bias; float32."""
        if not training:
            return self._infer(x)
        kernel = ops.convert_to_tensor(self.kernel)
        y = self._product(self._fake(x, "input_threshold", True),
                          self._once_active(kernel, fake_weights(kernel, kernel, self.bits,
                                                                 self.how)))
        y = self._with_bias(y)
        if self.requantises:
            y = self._fake(y, "output_threshold", True)
        if self.ranges:
            self.ranges.end_step()
        return y

    def _infer(self, x):
        kernel, bits = ops.convert_to_tensor(self.kernel), self.how.activation_bits
        threshold = self._threshold(x, "input_threshold", False)
        if threshold is None or FLOAT_BITS in (bits, self.bits) or self.how.scheme != "symmetric":
            y = self._with_bias(self._product(
                self._fake(x, "input_threshold", False),
                fake_weights(kernel, kernel, self.bits, self.how)))
        else:
            x, of_x = symmetric(x, threshold, bits)
            kernel, of_kernel = symmetric(kernel, greatest_magnitude(kernel), self.bits)
            scale = of_kernel * of_x
            y = self._product(x, kernel)
            if self.use_bias:
                largest = 2.0**31 - 1
                y = y + ops.clip(ops.round(self.bias * scale), -largest, largest)
            y = y / scale
        return self._fake(y, "output_threshold", False) if self.requantises else y

    def _product(self, x, kernel):
        """float32; operands are in the compute dtype."""
        return ops.cast(ops.matmul(ops.cast(x, self.compute_dtype),
                                   ops.cast(kernel, self.compute_dtype)), "float32")

    def _with_bias(self, y):
        return y + self.bias if self.use_bias else y

    def _threshold(self, x, name, training):
        """Returns the greatest kept magnitude of `x`, whose variable is `name`; None if it is not
        rounded."""
        if self.how.activations == "none":
            return None
        if self.how.activations == "dynamic":
            return self.ranges.greatest(x) if training else greatest_magnitude(x)
        variable = getattr(self.ranges, name)
        if training:
            return self.ranges.update(variable, x)
        # A layer that was never trained has no range yet.
        return ops.where(variable > 0, ops.convert_to_tensor(variable), greatest_magnitude(x))

    def _fake(self, x, name, training):
        threshold, bits = self._threshold(x, name, training), self.how.activation_bits
        if threshold is None or bits == FLOAT_BITS:
            return x
        rounded = _fake_symmetric(x, threshold, bits)
        return self._once_active(x, rounded) if training else rounded

    def _once_active(self, x, rounded):
        """Returns `x` before the first step with rounding, then `rounded`."""
        if not self.start_step:
            return rounded
        return ops.where(self.ranges.is_active, rounded, x)


def set_weight_bits(layer: keras.layers.Layer, bits: int) -> None:
    for part in layer._flatten_layers():
        if isinstance(part, QuantisedDense):
            part.bits = bits


def make_dense(config: Any, part: str | None, units: int, activation: Any, use_bias: bool,
               **options: Any) -> keras.layers.Dense:
    """Makes a dense layer that is rounded as a configuration says for this `FromConfig.part`."""
    how: Quantisation = config.quantisation
    # `set_weight_bits` gives the bits of each layer of the encoder.
    bits = {None: FLOAT_BITS, "layer": how.bits_of_layer(0), "pooler": how.pooler_bits,
            "head": how.head_bits}[part]
    is_affine = how.scheme == "affine"
    if part is None or bits == FLOAT_BITS and (part == "head" or is_affine):
        return Dense(units, activation, use_bias, **options)
    kind = variant("rounded_dense", config) or QuantisedDense
    # Queries and keys are rounded, since they are multiplied.
    return kind(units, activation, use_bias, how=how, bits=bits,
                start_step=how.head_start_step if part == "head" else how.start_step,
                requantises=part == "layer" and options["name"] in ("query", "key"), **options)
