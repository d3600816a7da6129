"""Reads the plain part of HDF5 that Keras and bilm-tf write: uncompressed arrays in groups. h5py
finds the arrays; their bytes are taken from memory, so that no link is followed, no other file is
opened, and no filter runs, which could be a plug-in."""

import io

import h5py
import numpy as np

from bert_tf.checkpoints.rules import Tensor
from bert_tf.errors import InputError

_DTYPES = ("<f2", "<f4", "<f8", "<i4", "<i8")


def tensors(data: bytes, source: str) -> dict[str, Tensor]:
    """Returns an HDF5 file's `Tensor`s by their paths; InputError, which names `source`, if it is
    damaged, or more than plain arrays in groups."""
    by_path = {}

    def add(path, item):
        if not isinstance(item, h5py.Dataset):
            return
        shape, dtype = item.shape, item.dtype
        if dtype.str not in _DTYPES:
            by_path[path] = Tensor(path, shape, "another type", None)
            return
        offset = item.id.get_offset() if item.size else 0
        if offset is None:
            raise ValueError(f"{path} is compressed, outside the file, or not in one piece")
        array = np.frombuffer(data, dtype, item.size, offset) if item.size else np.empty(0, dtype)
        by_path[path] = Tensor(path, shape, dtype.name, lambda: array.reshape(shape))

    def check(path, link):
        if not isinstance(link, h5py.HardLink):
            raise ValueError(f"{path} is a link")

    try:
        with h5py.File(io.BytesIO(data)) as file:
            file.visititems_links(check)
            file.visititems(add)
    except Exception as error:      # as the damage has it
        raise InputError(f"{source}: can't be read as the HDF5 of Keras ({error}).") from error
    return by_path
