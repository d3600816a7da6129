"""Training checkpoints: one safetensors file each, whole or absent, verified when read.

A checkpoint holds every variable of the Learner and of its optimizer under its path, and the state
of the Trainer. The file's metadata hold a checksum of each tensor and what the caller adds as JSON.
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


def _variables(trainer):
    """dict of every variable that training changes, by a name that is the same in every run."""
    named = {f"learner/{v.path}": v for v in trainer.learner.variables}
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
    """
    tensors = {name: np.array(variable.numpy()) for name, variable in _variables(trainer).items()}
    # One entry: safetensors writes several in any order, and equal states shall be equal files.
    metadata = {"bert_tf": json.dumps({
        "crc32c": {name: google_crc32c.value(np.ascontiguousarray(value).tobytes())
                   for name, value in tensors.items()},
        "extra": extra})}
    path = os.path.join(folder, _NAME.format(int(trainer.step.numpy())))
    with write_aside(path, "wb") as file:
        file.write(save(tensors, metadata))
    for old in checkpoints(folder)[:-keep]:
        os.remove(old)
    return path


def read_checkpoint(path):
    """The tensors and the extra value of a checkpoint.

    Raises:
        InputError: it is damaged or no checkpoint; names file and tensor.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            if "bert_tf" not in (file.metadata() or {}):
                raise InputError(f"{path} is no training checkpoint of bert_tf.")
            metadata = json.loads(file.metadata()["bert_tf"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged ({error}); remove it to go on from the one "
                         "before.") from error
    for name, value in tensors.items():
        if google_crc32c.value(value.tobytes()) != metadata["crc32c"].get(name):
            raise InputError(f"{path} is damaged: tensor {name} has another checksum than when it "
                             "was written; remove the file to go on from the one before.")
    return tensors, metadata["extra"]


def restore(path, trainer, weights_only=False):
    """Gives the trainer the state of a checkpoint: all of it, or nothing if anything is wrong.

    Args:
        path: the checkpoint.
        trainer: `Trainer`.
        weights_only: take the Learner's weights and leave optimizer and step as they are.

    Returns:
        What `save_checkpoint` was given as `extra`.

    Raises:
        InputError: it is damaged or does not fit the model; names the tensor.
    """
    tensors, extra = read_checkpoint(path)
    named = _variables(trainer)
    if weights_only:
        named = {name: v for name, v in named.items() if name.startswith("learner/")}
    for name, variable in named.items():
        if name not in tensors:
            raise InputError(f"{path} has no {name}: it is of another model or optimizer.")
        if tuple(tensors[name].shape) != tuple(variable.shape):
            raise InputError(f"{path}: {name} has shape {tensors[name].shape}, the model's has "
                             f"{tuple(variable.shape)}: check --bert_config_file.")
    for name, variable in named.items():
        variable.assign(tensors[name])
    return extra
