"""Devices: one, several of a machine, several machines, or a TPU; functions compiled for them."""

import collections
import contextlib
import dataclasses
import functools
import glob
import importlib.util
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import lazy_loader
import numpy as np
from keras import ops

from bert_tf.data.records.jobs import usable_cores
from bert_tf.errors import InputError, check_process, counted, explain_with
from bert_tf.training import cluster
from bert_tf.training.settings import SharedSettings

# Only when it is used: optimizers and predictions also run on JAX, without TensorFlow.
tf = lazy_loader.load("tensorflow")

# Where Keras and TensorFlow note at some tensors where they came from.
_NOTES = ("_keras_logits", "assign")
_GPUS = "/dev/nvidia[0-9]*"     # files of the driver, one for each GPU
_LIBRARIES = "nvidia.cudnn"     # one of the packages of the extra `gpu`


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


def conditionally(is_wanted, chosen: Callable, other: Callable, tensors: list) -> None:
    """Calls one of two functions with `tensors`; both may change variables.

    Replicas that must meet, as to add gradients up, can't do so inside a condition. So they meet
    before it, as in Keras's LossScaleOptimizer.
    """
    if (keras.config.backend() != "tensorflow" or not tf.distribute.has_strategy()
            or tf.__internal__.distribute.strategy_supports_no_merge_call()):
        ops.cond(is_wanted, lambda: chosen(tensors), lambda: other(tensors))
        return

    def meet(strategy, is_wanted, tensors):
        def of_each(function):
            strategy.extended.call_for_each_replica(function, args=(tensors,))

        is_wanted = strategy.experimental_local_results(is_wanted)[0]       # the same in all
        ops.cond(is_wanted, lambda: of_each(chosen), lambda: of_each(other))

    tf.distribute.get_replica_context().merge_call(meet, args=(is_wanted, tensors))


def is_strategy_in_use() -> bool:
    """Whether variables may have parts on several devices; always True beside TensorFlow."""
    return keras.config.backend() != "tensorflow" or tf.distribute.has_strategy()


def all_reduce_max(x):
    """The greatest of a scalar over the replicas."""
    context = tf.distribute.get_replica_context()
    own = tf.one_hot(context.replica_id_in_sync_group, context.num_replicas_in_sync)
    return tf.reduce_max(context.all_reduce(tf.distribute.ReduceOp.SUM, own * x))


def open_strategy(settings: SharedSettings, trains: bool = True, evaluates: bool = True,
                  others: Sequence[Any] = (), records: Mapping[str, Any] | None = None
                  ) -> "tf.distribute.Strategy":
    """Returns the strategy of the settings after a check that its devices can share the batches.

    Args:
        trains, evaluates: the batches that will be needed.
        others: further dataclasses of flags, which must be equal for all workers.
        records: JSON values that identify the records of flags, which must be equal, too.

    Raises:
        InputError: the devices can't share the batches or can't be used; or the program is a fork
            (`check_process`), or in a strategy's scope, whose end would fail since training clears
            Keras's state.
    """
    check_backend()
    check_process()
    if tf.distribute.has_strategy():
        raise InputError("this can't run within strategy.scope(); leave the scope, and give "
                         "--distribution_strategy=mirrored to train on several devices.")
    workers, connecting = None, contextlib.nullcontext()
    if settings.distribution_strategy == "multi_worker":
        workers = cluster.find(settings.cluster, settings.cluster_hosts)
        connecting = cluster.connecting(workers.addresses, settings.cluster_timeout)
        explain_with(cluster.explain_lost_worker)
    with connecting:
        strategy = make_strategy(settings.distribution_strategy, settings.tpu, settings.tpu_zone,
                                 settings.gcp_project, workers)
    if workers:
        values = {name: value for part in (*others, settings) if part is not None
                  for name, value in dataclasses.asdict(part).items()}
        cluster.agree(workers, cluster.comparable(values, records or {}), settings.cluster_timeout,
                      settings.output_dir)
    settings.check_replicas(strategy.num_replicas_in_sync, trains, evaluates)
    print(describe_devices(strategy, count_workers(strategy)), flush=True)
    problems = [missing_gpus()]
    if not workers and "TF_CONFIG" in os.environ:
        problems.append(cluster.unjoined())
    for problem in filter(None, problems):
        print(f"warning: {problem}", flush=True)
    silence_tracing()
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    return strategy


