"""The strategy and the Trainer that settings of training describe."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from bert_tf import signals
from bert_tf.errors import InputError, explain_with
from bert_tf.networks import BertEncoder
from bert_tf.training import adversarial, cluster, devices, distribution
from bert_tf.training.compiler import silence_tracing
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers import PROGRESSIVE, WarmupLinearDecay, make_optimizer
from bert_tf.training.robustness_settings import RobustnessSettings
from bert_tf.training.settings import POLICIES, SharedSettings
from bert_tf.training.trainer import Trainer


def open_strategy(settings: SharedSettings, trains: bool = True, evaluates: bool = True,
                  others: Sequence[Any] = (), records: Mapping[str, Any] | None = None
                  ) -> tf.distribute.Strategy:
    """Returns the strategy of the settings after a check that its devices can share the batches.

    Args:
        trains, evaluates: the batches that will be needed.
        others: further dataclasses of flags, which must be equal for all workers.
        records: JSON values that identify the records of flags, which must be equal, too.

    Raises:
        InputError: the devices can't share the batches or can't be used; or the program is in a
            strategy's scope, whose end would fail since training clears Keras's state.
    """
    if tf.distribute.has_strategy():
        raise InputError("this can't run within strategy.scope(); leave the scope, and give "
                         "--distribution_strategy=mirrored to train on several devices.")
    workers = None
    if settings.distribution_strategy == "multi_worker":
        workers = cluster.find(settings.cluster, settings.cluster_hosts)
        given = {name: value for part in (*others, settings) if part is not None
                 for name, value in dataclasses.asdict(part).items()}
        cluster.meet(workers, cluster.comparable(given, records or {}), settings.cluster_timeout,
                     settings.output_dir)
        explain_with(cluster.explain_lost_worker)
    with cluster.connecting(workers.addresses, settings.cluster_timeout) if workers else (
            contextlib.nullcontext()):
        strategy = distribution.make_strategy(settings.distribution_strategy, settings.tpu,
                                              settings.tpu_zone, settings.gcp_project, workers)
    if workers:
        signals.restore_handlers()
    settings.check_replicas(strategy.num_replicas_in_sync, trains, evaluates)
    print(devices.describe(strategy, distribution.count_workers(strategy)), flush=True)
    for problem in (devices.missing(), "" if workers else cluster.unjoined()):
        if problem:
            print(f"warning: {problem}", flush=True)
    silence_tracing()
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    return strategy


def join_options(own: dict, factors: dict) -> dict:
    """Joins a learner's and the settings' options of an optimizer, the learner's factors first."""
    return {**factors, **own, **{name: (*own[name], *factors[name])
                                 for name in own.keys() & factors.keys()}}


def rematerialize(learner: Learner) -> None:
    """Makes the encoders of a learner compute their layers again in the backward pass.

    Raises:
        InputError: the learner has no encoder that can.
    """
    found = [layer for layer in learner._flatten_layers() if isinstance(layer, BertEncoder)]
    if not found:
        raise InputError("--rematerialize is for encoders like BERT's, not for a "
                         f"{type(learner.encoder).__name__}; leave the flag out.")
    if any(encoder.config.quantisation for encoder in found):
        raise InputError("--rematerialize is not for a quantised network, which records its ranges "
                         "once per step; leave the flag out.")
    for encoder in found:
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
        rate = WarmupLinearDecay(settings.learning_rate,
                                 getattr(settings, "schedule_steps", 0) or settings.num_train_steps,
                                 settings.num_warmup_steps, settings.learning_rate_schedule,
                                 settings.poly_power, settings.start_warmup_step,
                                 settings.warmup_init_lr, settings.end_learning_rate)
        if ("phase_steps" in learner.optimizer_options) != (settings.optimizer == PROGRESSIVE):
            raise InputError(f"--layer_wise_warmup and --optimizer={PROGRESSIVE} belong together; "
                             "give both or neither.")
        optimizer = make_optimizer(
            settings.optimizer, rate, weight_decay=settings.weight_decay,
            skip_nonfinite=settings.dtype == "float16",
            **(settings.average_options(settings.num_train_steps)
               if isinstance(settings, RobustnessSettings) else {}),
            **join_options(learner.optimizer_options, factors))
        optimizer.compiles = settings.jit_compile != "false"
    return Trainer(learner, optimizer, strategy, settings.random_seed,
                   _is_compiled(settings, strategy),
                   settings.gradient_accumulation_steps, sums_losses, settings.train_batch_size,
                   trains, adversarial.make(settings))
