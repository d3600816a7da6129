"""AdamW and LAMB as BERT and its relatives need them, and the base of all optimizers.

Keras's own are not used. They clip each part of an accumulation and each replica's gradient by
themselves, and their schedules and averages count the parts. On TensorFlow they take the squares of
a repeated embedding row's gradients one by one, and can leave variables out of weight decay only by
their last name. Here gradients are made dense, unscaled, averaged over the parts of a step, added
up over the replicas, and clipped by their global norm.
"""

import functools
import importlib
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import keras
import lazy_loader
from keras import ops

from bert_tf.errors import InputError
from bert_tf.layers.base import register, settings_of
from bert_tf.training import distribution
from bert_tf.training.optimizers.schedules import WarmupLinearDecay
from bert_tf.training.optimizers.table import NOT_DECAYED, OPTIMIZERS

# Only when it is used: optimizers also run on JAX, without TensorFlow.
tf = lazy_loader.load("tensorflow")


class ClippingOptimizer(keras.optimizers.Optimizer):
    """The base of all optimizers, in a `Trainer` and in Keras's `fit`.

    A step is an update: `iterations` and schedules do not count the parts of an accumulation.

    Attributes:
        rows_apart: whether, in the norm, the gradients of a row that was looked up repeatedly count
            one by one, as in `tf.clip_by_global_norm`. A `Trainer` has added them up before.
        averages: of the variables, where the averages are evaluated and saved.
        clip_norm, skip_nonfinite: see `AdamWeightDecay`.
    """

    rows_apart = False
    _is_finite: Any = True
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
        for variable in var_list if self.averages or self.use_ema else ():
            variable.assign(ops.copy(variable))     # on JAX it has the array of its average so far

    def _clipped(self, grads, variables):
        """The gradients of a step, added up over the replicas and clipped."""
        own, grads = grads, distribution.all_reduce_sum([distribution.dense(g) for g in grads])
        indices = [self._get_variable_index(v) for v in variables]
        is_clipped = [self._is_clipped[index] for index in indices]
        parts = grads
        if self.rows_apart:
            parts = [getattr(g, "values", total) for g, total in zip(own, grads)]
        # A stack, not a chain of additions: TensorFlow would add a chain up in any order.
        norm = ops.sqrt(ops.sum(ops.stack([ops.sum(ops.square(ops.cast(g, "float32")))
                                           for g, clips in zip(parts, is_clipped) if clips])))
        if self.clip_norm:      # norm - norm is NaN where the norm is infinite.
            self._clip_scale = self.clip_norm / ops.maximum(norm, self.clip_norm) + (norm - norm)
        self._is_late, scaled = {}, []
        for index, gradient, clips in zip(indices, grads, is_clipped):
            factor, clips = self._gradient_factors[index], clips and self.clip_norm
            self._is_late[index] = clips and factor == 1 and self._clips_late(index)
            if clips and not self._is_late[index]:
                gradient = gradient * ops.cast(self._clip_scale, gradient.dtype)
            scaled.append(gradient * ops.cast(factor, gradient.dtype) if factor != 1 else gradient)
        if self.skip_nonfinite:
            self._is_finite = ops.all(ops.stack([ops.isfinite(norm), *(
                ops.all(ops.isfinite(g)) for g, clips in zip(scaled, is_clipped) if not clips)]))
            norm = ops.where(self._is_finite, norm, float("nan"))
        self._norm = norm
        return scaled

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
            # Large ones in turn: else the new moments of all of them are in memory at once. The
            # largest last, when the other gradients are no longer in memory.
            with distribution.after(done):
                self.update_step(gradient, variable.value, learning_rate)
            if distribution.is_large(variable):
                done = [variable.value]


