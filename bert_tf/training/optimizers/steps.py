"""What every optimizer here does with gradients before it updates a variable.

Keras's own optimizers clip each part of an accumulation and each replica's gradient by themselves,
and their schedules and averages count the parts. Here gradients are made dense, unscaled, averaged
over the parts of a step, added up over the replicas, and clipped by their global norm.
"""

import math
from collections.abc import Sequence

import keras
from keras import ops

from bert_tf.errors import InputError
from bert_tf.training import distribution


class ClippingOptimizer(keras.optimizers.Optimizer):
    """The base of all optimizers, in a `Trainer` and in Keras's `fit`.

    A step is an update: `iterations` and schedules do not count the parts of an accumulation.

    Attributes:
        rows_apart: see `reduce_gradients`.
        averages: of the variables, where the averages are evaluated and saved.
        clip_norm, skip_nonfinite: see `AdamWeightDecay`.
    """

    rows_apart = False
    averages: Sequence = ()
    clip_norm: float
    skip_nonfinite: bool
    _is_clipped: list[bool]
    _gradient_factors: list[float]

    def exclude_from_weight_decay(self, var_list: list | None = None,
                                  var_names: list[str] | None = None) -> None:
        """Leaves variables out of the decay, in addition to those of `not_decayed`.

        Args:
            var_list: the variables.
            var_names: regular expressions searched in the last names of variables.

        Raises:
            InputError: the optimizer is built.
        """
        if self.built:
            raise InputError("the optimizer has begun to train; call exclude_from_weight_decay "
                             "before.")
        super().exclude_from_weight_decay(var_list, var_names)

    def apply(self, grads: list, trainable_variables: list | None = None):
        """Unscales, reduces, clips and applies the gradients; returns their global norm before
        clipping, or with `gradient_accumulation_steps` None.

        Under a strategy, each replica gives its own addend of the gradient. The norm is NaN where
        no step is taken.
        """
        if not self.built:
            self.build(trainable_variables or [])
        parts = self.gradient_accumulation_steps
        if parts or self.loss_scale_factor is not None:
            grads = [g if g is None else distribution.dense(g) for g in grads]
        super().apply(grads, trainable_variables)
        return None if parts else self._norm

    def _backend_apply_gradients(self, grads, trainable_variables):
        if keras.config.backend() == "jax":     # where a condition can't change variables
            super()._backend_apply_gradients(grads, trainable_variables)
            return
        parts = self.gradient_accumulation_steps
        if not parts:
            self._take_step(grads, trainable_variables)
            return
        sums = [self._accumulated_gradients[self._get_variable_index(v)]
                for v in trainable_variables]

        def finish(grads):
            self._take_step([(gradient + total) / parts for gradient, total in zip(grads, sums)],
                            trainable_variables)
            self._backend_reset_gradient_accumulators()

        distribution.conditionally(
            ops.equal((self._iterations + 1) % parts, 0), finish,
            lambda grads: self._backend_increment_gradient_accumulators(grads, sums), list(grads))

    def _take_step(self, grads, trainable_variables):
        grads = self._clip_gradients(grads)     # with the bounds of Keras, if there are such
        self._backend_update_step(grads, trainable_variables, self.learning_rate)
        if not self.use_ema:
            return
        self._update_model_variables_moving_average(self._trainable_variables)
        if self.ema_overwrite_frequency:
            is_due = ops.equal((self.iterations + 1) % self.ema_overwrite_frequency, 0)
            for variable, average in zip(self._trainable_variables,
                                         self._model_variables_moving_average):
                variable.assign(ops.where(is_due, average, variable))

    def _get_current_learning_rate(self):
        if isinstance(self._learning_rate, keras.optimizers.schedules.LearningRateSchedule):
            return self._learning_rate(self.iterations)     # of updates
        return super()._get_current_learning_rate()

    def finalize_variable_values(self, var_list: list) -> None:
        """Gives variables the values of their averages, if there are such, at the end of `fit`."""
        if not ops.convert_to_numpy(self.iterations):       # averages of no step are 0
            return
        super().finalize_variable_values(var_list)
        for variable in var_list if self.averages else ():
            variable.assign(self.averages[self._get_variable_index(variable)])

    def _clipped(self, grads, variables):
        """The gradients of a step, added up over the replicas and clipped."""
        indices = [self._get_variable_index(v) for v in variables]
        is_clipped, factors = ([of_all[index] for index in indices]
                               for of_all in (self._is_clipped, self._gradient_factors))
        grads, self._norm = reduce_gradients(grads, is_clipped, self.rows_apart)
        self._clip_scale = clip_scale(self._norm, self.clip_norm)
        is_late = [self.clip_norm and clips and factor == 1 and self._clips_late(index)
                   for index, clips, factor in zip(indices, is_clipped, factors)]
        self._is_late = dict(zip(indices, is_late))
        grads = scale_gradients(grads, factors, self._clip_scale, [
            clips and not late for clips, late in zip(is_clipped, is_late)])
        if self.skip_nonfinite:
            self._is_finite = ops.all(ops.stack([ops.isfinite(self._norm), *(
                ops.all(ops.isfinite(g)) for g, clips in zip(grads, is_clipped) if not clips)]))
            self._norm = ops.where(self._is_finite, self._norm, float("nan"))
        return grads

    def _clips_late(self, index):
        """Whether the update of a variable clips its gradient itself, with `_clip_scale`."""
        return False

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return grads_and_vars       # `_clipped` has done it

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        grads = self._clipped(grads, trainable_variables)
        if distribution.is_strategy_in_use():
            super()._backend_update_step(grads, trainable_variables, learning_rate)
            return
        # Keras enters the default strategy for every variable: that takes time and changes nothing.
        done: list = []
        for gradient, variable in sorted(zip(grads, trainable_variables),
                                         key=lambda pair: math.prod(pair[1].shape)):
            is_large = distribution.is_large(variable)
            # Large ones in turn: else the new moments of all of them are in memory at once. The
            # largest last, when the other gradients are no longer in memory.
            with distribution.after(done if is_large else []):
                self.update_step(gradient, variable.value, learning_rate)
            done = [variable.value] if is_large else done


