"""TFRecord files and the `tf.train.Example` messages in them, without TensorFlow. A record is:
length uint64, masked CRC32C of the length uint32, data, masked CRC32C of the data uint32, all
little-endian (TensorFlow `core/lib/io/record_writer.h`)."""

import functools
import gzip
import itertools
import mmap
import struct

import google_crc32c
import numpy as np

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.protobuf import fields, masked_crc, unpack_ints, varint


@functools.lru_cache(1024)      # lengths repeat
def _head(length):
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", masked_crc(packed))


def frame(message):
    return b"".join((_head(len(message)), message, struct.pack("<I", masked_crc(message))))


def read_records(path):
    """Yields the messages of a TFRecord file, plain or gzip; InputError names the file and the
    truncated or damaged record (counted from 0)."""
    number = 0
    with files.open_unpacked(path) as file:
        try:
            while head := file.read(12):
                if len(head) < 12:
                    raise InputError(_truncated(path, number))
                length, crc = struct.unpack("<QI", head)
                if crc != masked_crc(head[:8]):
                    raise InputError(_damaged(path, number, "length"))
                message, foot = file.read(length), file.read(4)
                if len(message) < length or len(foot) < 4:
                    raise InputError(_truncated(path, number))
                if struct.unpack("<I", foot)[0] != masked_crc(message):
                    raise InputError(_damaged(path, number, "data"))
                yield message
                number += 1
        except files.READ_ERRORS as error:
            raise InputError(f"{path}: record {number} can't be read ({error}); write the file "
                             "again.") from error


def count_records(path):
    """Returns the number of records of a TFRecord file; the data of a plain file is skipped, not
    read. InputError as by `read_records`, for what is read."""
    if files.is_gzip(path):
        return sum(1 for _ in read_records(path))
    number = offset = 0
    with files.open_file(files.staged(path), "rb") as file:
        size = files.file_size(path)
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        while offset < len(data):
            head = data[offset:offset + 12]
            if len(head) == 12:
                length, crc = struct.unpack("<QI", head)
                if crc != masked_crc(head[:8]):
                    raise InputError(_damaged(path, number, "length"))
                offset += length + 16
            if len(head) < 12 or offset > len(data):
                raise InputError(_truncated(path, number))
            number += 1
    return number


def _truncated(path, number):
    return f"{path}: record {number} is truncated; write the file again."


def _damaged(path, number, part):
    return (f"{path}: record {number} is damaged (checksum of its {part}), or this is not a "
            "TFRecord file; write the file again.")


def _entry(name, length, is_float):
    """Returns the bytes before the `length` bytes of packed values of a feature.

    Messages nest so: Features.feature (map entry) > Feature > Int64List or FloatList > values.
    """
    key = name.encode()
    values = b"\x0a" + varint(length)
    size = len(values) + length
    feature = (b"\x12" if is_float else b"\x1a") + varint(size) + values
    size = len(feature) + length
    entry = b"\x0a" + varint(len(key)) + key + b"\x12" + varint(size) + feature
    return b"\x0a" + varint(len(entry) + length) + entry