def one_pass(function: Callable, shapes: Sequence[Any], types: str) -> Callable:
    """Compiles an elementwise function with XLA into one loop a result, which reads each number
    once, with the bits of its operations one by one.

    Processors multiply and add in one instruction, which rounds once instead of twice. XLA divides
    once by a product instead of twice. So the function must give these to `rounded`: products that
    it adds, and products and quotients that it divides.

    Args:
        function: of tensors of these `shapes` and `types`, "bool float32 ...", and `rounded`, which
            returns its float32 array.

    Returns:
        A function (never, *tensors). `never` is a bool tensor that is False, which the compiler
        cannot know.
    """
    def flat(never, *tensors):
        change = tf.cast(never, tf.int32)

        def rounded(product):
            bits = tf.bitwise.bitwise_xor(tf.bitcast(product, tf.int32), change)
            return tf.bitcast(bits, tf.float32)

        return function(*tensors, rounded=rounded)

    @functools.cache        # made when it is first called: optimizers also run without TensorFlow
    def compiled():
        distribution.silence_compiler()
        return tf.function(flat, jit_compile=True, autograph=False, input_signature=[
            tf.TensorSpec([], tf.bool), *map(tf.TensorSpec, shapes, types.split())])

    return lambda *tensors: compiled()(*tensors)


