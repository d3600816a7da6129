"""The devices that a run has, in words, and the reason where TensorFlow sees no GPU."""

import collections
import glob
import importlib.util
import os

import lazy_loader

from bert_tf.data.records.jobs import usable_cores
from bert_tf.errors import counted

tf = lazy_loader.load("tensorflow")

_GPUS = "/dev/nvidia[0-9]*"     # files of the driver, one for each GPU
_LIBRARIES = "nvidia.cudnn"     # one of the packages of the extra `gpu`


def describe(strategy: "tf.distribute.Strategy", workers: int = 1) -> str:
    """Returns the line that names the devices of a run.

    Args:
        workers: processes that train together, each with as many devices.
    """
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return f"devices: {strategy.num_replicas_in_sync} TPU cores"
    gpus = tf.config.list_physical_devices("GPU")
    names = [tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
             for gpu in gpus]
    used = strategy.num_replicas_in_sync // workers
    if gpus:
        found = ", ".join(f"{count} x {name}" for name, count
                          in collections.Counter(names[:used]).items())
        found += f" of {len(gpus)} GPUs" if used < len(gpus) else ""
    else:
        found = f"CPU ({usable_cores()} cores)"
    return f"devices: {found}" + (f", on each of {workers} workers" if workers > 1 else "")


def missing() -> str:
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
