"""Protocol buffers, and checksums as TensorFlow's files have them, without TensorFlow. Messages may
be damaged: each length is checked before use."""

from collections.abc import Iterator

import google_crc32c
import numpy as np

# Sizes of the fields that hold a fixed number of bytes, by their types.
_FIXED = {1: 8, 5: 4}


def masked_crc(data: bytes) -> int:
    """Returns TensorFlow's CRC-32C of some bytes (core/lib/hash/crc32c.h)."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value: int) -> bytes:
    """Returns a non-negative number as a varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns the number that begins at a place, and the place after it; ValueError without one."""
    value = shift = 0
    try:
        while shift < 64:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, at
            shift += 7
    except IndexError:
        pass
    raise ValueError("a number has no end")


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yields the number of each field of a message, its wire type, and its value: int of type 0,
    else bytes; ValueError for anything else."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, at = read_varint(data, at)
        else:
            if kind == 2:
                size, at = read_varint(data, at)
            elif kind in _FIXED:
                size = _FIXED[kind]
            else:
                raise ValueError("a field has no known type")
            value, at = data[at:at + size], at + size
            if len(value) < size:
                raise ValueError("a field is cut short")
        yield key >> 3, kind, value


def unpack_ints(data: bytes) -> np.ndarray:
    """Returns the values of packed varints, int64 [n]."""
    packed = np.frombuffer(data, np.uint8)
    last = packed < 128
    if last.all():      # each byte is a number
        return packed.astype(np.int64)
    ends = np.flatnonzero(last)
    if not last[-1]:
        raise ValueError("a number has no end")
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[:len(ends)]
    digit = np.arange(len(packed)) - np.repeat(starts, ends - starts + 1)
    if digit.max() > 9:
        raise ValueError("a number is too long")
    return np.add.reduceat((packed & 127).astype(np.uint64) << (7 * digit).astype(np.uint64),
                           starts).astype(np.int64)
