"""Reads the plain part of HDF5 that Keras writes, without HDF5's library.

A file can make that library crash or hang, and the library follows links into other files. Here
every length and address is checked before use, and only groups and contiguous arrays are read.
Format: "HDF5 File Format Specification Version 3.0", superblock version 0.
"""

import math
import struct

import numpy as np

from bert_tf.checkpoints.rules import Tensor
from bert_tf.errors import InputError

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_DATASPACE, _DATATYPE, _EXTERNAL, _LAYOUT, _FILTERS, _CONTINUATION, _GROUP = 1, 3, 7, 8, 11, 16, 17
_LINKS = (2, 6)     # of groups in a newer style
# Little-endian IEEE numbers and whole numbers, by their descriptions.
_DTYPES = {bytes.fromhex(description): name for name, description in (
    ("float16", "11200f00 02000000 00001000 0a05000a 0f000000"),
    ("float32", "11201f00 04000000 00002000 17080017 7f000000"),
    ("float64", "11203f00 08000000 00004000 340b0034 ff030000"),
    ("int32", "10080000 04000000 00002000"),
    ("int64", "10080000 08000000 00004000"))}
# Depth of nested groups, and length of a name; Keras needs about half.
_DEEPEST, _LONGEST_NAME = 16, 100


class _File:
    """Walks through a file in memory; every object is visited once, so no file takes long."""

    def __init__(self, data):
        self._data = memoryview(data)
        self._visited = set()

    def _take(self, at, size):
        if size > len(self._data) - at:
            raise ValueError("an address or a length leads out of the file")
        return self._data[at:at + size]

    def _unpack(self, form, at):
        return struct.unpack("<" + form, self._take(at, struct.calcsize("<" + form)))

    def _visit(self, at, signature=b""):
        if at in self._visited:
            raise ValueError("an object is named twice")
        self._visited.add(at)
        if self._take(at, len(signature)) != signature:
            raise ValueError(f"there is no {signature.decode()} where one should be")

    def tensors(self):
        """Yields (path, shape, dtype, array) of datasets; the last two are None if not numeric."""
        self._visit(0, _SIGNATURE)
        version, size_of_offsets, size_of_lengths = self._unpack("B4xBB", 8)
        if (version, size_of_offsets, size_of_lengths) != (0, 8, 8):
            raise ValueError("it is of another version than Keras writes")
        return self._object("", self._unpack("Q", 64)[0], 0)

    def _messages(self, at):
        """Yields (type, content) of the messages of an object's header."""
        self._visit(at)
        version, count, size = self._unpack("BxH4xI", at)
        if version != 1:
            raise ValueError("an object's header is of another version than Keras writes")
        blocks = [(at + 16, size)]
        while blocks:
            at, size = blocks.pop()
            end = at + len(self._take(at, size))
            while count and at + 8 <= end:
                kind, size = self._unpack("HH", at)
                content, count = bytes(self._take(at + 8, size)), count - 1
                if kind == _CONTINUATION:
                    blocks.append(struct.unpack("<QQ", content[:16]))
                yield kind, content
                at += 8 + size

    def _object(self, path, at, depth):
        messages = dict(self._messages(at))
        if depth > _DEEPEST or any(kind in messages for kind in (_EXTERNAL, _FILTERS, *_LINKS)):
            raise ValueError(f"{path or 'its root'} is compressed, linked or outside the file")
        if _GROUP in messages:
            tree, heap = struct.unpack("<QQ", messages[_GROUP])
            for name, address in self._links(tree, self._heap(heap)):
                yield from self._object(f"{path}/{name}" if path else name, address, depth + 1)
        elif _LAYOUT in messages:
            yield path, *self._dataset(path, messages)

    def _heap(self, at):
        self._visit(at, b"HEAP")
        size, _, start = self._unpack("QQQ", at + 8)
        return self._take(start, size)

    def _links(self, at, heap):
        """Yields (name, address) of a group's members, through its tree of nodes."""
        nodes = [at]
        while nodes:
            at = nodes.pop()
            self._visit(at, b"TREE")
            level, used = self._unpack("xBH", at + 4)
            children = self._unpack("8x" + "Q8x" * used, at + 24)
            if level:
                nodes += reversed(children)
                continue
            for child in children:
                yield from self._symbols(child, heap)

    def _symbols(self, at, heap):
        self._visit(at, b"SNOD")
        for i in range(self._unpack("H", at + 6)[0]):
            name, address, kind = self._unpack("QQI", at + 8 + 40 * i)
            if kind == 2:
                raise ValueError("it holds a link")
            text = bytes(heap[name:name + _LONGEST_NAME]).split(b"\0")[0].decode()
            yield text, address

    def _dataset(self, path, messages):
        version, rank = messages[_DATASPACE][:2]
        start = {1: 8, 2: 4}.get(version, len(messages[_DATASPACE]))
        shape = struct.unpack_from(f"<{rank}Q", messages[_DATASPACE], start)
        described = messages[_DATATYPE]
        name = next((dtype for prefix, dtype in _DTYPES.items() if described.startswith(prefix)),
                    None)
        if name is None:
            return shape, None, None
        if messages[_LAYOUT][:2] != b"\3\1":
            raise ValueError(f"{path} doesn't lie in one piece")
        address, size = struct.unpack_from("<QQ", messages[_LAYOUT], 2)
        dtype = np.dtype(name)
        if math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f"{path} has another size than its shape")
        if not size:        # it has no place in the file
            return shape, name, np.zeros(shape, dtype)
        return shape, name, np.frombuffer(self._take(address, size), dtype).reshape(shape)


def tensors(data: bytes, source: str) -> dict[str, Tensor]:
    """Returns an HDF5 file's `Tensor`s by their paths. `source` names it in errors.

    Raises:
        InputError: it is damaged, or more than plain arrays in groups.
    """
    try:
        return {path: Tensor(path, shape, dtype or "another type", lambda array=array: array)
                for path, shape, dtype, array in _File(data).tensors()}
    except (ValueError, struct.error, KeyError) as error:
        raise InputError(f"{source}: can't be read as the HDF5 of Keras ({error}).") from error
