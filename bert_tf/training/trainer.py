"""The training step on any number of replicas.

Keras `fit` is not used: on several replicas it fails or divides by the wrong counts. A step here
takes one global batch; each replica computes sums over its part, everything is divided by the
global counts, and the optimizer adds the gradients up, clips and applies them.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator

import keras
import numpy as np
import tensorflow as tf

from bert_tf.errors import DivergedError, InputError
from bert_tf.layers.functions import PARTS_OF_A_STEP, training_forms
from bert_tf.metrics import perplexity
from bert_tf.networks import Bert
from bert_tf.training import distribution, memory
from bert_tf.training.distribution import compiled
from bert_tf.training.learners.learner import Learner, Pass, Plain
from bert_tf.training.optimizers import PROGRESSIVE, WarmupLinearDecay, make_optimizer
from bert_tf.training.settings import POLICIES, RobustnessSettings, SharedSettings

_LOSS_SCALE = 2.0**15           # where float16 training begins
_GROWTH_STEPS = 2000            # finite steps after which the loss scale doubles


class _Replica:
    """One replica's computation on its part of a batch. Shapes: M measures."""

    def __init__(self, learner, optimizer, seed, jit_compile, accumulation, sums_losses, state,
                 way):
        self._learner, self._optimizer, self._state = learner, optimizer, state
        self._way = way
        self._seed = PARTS_OF_A_STEP * int.from_bytes(
            hashlib.sha256(str(seed).encode()).digest()[:3], "big")
        self.accumulation, self._sums_losses = accumulation, sums_losses
        self.uses_loss_scale = learner.encoder.compute_dtype == "float16"
        prefixes = {objective.name: objective.metrics_name for objective in learner.objectives}
        # The measures of training alone are the last.
        self._measure_names = [*learner.measure_names, *way.measure_names]
        self.names = [f"{prefixes.get(name, name)}/{kind}" for name, kind in self._measure_names]
        self.likelihoods = {prefixes[o.name]: f"{prefixes[o.name]}/{o.likelihood}"
                            for o in learner.objectives if o.likelihood}
        self.gradients, self.measure, self.answer = (
            compiled(function, jit_compile=jit_compile)
            for function in (self._compute_gradients, self._measure, self._answer))

    def share_ranges(self, replicas):
        """Makes layers that round their numbers see all replicas' parts of a batch. The parts of an
        accumulation come one after the other, and each moves the ranges."""
        layers = [layer for layer in self._learner._flatten_layers()
                  if hasattr(layer, "over_replicas")]
        if replicas > 1:
            for layer in layers:
                layer.over_replicas = distribution.all_reduce_max
        # Replicas can't meet inside a function of their own, and TensorFlow can't sort the graph of
        # a step that twice calls one which writes ranges.
        if layers and (replicas > 1 or self.accumulation > 1):
            self.gradients = self._compute_gradients

    def _compute_gradients(self, batch, number, seed, counts, loss_scale):
        """Returns the measures of a part of a batch, its addend of the gradient, and its carried
        state. The learner finds the number of the step among the features, as `step`."""
        batch = {**batch, "step": number}
        with training_forms():
            measures, grads, logits = self._way.gradients(
                Pass(self._learner, batch, counts, loss_scale), seed)
        return (self._pack(measures), [distribution.dense(g) for g in grads],
                logits.get("carried", {}))

    def _measure(self, batch):
        """The measures and the tallies of a batch, and its carried state."""
        logits = self._learner(batch)
        measures = self._learner.measure_logits(logits, batch)
        tallies = {one.name: {kind: measures[one.name][kind] for kind in one.tallies}
                   for one in self._learner.objectives if one.tallies}
        return self._pack(measures), tallies, logits.get("carried", {})

    def _answer(self, batch, measures):
        """The measures of a batch (zeros if they are not wanted), and each objective's answers."""
        logits = self._learner(batch)
        if measures:
            sums = self._pack(self._learner.measure_logits(logits, batch))
        else:
            sums = tf.zeros([len(self._learner.measure_names), 2])
        return sums, {objective.name: objective.answers(logits[objective.name])
                      for objective in self._learner.objectives}

    def _pack(self, measures):
        """float32 [M, 2] of (sum, count)."""
        return tf.stack([tf.stack(measures[name][kind])
                         for name, kind in self._measure_names if name in measures])

    def carry(self, batch, state):
        """Returns a batch with the state that is carried into it."""
        return {**batch, "carried": state} if self._learner.carries else batch

    def step(self, batch, number, loss_scale):
        """Updates the weights; returns the packed measures, the gradient's norm, and the number of
        tokens."""
        names = [objective.name for objective in self._learner.objectives]
        counts = self._learner.counts(batch)
        counts = dict(zip(names, distribution.all_reduce_sum([counts[n] for n in names])))
        if self._sums_losses:
            counts = dict.fromkeys(names, 1.0)
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        parts = self.accumulation
        if self._state:
            batch = self.carry(batch, self._state.read())
        pieces = zip(*(tf.split(value, parts) for value in tf.nest.flatten(batch)))
        states = []
        for part, piece in enumerate(pieces):
            seed = tf.stack([tf.cast(self._seed + part, tf.int32)
                             + tf.cast(replica, tf.int32) * parts, tf.cast(number, tf.int32)])
            measures, gradient, state = self.gradients(
                tf.nest.pack_sequence_as(batch, piece), number, seed, counts, loss_scale)
            states.append(state)
            if part == 0:
                sums, grads = measures, gradient
            else:
                sums, grads = sums + measures, [a + b for a, b in zip(grads, gradient)]
        if self._state:
            self._state.write({name: tf.concat([state[name] for state in states], 0)
                               for name in self._learner.carries})
        if self.uses_loss_scale:
            grads = [g / loss_scale for g in grads]
        if self._optimizer.per_prediction:
            count = tf.maximum(counts[names[0]], 1.0)
            grads = [g / count for g in grads]
        norm = self._optimizer.apply(grads, self._learner.trainable_variables)
        return sums, norm, tf.reduce_sum(tf.cast(batch.get("input_mask", 0), tf.int32))