@register
class AdamWeightDecay(ClippingOptimizer):
    """Adam with decoupled weight decay (arXiv:1711.05101) and clipping by the global norm.

    Args:
        weight_decay: decay per unit of learning rate.
        beta_1, beta_2, epsilon: Adam's; epsilon is added to the root.
        bias_correction: whether the moments are corrected for starting at 0; False is the update of
            google-research/bert.
        epsilon_hat: whether epsilon is added before the second moment is corrected (the form at the
            end of section 2 in arXiv:1412.6980), as in fairseq.
        clip_norm: largest global norm of the gradient; 0 for no clipping.
        skip_nonfinite: whether to take no step where a variable's gradient is not finite (needed
            with a loss scale).
        not_decayed: regular expressions searched in the paths of variables without decay.
        not_clipped: such expressions for variables that are not clipped, and whose gradients are no
            part of the norm.
        corrects_decay: whether the decay, too, is multiplied by the corrections of both moments.
        per_prediction: whether gradients of mean losses are divided by the number of predictions
            once more, before they are clipped; see `bert_tf.training.trainer`.
        rate_factors: pairs of such an expression and a factor of the learning rate; the first that
            is found counts. A variable that none matches learns at the full rate.
        gradient_factors: such pairs for factors of the clipped gradients.
        average: the kind of `averages` of the weights after each step: "ema", moving averages;
            "swa", means of all; None for none.
        average_decay: the share of a moving average that a step keeps; (1 + n) / (10 + n) at its
            step n while that is less.
        average_start: steps before the averages begin.
        kwargs: arguments of Keras's optimizers. With `gradient_accumulation_steps` a step is an
            update, not a part of it, for schedules and averages too. At the end of `fit` the
            weights become their averages, those of `use_ema` or of `average`.
    """

    compiles = True         # whether XLA may compile updates; see `one_pass`
    default_name = "adamw"
    # Arguments of a class, and attributes, that `get_config` holds.
    config_keys: tuple[str, ...] = (
        "beta_1", "beta_2", "epsilon", "bias_correction", "epsilon_hat", "corrects_decay",
        "clip_norm", "per_prediction", "skip_nonfinite", "average", "average_decay",
        "average_start", "not_clipped", "not_decayed", "rate_factors", "gradient_factors")

    def __init__(
            self, learning_rate: float | WarmupLinearDecay = 1e-4, weight_decay: float = 0.01,
            beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-6,
            bias_correction: bool = True, clip_norm: float = 1.0, skip_nonfinite: bool = False,
            not_decayed: Sequence[str] = NOT_DECAYED,
            rate_factors: Sequence[tuple[str, float]] = (), epsilon_hat: bool = False,
            per_prediction: bool = False, corrects_decay: bool = False,
            not_clipped: Sequence[str] = (),
            gradient_factors: Sequence[tuple[str, float]] = (), average: str | None = None,
            average_decay: float = 0.999, average_start: int = 0, name: str | None = None,
            **kwargs) -> None:
        super().__init__(learning_rate=learning_rate, name=name or self.default_name, **kwargs)
        self.decay = weight_decay       # `weight_decay` would make the base class decay too
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.bias_correction, self.epsilon_hat = bias_correction, epsilon_hat
        self.corrects_decay, self.clip_norm = corrects_decay, clip_norm
        self.per_prediction, self.skip_nonfinite = per_prediction, skip_nonfinite
        self.not_decayed, self.not_clipped = tuple(not_decayed), tuple(not_clipped)
        self.rate_factors, self.gradient_factors = (
            tuple((pattern, float(factor)) for pattern, factor in factors)
            for factors in (rate_factors, gradient_factors))
        self.average = average
        self.average_decay, self.average_start = average_decay, average_start

    def build(self, variables: list) -> None:
        if self.built:
            return
        super().build(variables)
        self._add_state(variables)
        if self.average:
            self.averages = self.add_optimizer_variables(variables, "average")
        self._is_decayed, self._is_clipped = (
            [not any(re.search(pattern, v.path) for pattern in patterns) for v in variables]
            for patterns in (self.not_decayed, self.not_clipped))
        self._is_decayed = [decays and self._use_weight_decay(v)
                            for decays, v in zip(self._is_decayed, variables)]
        self._rate_factors, self._gradient_factors = (
            [next((factor for pattern, factor in factors if re.search(pattern, v.path)), 1.0)
             for v in variables] for factors in (self.rate_factors, self.gradient_factors))
        # Variables share functions, which XLA compiles for each shape. That of the moments writes
        # the new ones over the old ones. The loop that divides must not write over what it reads:
        # LLVM would take one number at a time.
        self._move_in_one_pass = one_pass(
            self._move, [[], None, [], [], []], "bool float32 float32 resource resource")
        self._change_in_one_pass = {
            is_decayed: one_pass(functools.partial(self._change, index), [*[None] * 3, *[[]] * 4],
                                 " ".join(["float32"] * 7))
            for index, is_decayed in enumerate(self._is_decayed)}

    def _add_state(self, variables):
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"])

    def _clipped(self, grads, variables):
        # The corrections of both moments, once for all variables.
        step = ops.cast(self.iterations + 1, "float32")
        self._corrections = [1 - ops.power(ops.cast(beta, "float32"), step)
                             for beta in (self.beta_1, self.beta_2)]
        return super()._clipped(grads, variables)

    def _clips_late(self, index):
        return (type(self)._update is AdamWeightDecay._update
                and self._is_compiled(self._trainable_variables[index]))

    def update_step(self, gradient, variable, learning_rate) -> None:
        index = self._get_variable_index(variable)
        rate = ops.cast(learning_rate, variable.dtype)
        if self._rate_factors[index] != 1:
            rate = rate * self._rate_factors[index]
        self._update(index, ops.cast(gradient, variable.dtype), variable, rate)

    def _update(self, index, gradient, variable, rate):
        """Updates a variable, the one with this index, and its state, at its own rate."""
        m, v = self._momentums[index], self._velocities[index]
        first, second = (ops.cast(value, variable.dtype) for value in self._corrections)
        epsilon = ops.cast(self.epsilon, variable.dtype)
        if self.bias_correction and self.epsilon_hat:
            epsilon = epsilon / ops.sqrt(second)
        scalars = [rate, first, second, epsilon]
        if not self._is_compiled(variable):
            new_m, new_v = self._moments(gradient, m.value, v.value)
            change = self._change(index, variable, new_m, new_v, *scalars)
            self._assign([(variable, variable - change), (m, new_m), (v, new_v)])
            return
        never, scale = self.iterations < 0, self._clip_scale if self._is_late[index] else 1.0
        self._move_in_one_pass(never, self._is_finite, gradient, scale, m.value.handle,
                               v.value.handle)
        change = self._change_in_one_pass[self._is_decayed[index]](
            never, variable, m.value, v.value, *scalars)
        if self.skip_nonfinite:
            change = ops.where(self._is_finite, change, 0.0)
        variable.assign_sub(change)
        for average, new in self._averaged([(variable, variable)]):
            self.assign(average, new)

    def _is_compiled(self, variable):
        """Whether XLA compiles the update of a variable: a large one, if it is elementwise."""
        return (self.compiles and distribution.is_large(variable) and variable.dtype == "float32"
                and type(self)._delta is AdamWeightDecay._delta
                and not distribution.is_strategy_in_use())

    def _moments(self, gradient, m, v, rounded=lambda product: product):
        return (rounded(self.beta_1 * m) + rounded((1 - self.beta_1) * gradient),
                rounded(self.beta_2 * v) + rounded((1 - self.beta_2) * ops.square(gradient)))

    def _move(self, takes_step, gradient, scale, *handles, rounded):
        """Assigns the moments, at these handles, new values after the gradient times `scale`."""
        old = [tf.raw_ops.ReadVariableOp(resource=one, dtype=tf.float32) for one in handles]
        new = self._moments(rounded(gradient * scale), *old, rounded)
        for handle, *values in zip(handles, new, old):
            tf.raw_ops.AssignVariableOp(resource=handle, value=tf.where(takes_step, *values))

    def _change(self, index, variable, m, v, rate, *corrections, rounded=lambda product: product):
        """What a step takes off a variable; see `_delta`."""
        return rounded(rate * self._delta(index, variable, m, v, corrections, rounded))

    def _assign(self, updates):
        """Assigns new values, pairs of a variable and its value, and updates the averages."""
        if self.skip_nonfinite:
            updates = [(old, ops.where(self._is_finite, new, old)) for old, new in updates]
        # A step that is not taken counts with the weights that it leaves.
        for old, new in [*updates, *self._averaged(updates)]:
            self.assign(old, new)

    def _averaged(self, updates):
        """The averages of the weights among `updates`, if it keeps such, and their new values."""
        if not self.average:
            return
        step = ops.cast(self.iterations - self.average_start, "float32")
        if self.average == "swa":
            share = step / (step + 1)
        else:
            share = ops.minimum(self.average_decay, (1 + step) / (10 + step))
        share = ops.where(step > 0, share, 0.0)
        for old, new in updates:
            index = self._trainable_variables_indices.get(self._var_key(old))
            if index is not None:
                average = self.averages[index]
                yield average, new + ops.cast(share, new.dtype) * (average - new)

    def _delta(self, index, variable, m, v, corrections, rounded):
        """The direction of the step: Adam's, plus the decay."""
        first, second, epsilon = corrections
        if self.bias_correction:
            m, v = rounded(m / first), v / second
        delta = m / (ops.sqrt(v) + epsilon)
        if not self._is_decayed[index]:
            return delta
        decay = self.decay * variable
        if self.corrects_decay:
            decay = rounded(decay * ops.sqrt(second)) / first
        return delta + rounded(decay)

    def get_config(self):
        return {**super().get_config(), "weight_decay": self.decay, **settings_of(self)}


@register
class LayerwiseAdaptiveMoments(AdamWeightDecay):
    """LAMB: AdamW whose steps are as long as the variables themselves (arXiv:1904.00962)."""

    default_name = "lamb"

    def _delta(self, index, variable, *others):
        delta = super()._delta(index, variable, *others)
        if not self._is_decayed[index]:
            return delta
        # Flat: the norm of Keras takes no tensor with other axes than one or two.
        length, step = (ops.norm(ops.reshape(x, [-1])) for x in (variable, delta))
        known = ops.logical_and(length > 0, step > 0)
        return delta * ops.where(known, length / ops.where(step > 0, step, 1.0), 1.0)


def make_optimizer(name: str, learning_rate: float | WarmupLinearDecay,
                   **options) -> AdamWeightDecay:
    """Makes the optimizer `name` of the table; `options` come before the row's."""
    row = OPTIMIZERS[name]
    module, kind = row.kind.split(".")
    variant = getattr(importlib.import_module(f"bert_tf.training.optimizers.{module}"), kind)
    return variant(learning_rate, **{**row.options, **options})
