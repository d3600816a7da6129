"""Devices: one, several of a machine, several machines, or a TPU."""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator

import keras
import lazy_loader
from keras import ops

from bert_tf.errors import InputError
from bert_tf.training.cluster import Cluster, find

# Only when it is used: optimizers and predictions also run on JAX, without TensorFlow.
tf = lazy_loader.load("tensorflow")


def dense(gradient):
    """Returns a gradient as a tensor; the parts of a row that was used repeatedly are summed."""
    if keras.config.backend() != "tensorflow":
        return gradient
    return tf.convert_to_tensor(gradient)


def count_replicas() -> int:
    """The number of replicas that take a step together; 1 outside of such a step."""
    if keras.config.backend() != "tensorflow":
        return 1
    context = tf.distribute.get_replica_context()
    return 1 if context is None else context.num_replicas_in_sync


def all_reduce_sum(tensors):
    """The sums of tensors over the replicas; the tensors themselves where there is one replica."""
    if count_replicas() == 1:
        return tensors
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tensors)


def conditionally(is_wanted, wanted: Callable, other: Callable, tensors: list) -> None:
    """Calls one of two functions with `tensors`; both may change variables.

    Replicas that must meet, as to add gradients up, can't do so inside a condition. So they meet
    before it, as in Keras's LossScaleOptimizer.
    """
    if (keras.config.backend() != "tensorflow" or not tf.distribute.has_strategy()
            or tf.__internal__.distribute.strategy_supports_no_merge_call()):
        ops.cond(is_wanted, lambda: wanted(tensors), lambda: other(tensors))
        return

    def meet(strategy, is_wanted, tensors):
        def of_each(function):
            strategy.extended.call_for_each_replica(function, args=(tensors,))

        is_wanted = strategy.experimental_local_results(is_wanted)[0]       # the same in all
        ops.cond(is_wanted, lambda: of_each(wanted), lambda: of_each(other))

    tf.distribute.get_replica_context().merge_call(meet, args=(is_wanted, tensors))


def is_strategy_in_use() -> bool:
    """Returns whether variables may have parts on several devices; on other backends than
    TensorFlow always True."""
    return keras.config.backend() != "tensorflow" or tf.distribute.has_strategy()


def all_reduce_max(x):
    """The greatest of a scalar over the replicas."""
    context = tf.distribute.get_replica_context()
    mine = tf.one_hot(context.replica_id_in_sync_group, context.num_replicas_in_sync)
    return tf.reduce_max(context.all_reduce(tf.distribute.ReduceOp.SUM, mine * x))


def make_strategy(name: str, tpu: str | None = None, tpu_zone: str | None = None,
                  gcp_project: str | None = None, workers: Cluster | None = None
                  ) -> "tf.distribute.Strategy":
    """Makes the tf.distribute strategy of a flag.

    Args:
        name: one of `settings.STRATEGIES`. "mirrored" takes all GPUs of this machine (or all
            logical CPUs where there is no GPU).
        tpu, tpu_zone, gcp_project: arguments of TPUClusterResolver.
        workers: of "multi_worker"; None: TF_CONFIG names the workers.
    """
    if name == "one_device":
        return tf.distribute.get_strategy()
    if name == "mirrored":
        gpus = tf.config.list_logical_devices("GPU")
        return tf.distribute.MirroredStrategy(
            None if gpus else [device.name for device in tf.config.list_logical_devices("CPU")])
    if name == "multi_worker":
        workers = workers or find("tf_config", [])
        try:
            return tf.distribute.MultiWorkerMirroredStrategy(workers.resolver())
        except (ValueError, KeyError, TypeError, RuntimeError, tf.errors.OpError) as error:
            raise InputError(f"the cluster {', '.join(workers.addresses)} can't be joined by "
                             f"worker {workers.index} ({error}); check that all workers run and "
                             "reach each other.") from error
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu or "", zone=tpu_zone, project=gcp_project)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, OSError, tf.errors.OpError) as error:
        raise InputError(f"--distribution_strategy=tpu: no TPU can be reached ({error}); name the "
                         "TPU with --tpu.") from error
    return tf.distribute.TPUStrategy(resolver)


def mean_over_workers(strategy: "tf.distribute.Strategy", number: float) -> float:
    """Returns the mean of a number over all workers; each worker must call this."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return float(number)
    return float(_mean_over_workers(strategy)(tf.constant(number, tf.float64)))


@functools.cache
def _mean_over_workers(strategy):
    return tf.function(lambda number: strategy.reduce(
        "MEAN", strategy.run(tf.identity, args=(number,)), axis=None), autograph=False)


def is_large(variable) -> bool:
    """Returns whether a variable takes more than a megabyte."""
    return math.prod(variable.shape) > 1 << 18


@contextlib.contextmanager
def after(variables: list) -> Iterator[None]:
    """Makes the block's operations wait, in TensorFlow's graph, for variables' new values."""
    if not variables or keras.config.backend() != "tensorflow":
        yield
        return
    with tf.control_dependencies([tf.identity(variable) for variable in variables]):
        yield


def has_accelerator(strategy: "tf.distribute.Strategy") -> bool:
    """Returns whether the replicas run on GPUs or a TPU, where XLA makes the step faster."""
    return (isinstance(strategy, tf.distribute.TPUStrategy)
            or bool(tf.config.list_physical_devices("GPU")))


def counted_heads(config) -> int:
    """Returns `num_heads` for `data.sorted_batches`: 0 on GPUs, where large batches are faster."""
    return 0 if tf.config.list_physical_devices("GPU") else config.num_attention_heads


def needs_static_shapes(strategy: "tf.distribute.Strategy") -> bool:
    """Returns whether the devices must know every shape beforehand, as TPUs do."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def count_workers(strategy: "tf.distribute.Strategy") -> int:
    """Returns the number of processes that train together."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 1
    return len(strategy.cluster_resolver.cluster_spec().as_dict()["worker"])


def is_chief(strategy: "tf.distribute.Strategy") -> bool:
    """Returns whether this process writes the files of a run: the first worker, or the only one."""
    resolver = strategy.cluster_resolver
    return not (resolver and resolver.task_type == "worker" and resolver.task_id)
