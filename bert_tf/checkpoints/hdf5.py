"""Reads and writes plain HDF5, as of Keras and bilm-tf: uncompressed arrays in groups. In reading,
h5py finds the arrays; their bytes are taken from memory, so that no link is followed, no other file
is opened, and no filter runs, which could be a plug-in."""

import io
import math
from collections.abc import Iterable

import h5py
import numpy as np

from bert_tf.checkpoints.rules import Tensor
from bert_tf.errors import InputError

_DTYPES = ("<f2", "<f4", "<f8", "<i4", "<i8")


def tensors(data: bytes, source: str) -> dict[str, Tensor]:
    """Returns an HDF5 file's `Tensor`s by their paths; InputError, which names `source`, if it is
    damaged, or more than plain arrays in groups."""
    by_path, links = {}, []

    def add(path, item):
        if item.shape is None:
            raise ValueError(f"{path} has no values")
        shape, dtype, size = item.shape, item.dtype, math.prod(item.shape)
        if dtype.str not in _DTYPES:
            by_path[path] = Tensor(path, shape, "another type", None)
            return
        offset = item.get_offset() if size else 0
        if offset is None:
            raise ValueError(f"{path} is compressed, outside the file, or not in one piece")
        array = np.frombuffer(data, dtype, size, offset) if size else np.empty(0, dtype)
        by_path[path] = Tensor(path, shape, dtype.name, lambda: array.reshape(shape))

    try:
        # Its identifiers: h5py's groups and data sets take three times as long to make.
        with h5py.File(io.BytesIO(data)) as file:
            file.id.links.visit(lambda name, link: links.append((name, link.type)), info=True)
            for name, kind in links:
                if kind != h5py.h5l.TYPE_HARD:
                    raise ValueError(f"{name.decode()} is a link")
                item = h5py.h5o.open(file.id, name)
                if isinstance(item, h5py.h5d.DatasetID):
                    add(name.decode(), item)
    except Exception as error:      # as the damage has it
        raise InputError(f"{source}: can't be read as the HDF5 of Keras ({error}); copy the file "
                         "again, or save the model again.") from error
    return by_path


def write(path: str, arrays: Iterable[tuple[str, np.ndarray]]) -> None:
    """Writes arrays with their paths. h5py gets memory, since a full disk would crash it."""
    data = io.BytesIO()
    with h5py.File(data, "w") as file:
        for name, array in arrays:
            file[name] = array
    with open(path, "wb") as file:
        file.write(data.getbuffer())