@contextlib.contextmanager
def _with_values(pairs):
    """Gives the first variable of each pair the second's value in the block."""
    before = [(variable, variable.numpy()) for variable, _ in pairs]
    for variable, other in pairs:
        variable.assign(other.numpy())
    try:
        yield
    finally:
        for variable, value in before:
            variable.assign(value)


class _LossScaling:
    """The factor that keeps gradients of losses in the range of float16: halved after a step whose
    gradient was not finite, doubled after many finite ones.

    Args:
        is_used: whether computation is in float16; if not, the scale stays 1.
    """

    def __init__(self, is_used):
        self._is_used, self._first = is_used, _LOSS_SCALE if is_used else 1.0
        self.scale = tf.Variable(self._first, trainable=False, name="loss_scale")
        self.finite_steps = tf.Variable(0, trainable=False, dtype=tf.int64, name="finite_steps")

    def reset_if_changed(self):
        """Starts with a new scale if the state comes from a computation in another type."""
        # A computation that scales nothing leaves 1.0 without a finite step.
        was_used = self.scale.numpy() != 1.0 or self.finite_steps.numpy() > 0
        if was_used != self._is_used:
            self.scale.assign(self._first)
            self.finite_steps.assign(0)

    def end_step(self, scale, norm):
        """Adapts the scale to the gradient's norm in a step that was taken with `scale`.

        Returns whether training can continue, and the norm, 0 if the gradient was not applied.
        """
        is_finite = tf.math.is_finite(norm)
        if not self._is_used:
            return is_finite, norm
        finite_steps = tf.where(is_finite, self.finite_steps + 1, 0)
        grow = finite_steps >= _GROWTH_STEPS
        smaller = tf.where(is_finite, self.scale, self.scale / 2)
        self.scale.assign(tf.where(grow, smaller * 2, smaller))
        self.finite_steps.assign(tf.where(grow, tf.zeros_like(finite_steps), finite_steps))
        return scale >= 1.0, tf.where(is_finite, norm, 0.0)


