"""From settings to a Trainer: devices, network, objectives, optimizer."""

import keras
import tensorflow as tf

from bert_tf.networks.encoder import BertEncoder
from bert_tf.training import distribution
from bert_tf.training.learner import Learner
from bert_tf.training.loop import Trainer
from bert_tf.training.optimizer import WarmupLinearDecay, make_optimizer
from bert_tf.training.settings import POLICIES


def _is_of_use(record):
    """Every Trainer traces its own steps, which TensorFlow's log takes for a mistake."""
    return "triggered tf.function retracing" not in record.getMessage()


def open_strategy(settings, trains=True, evaluates=True):
    """The strategy of the settings, among whose devices their batches can be shared out.

    Args:
        settings: `TrainSettings`.
        trains, evaluates: which batches will be needed.

    Raises:
        InputError: the devices are not there, or the batches can't.
    """
    strategy = distribution.make_strategy(settings.distribution_strategy, settings.tpu,
                                          settings.tpu_zone, settings.gcp_project)
    settings.check_replicas(strategy.num_replicas_in_sync, trains, evaluates)
    tf.get_logger().addFilter(_is_of_use)
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    return strategy


def make_trainer(strategy, settings, config, make_objectives, prepare=None, rate_factors=()):
    """A Trainer whose weights are drawn from the seed of the settings.

    Args:
        strategy: of `open_strategy`.
        settings: `TrainSettings`.
        config: `EncoderConfig`.
        make_objectives: function (config, dtype) -> list of objectives.
        prepare: function of the Learner, to be called before the optimizer knows its variables.
        rate_factors: see `AdamWeightDecay`.
    """
    jit_compile = {"auto": distribution.has_accelerator(strategy),
                   "true": True, "false": False}[settings.jit_compile]
    keras.utils.set_random_seed(settings.random_seed)
    policy = POLICIES[settings.dtype]
    with strategy.scope():
        learner = Learner(BertEncoder(config, dtype=policy), make_objectives(config, dtype=policy))
        if prepare:
            prepare(learner)
        rate = WarmupLinearDecay(settings.learning_rate, settings.num_train_steps,
                                 settings.num_warmup_steps)
        optimizer = make_optimizer(
            settings.optimizer, rate, weight_decay=settings.weight_decay,
            skip_nonfinite=settings.dtype == "float16", rate_factors=rate_factors)
    return Trainer(learner, optimizer, strategy, settings.random_seed, jit_compile,
                   settings.gradient_accumulation_steps)
