"""Our own training checkpoints, which hold the weights under our names."""

import glob
import os
import re

from bert_tf.checkpoints import folders, safetensors_files, sealed
from bert_tf.checkpoints.rules import Format, Source

_FORMAT = Format(rows=None, ignored=((r"(optimizer|trainer)/.*|.*seed_generator_state", "state of the training"),))


def find(path):
    """The checkpoint file that `path` (the file, or a folder, of which the newest counts) stands
    for, or None.
    """
    files = [path]
    if os.path.isdir(path):
        files = sorted(glob.glob(os.path.join(glob.escape(path), "checkpoint-*.safetensors")))
    return next((file for file in reversed(files) if os.path.isfile(file)
                 and re.fullmatch(r"checkpoint-\d+\.safetensors", os.path.basename(file))), None)


def _our_name(name):
    """The name relative to the network."""
    return re.sub(r"^learner/(bert/)?", "", name)


def read(file, task=None):  # pylint: disable=unused-argument
    """The `Source` of a checkpoint.

    Raises:
        DamagedError: it is not as it was written.
    """
    sealed.verify(file)
    found = {_our_name(name): tensor
             for name, tensor in safetensors_files.tensors(file).items()}
    return Source(file, folders.read_config(file), found, _FORMAT,
                  folders.vocabulary_beside(file))
