"""Training checkpoints: one safetensors file each, whole or absent, verified when read.

A checkpoint holds every variable of the Learner and of its optimizer under its path, and the state
of the Trainer. Its metadata hold what the caller adds as JSON, after the file's own checksum: eight
digits that count as zeros when it is computed.
"""

import glob
import json
import os
import re

import google_crc32c
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from bert_tf.errors import InputError
from bert_tf.files import write_aside

_NAME = "checkpoint-{:09d}.safetensors"
_PATTERN = re.compile(r"checkpoint-(\d+)\.safetensors$")

_UNSEALED = b"0" * 8
# What stands before the checksum, after the eight bytes of the header's length.
_BEFORE_SEAL = b'{"__metadata__":{"bert_tf":"'
_HEAD_SIZE = 8 + len(_BEFORE_SEAL)


class DamagedError(InputError):
    """A checkpoint is not as it was written."""


def _variables(trainer):
    """dict of every variable that training changes, by a name that is the same in every run."""
    # Not the state of seed generators, which the loop does not use.
    named = {f"learner/{v.path}": v for v in trainer.learner.weights}
    named |= {f"optimizer/{v.path}": v for v in trainer.optimizer.variables}
    named |= {f"trainer/{name}": getattr(trainer, name)
              for name in ("step", "loss_scale", "finite_steps")}
    return named


def is_checkpoint(path):
    """Whether a file has the name of a training checkpoint."""
    return os.path.isfile(path) and _PATTERN.search(path) is not None


def checkpoints(folder):
    """The checkpoint files of a folder, oldest first."""
    paths = glob.glob(os.path.join(glob.escape(folder), "checkpoint-*.safetensors"))
    return sorted((p for p in paths if _PATTERN.search(p)),
                  key=lambda p: int(_PATTERN.search(p).group(1)))


def save_checkpoint(folder, trainer, extra, keep):
    """Writes the checkpoint of the trainer's step and removes all but the last `keep`.

    Args:
        folder: where.
        trainer: `Trainer`.
        extra: JSON value to be kept with it.
        keep: how many to keep.

    Returns:
        The path of the new checkpoint.

    Raises:
        InputError: a weight is not a finite number; names it.
    """
    tensors = {name: np.array(variable.numpy()) for name, variable in _variables(trainer).items()}
    for name, value in tensors.items():
        if not np.isfinite(value).all():
            raise InputError(f"{name} is not finite after step {int(trainer.step.numpy())}, which "
                             "is not saved: lower --learning_rate and start again.")
    # One entry: safetensors writes several in any order, and equal states shall be equal files.
    data = save(tensors, {"bert_tf": _UNSEALED.decode() + json.dumps(extra)})
    head, rest = data[:_HEAD_SIZE], memoryview(data)[_HEAD_SIZE + len(_UNSEALED):]
    path = os.path.join(folder, _NAME.format(int(trainer.step.numpy())))
    with write_aside(path, "wb") as file:
        file.writelines((head, b"%08x" % google_crc32c.value(data), rest))
    for old in checkpoints(folder)[:-keep]:
        os.remove(old)
    return path


def _verify(path):
    """Raises DamagedError if any byte of a checkpoint is not as it was written."""
    with open(path, "rb") as file:
        head, seal = file.read(_HEAD_SIZE), file.read(len(_UNSEALED))
        found = google_crc32c.value(head + _UNSEALED)
        while chunk := file.read(1 << 20):
            found = google_crc32c.extend(found, chunk)
    if head[8:] != _BEFORE_SEAL or seal != b"%08x" % found:
        raise DamagedError(f"{path} is damaged, or no training checkpoint of bert_tf: its checksum "
                           "is wrong; remove it to go on from the one before.")


def read_checkpoint(path):
    """The tensors and the extra value of a checkpoint.

    Raises:
        DamagedError: it is not as it was written; names the file.
    """
    try:
        _verify(path)
        with safe_open(path, framework="numpy") as file:
            extra = json.loads(file.metadata()["bert_tf"][len(_UNSEALED):])
            return {name: file.get_tensor(name) for name in file.keys()}, extra
    except (SafetensorError, OSError) as error:
        raise DamagedError(f"{path} can't be read ({error}); remove it to go on from the one "
                           "before.") from error


def restore(path, trainer, weights_only=False):
    """Gives the trainer the state of a checkpoint: all of it, or nothing if anything is wrong.

    Args:
        path: the checkpoint.
        trainer: `Trainer`.
        weights_only: take the Learner's weights and leave optimizer and step as they are.

    Returns:
        What `save_checkpoint` was given as `extra`.

    Raises:
        DamagedError: it is not as it was written.
        InputError: it does not fit the model; names the tensor.
    """
    tensors, extra = read_checkpoint(path)
    named = _variables(trainer)
    if weights_only:
        named = {name: v for name, v in named.items() if name.startswith("learner/")}
        tensors = {name: v for name, v in tensors.items() if name.startswith("learner/")}
    for name, variable in named.items():
        if name not in tensors:
            raise InputError(f"{path} has no {name}: it is of another model or optimizer.")
        if tuple(tensors[name].shape) != tuple(variable.shape):
            raise InputError(f"{path}: {name} has shape {tensors[name].shape}, the model's has "
                             f"{tuple(variable.shape)}: check --bert_config_file.")
    for name in tensors:
        if name not in named:
            raise InputError(f"{path} holds {name}, which the model has not: it is of another "
                             "model or optimizer.")
    for name, variable in named.items():
        variable.assign(tensors[name])
    return extra