def reduce_gradients(grads: list, is_clipped: Sequence[bool], rows_apart: bool = False) -> tuple:
    """Sums gradients over the replicas. Returns them, dense, and their global norm.

    Args:
        is_clipped: whether each makes part of the norm.
        rows_apart: whether, in the norm, the gradients of a row that was looked up repeatedly count
            one by one, as in `tf.clip_by_global_norm`. A `Trainer` has added them up before.
    """
    own, grads = grads, distribution.all_reduce_sum([distribution.dense(g) for g in grads])
    parts = [getattr(g, "values", total) for g, total in zip(own, grads)] if rows_apart else grads
    # A stack, not a chain of additions: TensorFlow would add a chain up in any order.
    norm = ops.sqrt(ops.sum(ops.stack([ops.sum(ops.square(ops.cast(g, "float32")))
                                       for g, clips in zip(parts, is_clipped) if clips])))
    return grads, norm


def clip_scale(norm, clip_norm: float):
    """Returns the factor that gives gradients of a global norm a norm of at most `clip_norm`; NaN
    if the norm is not finite. None if `clip_norm` is 0, for no clipping."""
    # norm - norm is NaN where the norm is infinite.
    return clip_norm / ops.maximum(norm, clip_norm) + (norm - norm) if clip_norm else None


def scale_gradients(grads: list, factors: Sequence[float], scale, is_scaled: Sequence[bool]
                    ) -> list:
    """Multiplies the gradients that `is_scaled` marks with the scale, None for no clipping, and all
    with their own factors."""
    scaled = []
    for gradient, factor, scales in zip(grads, factors, is_scaled):
        if scales and scale is not None:
            gradient = gradient * ops.cast(scale, gradient.dtype)
        scaled.append(gradient * ops.cast(factor, gradient.dtype) if factor != 1 else gradient)
    return scaled
