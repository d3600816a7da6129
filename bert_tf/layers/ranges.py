"""What layers that round their numbers find in training and keep: ranges of tensors."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from bert_tf.layers.from_keras import Tensor


class KeepsRanges(keras.layers.Layer):
    """What a quantised layer carries from step to step.

    Attributes:
        over_replicas: function of a scalar that returns the greatest over all replicas; a training
            loop of several replicas sets it.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.over_replicas: Callable[[Tensor], Tensor] = lambda greatest: greatest

    def add_range(self, name: str) -> keras.Variable:
        """A number that training finds."""
        # All replicas write the same.
        return self.add_weight((), "zeros", "float32", trainable=False, name=name, autocast=False,
                               aggregation="only_first_replica")


class Ranges(KeepsRanges):
    """The steps of training of a layer, and the greatest magnitudes of its input and, if that is
    rounded too, of its output; 0 where unused."""

    def __init__(self, start_step: int, ema_decay: float, **kwargs: Any):
        super().__init__(name="ranges", **kwargs)
        self._start_step, self._decay = start_step, ema_decay

    def build(self, input_shape: Any = None) -> None:
        self.steps, self.input_threshold, self.output_threshold = map(
            self.add_range, ("steps", "input_threshold", "output_threshold"))

    @property
    def is_active(self) -> Tensor:
        """Whether training has reached the step in which rounding begins (scalar)."""
        return self.steps >= self._start_step

    def end_step(self) -> None:
        """Counts a forward pass in training."""
        self.steps.assign(self.steps + 1)

    def greatest(self, x: Tensor) -> Tensor:
        """The greatest magnitude of a step's `x`, in all replicas."""
        return self.over_replicas(greatest_magnitude(x))

    def update(self, threshold: keras.Variable, x: Tensor) -> Tensor:
        """Moves `input_threshold` or `output_threshold` towards the greatest magnitude in `x`;
        returns it as it is after that."""
        greatest = self.greatest(x)
        moved = threshold - (1 - self._decay) * (threshold - greatest)
        moved = ops.where(self.steps > self._start_step, moved, greatest)
        threshold.assign(ops.where(self.is_active, moved, 0.0))
        return moved


def greatest_magnitude(x: Tensor) -> Tensor:
    """A scalar without a gradient."""
    return ops.max(ops.abs(ops.stop_gradient(x)))