def make_strategy(name: str, tpu: str | None = None, tpu_zone: str | None = None,
                  gcp_project: str | None = None, workers: cluster.Cluster | None = None
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
        workers = workers or cluster.find("tf_config", [])
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


def mean_over_workers(strategy: "tf.distribute.Strategy", number: Any) -> Any:
    """Returns the mean of a number, or of an array's elements, over all workers; each worker must
    call this."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return number
    return _mean_over_workers(strategy)(tf.constant(number, tf.float64)).numpy()


def make_alike(strategy: "tf.distribute.Strategy", variables: Iterable[Any]) -> None:
    """Gives variables the same values on all workers, whose processors may compute what should be
    the same with other roundings; each worker must call this."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        for variable in variables:
            variable.assign(mean_over_workers(strategy, np.array(variable)))


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


def describe_devices(strategy: "tf.distribute.Strategy", workers: int = 1) -> str:
    """Returns the line that names the devices of a run of `workers`, each with as many devices."""
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return f"devices: {strategy.num_replicas_in_sync} TPU cores"
    gpus = tf.config.list_physical_devices("GPU")
    names = [tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
             for gpu in gpus]
    used = strategy.num_replicas_in_sync // workers
    devices = ", ".join(f"{count} x {name}" for name, count
                        in collections.Counter(names[:used]).items())
    if not gpus:
        devices = f"CPU ({usable_cores()} cores)"
    elif used < len(gpus):
        devices += f" of {len(gpus)} GPUs"
    if workers > 1:
        devices += f", on each of {workers} workers"
    return f"devices: {devices}"


def missing_gpus() -> str:
    """Returns a sentence on why TensorFlow does not see the GPUs of this machine; "" if it sees
    them, or if the machine has no GPU."""
    count = len(glob.glob(_GPUS))
    if not count or tf.config.list_physical_devices("GPU"):
        return ""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and hidden.strip() in ("", "-1"):
        reason = f"CUDA_VISIBLE_DEVICES={hidden} hides them"
    elif not tf.test.is_built_with_cuda():
        reason = "this TensorFlow was built without CUDA; install the plain package tensorflow"
    elif not _is_installed(_LIBRARIES):
        reason = "CUDA's libraries are missing; install them with pip install 'bert_tf[gpu]'"
    else:
        reason = ("the driver may be too old for CUDA 12; the same command with "
                  "TF_CPP_MIN_LOG_LEVEL=0 shows what TensorFlow says")
    return f"this machine has {counted(count, 'GPU')}, but TensorFlow sees none: {reason}."


def _is_installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:     # not even the package above it
        return False


@functools.cache
def silence_compiler() -> None:
    """Compiles something small with XLA while nothing is written to stderr. TensorFlow writes two
    lines with the first thing that XLA compiles; only TF_CPP_MIN_LOG_LEVEL=0 should show them."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        return
    try:
        stderr = os.dup(2)
    except OSError:     # it is closed
        return
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        with tf.init_scope():
            tf.function(tf.identity, jit_compile=True, autograph=False)(tf.constant(0))
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def check_backend() -> None:
    """Raises InputError unless Keras computes with TensorFlow."""
    if keras.config.backend() != "tensorflow":
        raise InputError("prediction and the commands that train a model compute with TensorFlow, "
                         f"but KERAS_BACKEND is {keras.config.backend()}; set it to tensorflow.")


def compiled(function: Callable, **options: Any) -> Any:
    """A `tf.function` without autograph, whose graphs, with the weights that they hold, leave
    memory with it. Others can't take gradients of these graphs, as they may of exported models.

    The notes at tensors, such as the logits of a softmax, lead back to the graph through objects
    that Python's garbage collector can't see. TensorFlow also registers each `custom_gradient`,
    with its tensors, until the process ends.
    """
    check_backend()
    from tensorflow.python.framework import ops as graphs

    @functools.wraps(function)
    def traced(*args: Any) -> Any:
        result = function(*args)
        if not tf.executing_eagerly():
            for op in tf.compat.v1.get_default_graph().get_operations():
                if op.type == "IdentityN":      # the outputs of a `custom_gradient`
                    attribute = op.node_def.attr.get("_gradient_op_type")
                    if attribute and attribute.s.startswith(b"CustomGradient-"):
                        graphs.gradient_registry._registry.pop(attribute.s.decode(), None)
                for tensor in op.outputs:
                    for name in _NOTES:
                        getattr(tensor, "__dict__", {}).pop(name, None)
        return result
    made = tf.function(traced, autograph=False, **options)
    # TensorFlow counts the traces of all functions of one piece of code, such as those of several
    # models, as of one.
    made._omit_frequent_tracing_warning = True
    return made


def silence_tracing() -> None:
    """Leaves out TensorFlow's warnings of functions that are traced for several shapes."""
    tf.get_logger().addFilter(_is_of_use)


def _is_of_use(record):
    return "triggered tf.function retracing" not in record.getMessage()