def _packed_rows(matrix):
    """Each row of a non-negative int matrix (below 2**35) as packed varints: list of bytes."""
    largest = int(matrix.max(initial=0))
    numbers, width = matrix, 4 if largest < 1 << 28 else 8
    if is_table := largest < matrix.size:       # each number is packed once
        numbers = np.arange(largest + 1)
    digits, present = np.zeros((2, *numbers.shape, width), np.uint8)
    for group in range(-(-largest.bit_length() // 7) or 1):
        rest = numbers >> 7 * group
        digits[..., group] = rest & 127 | (rest > 127) << 7
        present[..., group] = (rest > 0) | (group == 0)
    if is_table:
        digits, present = (table.view(f"u{width}")[:, 0].take(matrix).view(np.uint8).reshape(
            *matrix.shape, width) for table in (digits, present))
    present = present.view(bool)
    data = digits[present].tobytes()
    ends = np.cumsum(present.sum((1, 2))).tolist()
    return [data[start:end] for start, end in zip([0, *ends], ends)]


def _wide(*parts):
    return {name for features in parts for name, matrix in features.items()
            if matrix.dtype not in (bool, np.float32) and matrix.max(initial=0) > 127}


def serialize_examples(features, wide=None):
    """Returns the serialised `tf.train.Example` messages, B bytes, of features by name, [B,
    length]: bool or non-negative int (stored as int64 lists), or float32. `wide` names those that
    come first in the messages; None: those with numbers of several bytes."""
    wide = _wide(features) if wide is None else wide
    rows = len(next(iter(features.values())))
    fixed, variable = [], []    # features of one size in all rows stand together, as one matrix
    for name, matrix in features.items():
        if matrix.dtype == np.float32:
            body = np.ascontiguousarray(matrix, "<f4").view(np.uint8).reshape(rows, -1)
        elif name not in wide:
            body = matrix.astype(np.uint8)
        else:
            rows_of_bytes = _packed_rows(matrix)
            heads = {size: _entry(name, size, False) for size in set(map(len, rows_of_bytes))}
            variable.append([heads[len(data)] + data for data in rows_of_bytes])
            continue
        head = np.frombuffer(_entry(name, body.shape[1], matrix.dtype == np.float32), np.uint8)
        fixed += [np.broadcast_to(head, (rows, len(head))), body]
    if fixed:
        block = np.concatenate(fixed, 1)
        width, data = block.shape[1], block.tobytes()
        variable.append([data[i:i + width] for i in range(0, rows * width, width)])
    messages = map(b"".join, zip(*variable))
    return [b"\x0a" + varint(len(message)) + message for message in messages]


def parse_example(message):
    """Returns the features of one serialised `tf.train.Example`: name -> int64 [n], float32 [n] or
    bytes. ValueError if it is none."""
    try:
        parsed = {}
        for _, _, example in fields(message):
            for _, _, entry in fields(example):
                entry = {number: value for number, _, value in fields(entry)}
                for kind, _, values in fields(entry[2]):
                    parsed[entry[1].decode()] = _values(kind, values)
        return parsed
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"is not a tf.train.Example ({error}).") from error


def _values(kind, values):
    """The content of a BytesList (1), FloatList (2) or Int64List (3), packed or one by one."""
    parts = [varint(value) if wire == 0 else value for _, wire, value in fields(values)]
    if kind == 1:
        return parts
    return (np.frombuffer(b"".join(parts), "<f4") if kind == 2 else unpack_ints(b"".join(parts)))


class _Digested:
    def __init__(self, file, digest):
        self._file, self._digest, self.flush = file, digest, file.flush

    def write(self, data):
        self._digest.update(bytes(data))
        return self._file.write(data)


def write_shard(path, folder, blocks, together=1):
    """Writes one TFRecord file, gzip if its name ends in .gz, of `blocks`, dicts as
    `serialize_examples` takes; the same records, the same bytes. The features of so many blocks
    `together` have one order. Returns its entry in the manifest: name (relative to `folder`),
    records, bytes, crc32c."""
    records = 0
    with files.write_aside(path, "wb") as file:
        digest = google_crc32c.Checksum()
        sink = _Digested(file, digest)
        # No name and no time in the gzip header.
        out = gzip.GzipFile("", "wb", 6, sink, 0) if path.endswith(".gz") else sink
        blocks = iter(blocks)
        while parts := list(itertools.islice(blocks, together)):
            wide = _wide(*parts)
            for features in parts:
                messages = serialize_examples(features, wide)
                out.write(b"".join(map(frame, messages)))
                records += len(messages)
        if out is not sink:
            out.close()
    return {"name": files.relative(path, folder), "records": records,
            "bytes": files.file_size(path), "crc32c": digest.digest().hex()}


def file_checksum(path: str) -> str:
    """The CRC32C of a file's bytes, in hexadecimal digits, as manifests hold it."""
    with files.open_file(path, "rb") as file:
        return checksum(file)


def checksum(file) -> str:
    digest = google_crc32c.Checksum()
    for _ in digest.consume(file, 1 << 20):
        pass
    return digest.digest().hex()