class Trainer:
    """Trains a Learner with an optimizer under a strategy.

    Both must have been made in the strategy's scope. They and `step`, `tokens` and `loss_scale` are
    the state of training; dropout masks are a function of (seed, step, replica, part of the batch).
    `tokens` counts those of all steps, without padding, where batches have an `input_mask`.

    Args:
        optimizer: of training/optimizers; it is built here, if the trainer trains.
        jit_compile: whether XLA compiles the forward and backward pass.
        accumulation: parts in which a replica takes its batch, one after the other.
        sums_losses: whether gradients belong to the sum of a batch's losses, not to their mean.
        batch_size: rows of a global batch; not needed where the learner carries nothing from step
            to step.
        trains: whether it will take steps; a trainer that only evaluates and predicts needs no
            moments.
        way: how the gradient is taken; None: `Plain`.
    """

    def __init__(self, learner: Learner, optimizer: keras.optimizers.Optimizer,
                 strategy: tf.distribute.Strategy, seed: int = 0, jit_compile: bool = False,
                 accumulation: int = 1, sums_losses: bool = False, batch_size: int | None = None,
                 trains: bool = True, way: Plain | None = None) -> None:
        way = way or Plain()
        way.check(learner)
        self.learner, self.optimizer, self.strategy = learner, optimizer, strategy
        # Under TPUStrategy `strategy.run` compiles the whole step by itself. Elsewhere XLA compiles
        # some operations in any case, such as those of a language model's gradient.
        if isinstance(strategy, tf.distribute.TPUStrategy):
            jit_compile = False
        else:
            distribution.silence_compiler()
        self.state = None
        if learner.carries:
            self.state = memory.CarriedState(learner.carries, batch_size, strategy)
        self.replica = _Replica(learner, optimizer, seed, jit_compile, accumulation, sums_losses,
                                self.state, way)
        self.replica.share_ranges(strategy.num_replicas_in_sync)
        with strategy.scope():
            if trains:
                optimizer.build(learner.trainable_variables)
            self.step, self.tokens = (tf.Variable(0, trainable=False, dtype=tf.int64, name=name)
                                      for name in ("step", "tokens"))
            self.scaling = _LossScaling(self.replica.uses_loss_scale)
        self.loss_scale, self.finite_steps = self.scaling.scale, self.scaling.finite_steps
        with tf.device("CPU:0"):
            self._is_stopping = tf.Variable(False, trainable=False, name="is_stopping")

    def _total(self, sums):
        return self.learner.total_loss({
            name: {"loss": (sums[index, 0], sums[index, 1])}
            for index, (name, kind) in enumerate(self.learner.measure_names) if kind == "loss"})

    # Without AutoGraph, which would take longer than tracing.
    @tf.function(autograph=False)
    def _train(self, iterator, count):
        def take(number, sums, norms, bad_step, _):
            loss_scale = tf.identity(self.loss_scale)
            per_replica = self.strategy.run(
                self.replica.step, args=(next(iterator), tf.identity(self.step), loss_scale))
            step_sums = self.strategy.reduce("SUM", per_replica[0], axis=None)
            norm = self.strategy.reduce("MEAN", per_replica[1], axis=None)
            healthy, norm = self.scaling.end_step(loss_scale, norm)
            healthy &= tf.math.is_finite(self._total(step_sums))
            bad_step = tf.where((bad_step < 0) & ~healthy, self.step, bad_step)
            self.step.assign_add(1)
            self.tokens.assign_add(tf.cast(
                self.strategy.reduce("SUM", per_replica[2], axis=None), tf.int64))
            return number + 1, sums + step_sums, norms + norm, bad_step, self._any_stopping()

        number, sums, norms, bad_step, _ = tf.while_loop(
            lambda number, _sums, _norms, _bad, is_stopping: (number < count) & ~is_stopping, take,
            (tf.constant(0, tf.int64), tf.zeros([len(self.replica.names), 2]), tf.constant(0.0),
             tf.constant(-1, tf.int64), tf.constant(False)))
        return sums, norms / tf.cast(number, tf.float32), bad_step

    def _any_stopping(self):
        """Returns whether any worker is to stop, in a step."""
        if isinstance(self.strategy, tf.distribute.TPUStrategy):
            return tf.constant(False)       # its loop may run on another machine
        is_stopping = self._is_stopping.read_value()
        if not isinstance(self.strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return is_stopping
        count = self.strategy.run(tf.identity, args=(tf.cast(is_stopping, tf.float32),))
        return self.strategy.reduce("SUM", count, axis=None) > 0

    def stop(self, is_stopping: bool = True) -> None:
        """Makes `train` return after its step; any thread may call this. False takes it back.

        On a TPU all steps of the call are taken.
        """
        self._is_stopping.assign(is_stopping)

    def train(self, iterator: Iterator, count: int) -> dict[str, float]:
        """Takes `count` steps with batches of a distributed dataset, or fewer after `stop`.

        Returns:
            Means over the steps of "loss", "grad_norm", each objective's "name/loss" and
            "name/accuracy", unless no batch had labels of it; and "learning_rate" of the next step.

        Raises:
            DivergedError: the loss or the gradient is not a finite number; names the step. The
                state is then spoilt and must not be saved.
        """
        sums, norm, bad_step = self._train(iterator, tf.constant(count, tf.int64))
        if int(bad_step) >= 0:
            raise DivergedError(
                f"the loss or the gradient of step {int(bad_step) + 1} is not a finite number; "
                "lower --learning_rate, or raise --num_warmup_steps, and start again.",
                int(bad_step) + 1)
        return {**self.means(sums.numpy(), only_counted=True), "grad_norm": float(norm),
                "learning_rate": float(self.optimizer.learning_rate.numpy())}

    def averaged(self) -> contextlib.AbstractContextManager:
        """Replaces the weights by their averages in the block, if the optimizer keeps such."""
        averages = self.optimizer.averages if self.step.numpy() else ()     # of no step, else
        return _with_values(list(zip(self.learner.trainable_variables, averages)))

    @tf.function(autograph=False)
    def _evaluate_step(self, batch, state):
        *sums, state = self.strategy.run(
            lambda *args: self.replica.measure(self.replica.carry(*args)), args=(batch, state))
        # One by one: several workers can't reduce a structure.
        return tf.nest.map_structure(
            lambda value: self.strategy.reduce("SUM", value, axis=None), sums), state

    def evaluate(self, batches: tf.distribute.DistributedDataset) -> dict[str, float]:
        """Means over all records of a distributed dataset: the losses and accuracies of `train`,
        the "name/perplexity" of each language model that has predicted a token, and the results of
        the objectives' `summarize`."""
        total, state = None, {}
        with self.averaged():
            for batch in batches:
                if self.state and total is None:
                    state = self.strategy.run(
                        lambda batch: memory.zeros(self.learner.carries, batch), args=(batch,))
                sums, state = self._evaluate_step(batch, state)
                sums = tf.nest.map_structure(lambda value: value.numpy().astype("float64"), sums)
                total = sums if total is None else tf.nest.map_structure(np.add, total, sums)
        sums, tallies = total
        metrics, counts = self.means(sums), dict(zip(self.replica.names, sums[:, 1]))
        metrics |= {f"{name}/perplexity": perplexity(metrics[loss])
                    for name, loss in self.replica.likelihoods.items() if counts.get(loss)}
        return metrics | {
            f"{one.metrics_name}/{kind}": value for one in self.learner.objectives
            if one.name in tallies for kind, value in one.summarize(tallies[one.name]).items()}

    @tf.function(autograph=False)
    def _predict_step(self, iterator, measures):
        # Taken here, a batch has the iterator's shape, which fits batches of every length.
        sums, answers = self.strategy.run(self.replica.answer, args=(next(iterator), measures))
        local = self.strategy.experimental_local_results
        return tf.add_n(local(sums)), tf.nest.map_structure(
            lambda values: tf.concat(local(values), 0), answers)

    def predict(self, iterator: Iterator, count: int, measures: bool = True) -> Iterator[tuple]:
        """Yields the answers to each of `count` batches, a dict of dicts of numpy arrays by
        objective, and sums for `means`, float32 [M, 2].

        Args:
            iterator: of a distributed dataset that gives every worker all batches.
            measures: whether to compute the sums, for which the batches must have labels.
        """
        for _ in range(count):
            sums, answers = self._predict_step(iterator, measures)
            yield tf.nest.map_structure(lambda values: values.numpy(), answers), sums.numpy()

    def means(self, sums, only_counted: bool = False) -> dict[str, float]:
        """The total loss, and the losses and accuracies of the objectives, from added sums. Those
        without labels are 0, or with `only_counted` left out."""
        means = {name: float(total / count) if count else 0.0
                 for name, (total, count) in zip(self.replica.names, sums)
                 if count or not (only_counted or self.learner.one_task_a_batch)}
        return {"loss": float(self._total(sums)), **means}

    def distribute(self, make_batches: Callable) -> tf.distribute.DistributedDataset:
        """A distributed dataset from `make_batches(worker, workers, replicas)`."""
        def of_worker(context):
            return make_batches(context.input_pipeline_id, context.num_input_pipelines,
                                context.num_replicas_in_sync)
        return self.strategy.distribute_datasets_from_function(of_worker)


def join_options(own: dict, factors: dict) -> dict:
    """Joins a learner's and the settings' options of an optimizer, the learner's factors first."""
    return {**factors, **own, **{name: (*own[name], *factors[name])
                                 for name in own.keys() & factors.keys()}}


def rematerialize(learner: Learner) -> None:
    """Makes the encoders of a learner compute their layers again in the backward pass.

    Raises:
        InputError: the learner has no encoder that can.
    """
    encoders = [layer for layer in learner._flatten_layers() if isinstance(layer, Bert)]
    if not encoders:
        raise InputError("--rematerialize is for encoders like BERT's, not for a "
                         f"{type(learner.encoder).__name__}; leave the flag out.")
    if any(hasattr(layer, "over_replicas") for layer in learner._flatten_layers()):
        raise InputError("--rematerialize is not for a network of rounded numbers, which records "
                         "their ranges once per step; leave the flag out.")
    for encoder in encoders:
        encoder.rematerializes = True


def _is_compiled(settings, strategy):
    return {"auto": distribution.has_accelerator(strategy),
            "true": True, "false": False}[settings.jit_compile]


def compiles_each_shape(settings: SharedSettings, strategy: tf.distribute.Strategy) -> bool:
    """Returns whether the step is compiled again for every new shape of a batch."""
    return distribution.needs_static_shapes(strategy) or _is_compiled(settings, strategy)


def make_trainer(strategy: tf.distribute.Strategy, settings: SharedSettings,
                 make_learner: Callable[[str], Learner], sums_losses: bool = False,
                 trains: bool = True, **factors: tuple) -> Trainer:
    """Makes a Trainer whose weights are drawn from the seed of the settings.

    Args:
        make_learner: function (dtype policy) -> Learner; weights that it freezes are not trained.
        factors: `rate_factors` or `gradient_factors`, see `AdamWeightDecay`.
    """
    keras.utils.set_random_seed(settings.random_seed)
    with strategy.scope():
        learner = make_learner(POLICIES[settings.dtype])
        if settings.rematerialize:
            rematerialize(learner)
        rate = WarmupLinearDecay(settings.learning_rate, settings.schedule_end,
                                 settings.num_warmup_steps, settings.learning_rate_schedule,
                                 settings.poly_power, settings.start_warmup_step,
                                 settings.warmup_init_lr, settings.end_learning_rate,
                                 settings.num_decay_steps)
        if ("phase_steps" in learner.optimizer_options) != (settings.optimizer == PROGRESSIVE):
            raise InputError(f"--layer_wise_warmup and --optimizer={PROGRESSIVE} belong together; "
                             "give both or neither.")
        options = join_options(learner.optimizer_options, factors)
        if settings.weight_decay is not None:
            options["weight_decay"] = settings.weight_decay
        if isinstance(settings, RobustnessSettings):
            options |= settings.average_options(settings.num_train_steps)
        optimizer = make_optimizer(settings.optimizer, rate,
                                   skip_nonfinite=settings.dtype == "float16", **options)
        optimizer.compiles = settings.jit_compile != "false"
    way = None
    if getattr(settings, "adv_train", "none") != "none":
        from bert_tf.training import adversarial
        way = adversarial.make(settings)
    return Trainer(learner, optimizer, strategy, settings.random_seed,
                   _is_compiled(settings, strategy),
                   settings.gradient_accumulation_steps, sums_losses, settings.train_batch_size,
                   trains, way)
