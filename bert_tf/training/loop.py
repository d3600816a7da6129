"""The training step on any number of replicas, and the loop around it.

Keras `fit` is not used: on several replicas it fails or divides by the wrong counts. A step here
takes one global batch; each replica computes sums over its part, everything is divided by the
global counts, and the optimizer adds the gradients up, clips and applies them.
"""

import hashlib

import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.training import distribution

_LOSS_SCALE = 2.0**15           # where float16 training begins
_GROWTH_STEPS = 2000            # finite steps after which the loss scale doubles


class Trainer:
    """Trains a Learner with an optimizer under a strategy.

    Both must have been made in the strategy's scope. The state of training is theirs, `step` and
    `loss_scale`; dropout masks are a function of (seed, step, replica, part of the batch).

    Args:
        learner: `Learner`.
        optimizer: an optimizer of training/optimizer.py; it is built here.
        strategy: tf.distribute.Strategy.
        seed: int, of dropout.
        jit_compile: compile the forward and backward pass with XLA.
        accumulation: parts in which a replica takes its batch, one after the other.
    """

    def __init__(self, learner, optimizer, strategy, seed=0, jit_compile=False, accumulation=1):
        self.learner, self.optimizer, self.strategy = learner, optimizer, strategy
        self._seed = int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:3], "big") << 7
        self._accumulation = accumulation
        self._uses_loss_scale = "float16" == learner.encoder.compute_dtype
        with strategy.scope():
            optimizer.build(learner.trainable_variables)
            self.step = tf.Variable(0, trainable=False, dtype=tf.int64, name="step")
            self.loss_scale = tf.Variable(_LOSS_SCALE if self._uses_loss_scale else 1.0,
                                          trainable=False, name="loss_scale")
            self.finite_steps = tf.Variable(0, trainable=False, dtype=tf.int64,
                                            name="finite_steps")
        self._names = [f"{objective.name}/{kind}" for objective in learner.objectives
                       for kind in ("loss", "accuracy")]
        # Under TPUStrategy `strategy.run` compiles the whole step by itself.
        jit_compile = jit_compile and not isinstance(strategy, tf.distribute.TPUStrategy)
        self._gradients = tf.function(self._compute_gradients, jit_compile=jit_compile,
                                      autograph=False)
        self._forward = tf.function(self._measure, jit_compile=jit_compile, autograph=False)
        self._answers = tf.function(self._answer, jit_compile=jit_compile, autograph=False)

    # One replica

    def _compute_gradients(self, batch, seed, counts, loss_scale):
        """The measures of a part of a batch, and its addend of the gradient."""
        with tf.GradientTape() as tape:
            measures = self.learner.measure(batch, training=True, dropout_seed=seed)
            loss = self.learner.total_loss(measures, counts) * loss_scale
        variables = [v.value for v in self.learner.trainable_variables]
        grads = tape.gradient(loss, variables, unconnected_gradients="zero")
        return self._pack(measures), [distribution.dense(g) for g in grads]

    def _measure(self, batch):
        return self._pack(self.learner.measure(batch))

    def _answer(self, batch, measures):
        """The measures of a batch (zeros if they are not wanted), and what the logits say."""
        logits = self.learner(batch)
        sums = (self._pack(self.learner.measure_logits(logits, batch)) if measures
                else tf.zeros([len(self._names), 2]))
        return sums, {objective.name: objective.answers(logits[objective.name])
                      for objective in self.learner.objectives}

    def _pack(self, measures):
        """float32 [objectives * 2, 2] of (sum, count)."""
        return tf.stack([tf.stack(measures[name][kind]) for name, kind in
                         (n.split("/") for n in self._names)])

    def _replica_step(self, batch, step, loss_scale):
        names = [objective.name for objective in self.learner.objectives]
        counts = self.learner.counts(batch)
        counts = dict(zip(names, distribution.all_reduce_sum([counts[n] for n in names])))
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        parts = self._accumulation
        pieces = {name: tf.split(value, parts) for name, value in batch.items()}
        sums = grads = None
        for part in range(parts):
            # Seeds of 2**7 replicas and parts of a step differ in the low bits of the first word.
            seed = tf.stack([tf.cast(self._seed + part, tf.int32)
                             + tf.cast(replica, tf.int32) * parts, tf.cast(step, tf.int32)])
            measures, gradient = self._gradients(
                {name: values[part] for name, values in pieces.items()}, seed, counts, loss_scale)
            sums = measures if sums is None else sums + measures
            grads = gradient if grads is None else [a + b for a, b in zip(grads, gradient)]
        if self._uses_loss_scale:
            grads = [g / loss_scale for g in grads]
        norm = self.optimizer.apply(grads, self.learner.trainable_variables)
        return sums, norm

    # All replicas

    def _total(self, sums):
        """The total loss, from packed sums."""
        return self.learner.total_loss({
            objective.name: {"loss": (sums[2 * index, 0], sums[2 * index, 1])}
            for index, objective in enumerate(self.learner.objectives)})

    @tf.function
    def _train(self, iterator, count):
        sums = tf.zeros([len(self._names), 2])
        norms = tf.constant(0.0)
        bad_step = tf.constant(-1, tf.int64)
        for _ in tf.range(count):
            loss_scale = tf.identity(self.loss_scale)
            per_replica = self.strategy.run(
                self._replica_step, args=(next(iterator), tf.identity(self.step), loss_scale))
            step_sums = self.strategy.reduce("SUM", per_replica[0], axis=None)
            norm = self.strategy.reduce("MEAN", per_replica[1], axis=None)
            is_finite = tf.math.is_finite(norm)
            if self._uses_loss_scale:
                self._adapt_loss_scale(is_finite)
                healthy = tf.math.is_finite(self._total(step_sums)) & (loss_scale >= 1.0)
                norms += tf.where(is_finite, norm, 0.0)
            else:
                healthy = tf.math.is_finite(self._total(step_sums)) & is_finite
                norms += norm
            bad_step = tf.where((bad_step < 0) & ~healthy, self.step, bad_step)
            sums += step_sums
            self.step.assign_add(1)
        return sums, norms / tf.cast(count, tf.float32), bad_step

    def _adapt_loss_scale(self, is_finite):
        finite_steps = tf.where(is_finite, self.finite_steps + 1, 0)
        grow = finite_steps >= _GROWTH_STEPS
        scale = tf.where(is_finite, self.loss_scale, self.loss_scale / 2)
        self.loss_scale.assign(tf.where(grow, scale * 2, scale))
        self.finite_steps.assign(tf.where(grow, tf.zeros_like(finite_steps), finite_steps))

    def train(self, iterator, count):
        """Takes `count` steps.

        Args:
            iterator: of a distributed dataset.
            count: int.

        Returns:
            dict of floats: means over the steps of "loss", "grad_norm", each objective's
            "name/loss" and "name/accuracy"; and "learning_rate" of the next step.

        Raises:
            InputError: the loss or the gradient is not a finite number; names the step. The state
                is spoilt then and must not be saved.
        """
        sums, norm, bad_step = self._train(iterator, tf.constant(count, tf.int64))
        if int(bad_step) >= 0:
            raise InputError(
                f"the loss or the gradient of step {int(bad_step) + 1} is not a finite number. The "
                "last checkpoint is from before: lower --learning_rate, or raise "
                "--num_warmup_steps, and start again.")
        return {**self.means(sums.numpy()), "grad_norm": float(norm),
                "learning_rate": float(self.optimizer.learning_rate.numpy())}

    @tf.function(autograph=False)
    def _evaluate_step(self, batch):
        return self.strategy.reduce("SUM", self.strategy.run(self._forward, args=(batch,)),
                                    axis=None)

    def evaluate(self, batches):
        """Means over all records of a distributed dataset: the losses and accuracies of `train`."""
        sums = 0.0
        for batch in batches:
            sums += self._evaluate_step(batch).numpy()
        return self.means(sums)

    @tf.function(autograph=False)
    def _predict_step(self, iterator, measures):
        # Taken here, a batch has the iterator's shape, which fits batches of every length.
        sums, answers = self.strategy.run(self._answers, args=(next(iterator), measures))
        local = self.strategy.experimental_local_results
        return tf.add_n(local(sums)), tf.nest.map_structure(
            lambda values: tf.concat(local(values), 0), answers)

    def predict(self, iterator, count, measures=True):
        """Yields, for each of `count` batches of a distributed dataset that gives every worker all
        of it, what the objectives answer, a dict of dicts of numpy arrays; and sums for `means` if
        `measures`, for which the batches must have labels.
        """
        for _ in range(count):
            sums, answers = self._predict_step(iterator, measures)
            yield tf.nest.map_structure(lambda values: values.numpy(), answers), sums.numpy()

    def means(self, sums):
        """The total loss, and the losses and accuracies of the objectives, of added up sums."""
        means = {name: float(total / count) if count else 0.0 for name, (total, count)
                 in zip(self._names, sums)}
        return {"loss": float(self._total(sums)), **means}

    def distribute(self, make_batches):
        """A distributed dataset from `make_batches(worker, workers, replicas)`."""
        def of_worker(context):
            return make_batches(context.input_pipeline_id, context.num_input_pipelines,
                                context.num_replicas_in_sync)
        return self.strategy.distribute_datasets_from_function(of_worker)
