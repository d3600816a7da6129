"""Safetensors files with a checksum of all their bytes. The one entry of the metadata (safetensors
writes several in any order) has the checksum, which counts as zeros in itself, then JSON."""

import contextlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

import google_crc32c
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bert_tf.errors import InputError
from bert_tf.files import open_file, replace_aside, staged

_UNSEALED = b"0" * 8
# The bytes before the checksum, after the eight bytes of the header's length.
_BEFORE_SEAL = b'{"__metadata__":{"bert_tf":"'
_HEAD_SIZE = 8 + len(_BEFORE_SEAL)


class DamagedError(InputError):
    """A checksummed file has changed since it was written."""


def save(path: str, values: Mapping[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Writes arrays to a .safetensors file, without a copy of them in memory. The library writes
    the bytes of an array that is transposed, sliced or in Fortran's order as they lie in memory,
    which gives other numbers, and makes files that their owner alone can read."""
    with open(path, "wb") as file:
        mode = os.fstat(file.fileno()).st_mode
    # Not np.ascontiguousarray, which gives a single number a dimension.
    arrays = {name: np.asarray(value, order="C") for name, value in values.items()}
    try:
        save_file(arrays, path, metadata)
    except SafetensorError as error:
        if not (match := re.search(r"\(os error (\d+)\)", str(error))):
            raise
        raise OSError(int(match[1]), os.strerror(int(match[1])), str(path)) from error
    os.chmod(path, mode)


def write(path: str, tensors: dict[str, np.ndarray], extra: Any) -> None:
    """Writes NumPy arrays and a JSON value, whole or not at all."""
    with replace_aside(path) as aside:
        save(aside, tensors, {"bert_tf": _UNSEALED.decode() + json.dumps(extra)})
        with open(aside, "r+b") as file:
            seal = b"%08x" % _checksum(file, 0)
            file.seek(_HEAD_SIZE)
            file.write(seal)


def _checksum(file, crc):
    """The CRC of bytes with the CRC `crc`, and of the rest of a file after them."""
    while chunk := file.read(1 << 20):
        crc = google_crc32c.extend(crc, chunk)
    return crc


def verify(path: str) -> None:
    """Raises DamagedError if any byte of a checksummed file has changed."""
    try:
        with open_file(path, "rb") as file:
            head, seal = file.read(_HEAD_SIZE), file.read(len(_UNSEALED))
            crc = _checksum(file, google_crc32c.value(head + _UNSEALED))
    except OSError as error:
        raise DamagedError(f"{path} can't be read ({error.strerror}).") from error
    if head[8:] != _BEFORE_SEAL or seal != b"%08x" % crc:
        raise DamagedError(f"{path} is damaged, or bert_tf did not write it: its checksum is "
                           "wrong.")


def read(path: str) -> tuple[dict[str, np.ndarray], Any]:
    """Returns a checksummed file's tensors and JSON value, or raises DamagedError."""
    verify(path)
    with _opened(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}, _extra(file)


def read_extra(path: str) -> Any:
    """Returns a file's JSON value without a look at its tensors, or raises DamagedError."""
    with _opened(path) as file:
        return _extra(file)


@contextlib.contextmanager
def _opened(path):
    try:
        with safe_open(staged(path), framework="numpy") as file:
            yield file
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{path} can't be read ({error}).") from error


def _extra(file):
    return json.loads(file.metadata()["bert_tf"][len(_UNSEALED):])
