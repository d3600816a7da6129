"""TFRecord files and the `tf.train.Example` messages in them, without TensorFlow.

A record is: length uint64, masked CRC32C of the length uint32, data, masked CRC32C of the data
uint32, all little-endian (TensorFlow `core/lib/io/record_writer.h`).
"""

import gzip
import struct

import google_crc32c
import numpy as np

from bert_tf.errors import InputError


def _masked_crc(data):
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(message):
    """The bytes of one record."""
    length = struct.pack("<Q", len(message))
    return b"".join((length, struct.pack("<I", _masked_crc(length)), message,
                     struct.pack("<I", _masked_crc(message))))


def is_gzip(path):
    """Whether a file is compressed, by its first bytes."""
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def read_records(path, check=True):
    """Yields the messages of a TFRecord file, plain or gzip.

    Args:
        check: verify the data's checksum too; the framing is always verified.

    Raises:
        InputError: a truncated or damaged record; names file and record (counted from 0).
    """
    number = 0
    with (gzip.open if is_gzip(path) else open)(path, "rb") as file:
        try:
            while head := file.read(12):
                if len(head) < 12:
                    raise InputError(f"{path}: record {number} is truncated; write the file again.")
                length, crc = struct.unpack("<QI", head)
                if crc != _masked_crc(head[:8]):
                    raise InputError(f"{path}: record {number} is damaged (checksum of its length) "
                                     "or this is not a TFRecord file; write the file again.")
                message, foot = file.read(length), file.read(4)
                if len(message) < length or len(foot) < 4:
                    raise InputError(f"{path}: record {number} is truncated; write the file again.")
                if check and struct.unpack("<I", foot)[0] != _masked_crc(message):
                    raise InputError(f"{path}: record {number} is damaged (checksum of its data); "
                                     "write the file again.")
                yield message
                number += 1
        except (EOFError, gzip.BadGzipFile, OSError) as error:
            raise InputError(f"{path}: can't be read after record {number - 1} ({error}); "
                             "write the file again.") from error


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _entry(name, length, is_float):
    """What stands before the `length` bytes of packed values of a feature.

    Message nesting: Features.feature (map entry) > Feature > Int64List or FloatList > packed values.
    """
    key = name.encode()
    values = b"\x0a" + _varint(length)
    size = len(values) + length
    feature = (b"\x12" if is_float else b"\x1a") + _varint(size) + values
    size = len(feature) + length
    entry = b"\x0a" + _varint(len(key)) + key + b"\x12" + _varint(size) + feature
    return b"\x0a" + _varint(len(entry) + length) + entry


def _packed_rows(matrix):
    """Each row of a non-negative int matrix (below 2**28) as packed varints: list of bytes."""
    groups = 1 + sum(int(matrix.max(initial=0)) >> bits > 0 for bits in (7, 14, 21))
    digits = np.stack([matrix >> (7 * g) & 127 for g in range(groups)], 2).astype(np.uint8)
    more = np.stack([matrix >> (7 * (g + 1)) > 0 for g in range(groups)], 2)
    digits |= more.astype(np.uint8) << 7
    kept = np.concatenate([np.ones((*matrix.shape, 1), bool), more[:, :, :-1]], 2)
    data = digits[kept].tobytes()
    ends = np.cumsum(kept.sum((1, 2))).tolist()
    return [data[start:end] for start, end in zip([0, *ends], ends)]


def serialize_examples(features):
    """Serialised `tf.train.Example` messages.

    Args:
        features: dict of name -> array [B, length]: bool or non-negative int (stored as int64
            lists), or float32.

    Returns:
        list of B bytes.
    """
    rows = len(next(iter(features.values())))
    fixed, variable = [], []    # features of one size in all rows stand together, as one matrix
    for name, matrix in features.items():
        if matrix.dtype == np.float32:
            body = np.ascontiguousarray(matrix, "<f4").view(np.uint8).reshape(rows, -1)
        elif matrix.dtype == bool or matrix.max(initial=0) < 128:
            body = matrix.astype(np.uint8)
        else:
            heads = {}
            column = []
            for data in _packed_rows(matrix):
                head = heads.get(len(data))
                if head is None:
                    head = heads[len(data)] = _entry(name, len(data), False)
                column.append(head + data)
            variable.append(column)
            continue
        head = np.frombuffer(_entry(name, body.shape[1], matrix.dtype == np.float32), np.uint8)
        fixed += [np.broadcast_to(head, (rows, len(head))), body]
    if fixed:
        block = np.concatenate(fixed, 1)
        width, data = block.shape[1], block.tobytes()
        variable.append([data[i:i + width] for i in range(0, rows * width, width)])
    messages = map(b"".join, zip(*variable))
    return [b"\x0a" + _varint(len(message)) + message for message in messages]
