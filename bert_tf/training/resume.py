"""Training checkpoints: one safetensors file each, whole or absent, verified when read.

A checkpoint is a sealed file of every variable of the Learner and of its optimizer, by its path,
and of the state of the Trainer; what the caller adds is kept as JSON.
"""

import glob
import os
import re

import numpy as np

from bert_tf.checkpoints import sealed
from bert_tf.errors import InputError

_NAME = "checkpoint-{:09d}.safetensors"
_PATTERN = re.compile(r"checkpoint-(\d+)\.safetensors$")


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
    path = os.path.join(folder, _NAME.format(int(trainer.step.numpy())))
    sealed.write(path, tensors, extra)
    for old in checkpoints(folder)[:-keep]:
        os.remove(old)
    return path


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
    tensors, extra = sealed.read(path)
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
