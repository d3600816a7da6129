"""Reads TensorFlow's checkpoints (`*.index`, `*.data-?????-of-?????`), each length checked before
use: its own reader aborted at 605 of 3,000 indices with wrong numbers and right checksums. The
index is a table of blocks, as in LevelDB, of protocol buffers with the place of each tensor."""

import functools
import os
import re
import struct

import ml_dtypes
import numpy as np

from bert_tf.checkpoints.rules import Tensor
from bert_tf.errors import InputError
from bert_tf.files import file_size, is_file, is_folder, list_folder, open_file
from bert_tf.protobuf import fields, masked_crc, read_varint

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER = 48
# tensorflow/core/framework/types.proto
_DTYPES = {1: np.dtype("float32"), 2: np.dtype("float64"), 3: np.dtype("int32"),
           9: np.dtype("int64"), 14: np.dtype(ml_dtypes.bfloat16), 19: np.dtype("float16")}
_STRING = 7
# The tensor that marks a checkpoint of objects (TensorFlow 2).
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# All names together; each may repeat the one before at the cost of three bytes.
_LONGEST_NAMES = 1 << 26


def _bytes(data, at, size):
    if size > len(data) - at:
        raise ValueError("a length is more than what follows")
    return data[at:at + size], at + size


def _message(data):
    """Parses a protocol buffer into {field number: list of int or bytes}."""
    parsed = {}
    for number, _, value in fields(data):
        parsed.setdefault(number, []).append(value)
    return parsed


def _field(message, number, kind=int):
    """Returns the last value of a field; 0 or b"" if it is absent, as in protocol buffers."""
    value = message.get(number, [kind()])[-1]
    if not isinstance(value, kind):
        raise ValueError("a field has another type")
    return value


def _block(data, offset, size):
    """Yields the (key, value) of a block; keys omit their common prefix with the key before."""
    block, end = _bytes(data, min(offset, len(data)), size)
    tail, _ = _bytes(data, end, 5)
    if struct.unpack("<I", tail[1:])[0] != masked_crc(block + tail[:1]):
        raise ValueError("a checksum is wrong")
    if tail[0]:
        raise ValueError("it is compressed, which TensorFlow never does")
    restarts = struct.unpack("<I", block[-4:])[0] if size >= 4 else size
    content = block[:max(0, size - 4 * (1 + restarts))]
    key, at = b"", 0
    while at < len(content):
        shared, at = read_varint(content, at)
        added, at = read_varint(content, at)
        length, at = read_varint(content, at)
        tail, at = _bytes(content, at, added)
        value, at = _bytes(content, at, length)
        key = key[:shared] + tail
        yield key, value


def _entries(data):
    """Yields the (key, value) of a table; blocks follow each other, so none is read twice."""
    if len(data) < _FOOTER or data[-8:] != _MAGIC:
        raise ValueError("it doesn't end as an index does")
    footer, at = data[-_FOOTER:], 0
    for _ in range(2):      # the first pair is the block of metadata, which holds nothing
        offset, at = read_varint(footer, at)
        size, at = read_varint(footer, at)
    end = names = 0
    for _, handle in _block(data, offset, size):
        start, at = read_varint(handle, 0)
        length, _ = read_varint(handle, at)
        if start < end:
            raise ValueError("its blocks overlap")
        end = start + length
        for key, value in _block(data, start, length):
            names += len(key)
            if names > _LONGEST_NAMES:
                raise ValueError("its names are too long")
            yield key, value


def _read(path, offset, size, crc, dtype, shape):
    with open_file(path, "rb") as file:
        file.seek(offset)
        data = file.read(size)
    if len(data) != size or masked_crc(data) != crc:
        raise InputError(f"{path}: can't be read as a checkpoint (a checksum is wrong); download "
                         "or copy the file again.")
    return np.frombuffer(data, dtype).reshape(shape)


def _tensor(prefix, shards, name, value):
    """Returns the `Tensor` that an index entry describes."""
    entry = _message(value)
    # The sizes in a TensorShapeProto; a negative one is huge, and so never fits.
    sizes = _message(_field(entry, 2, bytes)).get(2, [])
    shape = tuple(_field(_message(_field({0: [size]}, 0, bytes)), 1) for size in sizes)
    kind = _field(entry, 1)
    if 7 in entry:
        raise ValueError(f"{name} is cut in slices")
    if kind not in _DTYPES:
        return Tensor(name, shape, "string" if kind == _STRING else f"type {kind}", None)
    dtype, shard, offset, size = _DTYPES[kind], *(_field(entry, n) for n in (3, 4, 5))
    crc = int.from_bytes(_field(entry, 6, bytes), "little")
    path = f"{prefix}.data-{shard:05d}-of-{shards:05d}"
    held = file_size(path) if is_file(path) else 0
    promised = functools.reduce(lambda product, n: product * n, shape, dtype.itemsize)
    if promised != size or offset + size > held:
        raise ValueError(f"{name} is to have {promised} bytes, which {path} doesn't hold")
    return Tensor(name, shape, dtype.name,
                  functools.partial(_read, path, offset, size, crc, dtype, shape))


def tensors(prefix: str) -> dict[str, Tensor]:
    """Returns the checkpoint's tensors by name, in the order of their names."""
    try:
        with open_file(f"{prefix}.index", "rb") as file:
            entries = dict(_entries(file.read()))
        header = _message(entries.pop(b"", b""))
        shards, byte_order = _field(header, 1), _field(header, 2)
        if not 0 < shards < 100_000 or byte_order:
            raise ValueError("its header is wrong")
        # The name of a slice begins with 0; the tensor that is cut has an entry too.
        return {key.decode(): _tensor(prefix, shards, key.decode(), value)
                for key, value in entries.items() if not key.startswith(b"\0")}
    except InputError:      # of a store; a ValueError too
        raise
    except (ValueError, OSError, struct.error) as error:
        raise InputError(f"{prefix}: can't be read as a checkpoint ({error}); copy its files "
                         "again.") from error


def find(path: str) -> str | None:
    """The prefix of a TensorFlow checkpoint at a folder, a prefix or an index file, or None. In a
    folder the only index file counts, not the file `checkpoint`, which often names another
    machine's path; InputError for several."""
    prefix = path.removesuffix(".index")
    if is_file(f"{prefix}.index"):
        return prefix
    if not is_folder(path):
        return None
    names = sorted(name for name in list_folder(path) if name.endswith(".index"))
    if len(names) > 1:
        raise InputError(f"{path} holds several checkpoints ({', '.join(names)}); name one of "
                         f"them{_named_in_state(path, names)}.")
    return os.path.join(path, names[0].removesuffix(".index")) if names else None


def _named_in_state(folder, names):
    """The end of a sentence on the one of `names` that the file `checkpoint` names, or ""."""
    path = os.path.join(folder, "checkpoint")
    if not is_file(path):
        return ""
    with open_file(path, "rt", encoding="utf-8", errors="replace") as file:
        named = re.search(r'^model_checkpoint_path: "(.*)"', file.read(), re.M)
    base = re.split(r"[/\\\\]", named[1])[-1] if named else ""
    if f"{base}.index" not in names:
        return ""
    return f", such as {os.path.join(folder, base)}, which the file {path} names as the newest"
