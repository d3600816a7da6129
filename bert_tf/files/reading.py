"""Files opened for reading, plain or packed, local or in a store."""

import contextlib
import gzip
import hashlib
import io
import os
import zlib
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files.places import file_size, is_remote, reaching, scheme_of

# The name of standard input, or output, in the place of a file's.
STANDARD = "-"
# Errors of reading a damaged file, plain or gzip.
READ_ERRORS = (EOFError, OSError, zlib.error)
_GZIP = b"\x1f\x8b\x08"
# Bytes that a request to a store asks for: a look at a file's head costs no more.
_BLOCK = 4 << 20


def open_file(path: str | os.PathLike, mode: str = "r", **options: Any) -> Any:
    """Opens a file to read it, as `open` does; UTF-8 unless it is opened for bytes.

    Files are written by `write_aside`.
    """
    if "b" not in mode:
        options.setdefault("encoding", "utf-8")
    if not is_remote(path):
        return open(path, mode, **options)
    with reaching(path) as (store, name):
        if scheme_of(path) == "memory":     # it gives all readers one file with one position
            file: Any = io.BytesIO(store.cat_file(name))
        else:
            file = io.BufferedReader(store.open(name, "rb", block_size=_BLOCK), 1 << 16)
    return file if "b" in mode else io.TextIOWrapper(file, **options)


def digest(*paths: str) -> str:
    """Returns the SHA-256 of the files' bytes, in their order, in hexadecimal."""
    found = hashlib.sha256()
    for path in paths:
        with open_file(path, "rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def read_range(path: str | os.PathLike, start: int, end: int) -> bytes:
    """Returns the bytes of a file from `start` to `end`, which it has; a store sends no others."""
    if start >= end:
        return b""
    if is_remote(path):
        with reaching(path) as (store, name):
            return store.cat_file(name, start=start, end=end)
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(end - start)


def is_gzip(path):
    """Returns whether a file is compressed, by its first bytes."""
    return file_size(path) >= len(_GZIP) and read_range(path, 0, len(_GZIP)) == _GZIP


def shown_name(path: str) -> str:
    """Returns the name of an input file in messages."""
    return "standard input" if path == STANDARD else path


@contextlib.contextmanager
def open_unpacked(path):
    """Opens a file or `STANDARD` input, unpacked if it is gzip, to read its bytes."""
    try:
        with open(0, "rb", closefd=False) if path == STANDARD else open_file(path, "rb") as file:
            if isinstance(file, io.BytesIO):
                file = io.BufferedReader(file)
            yield gzip.GzipFile(fileobj=file) if file.peek(3)[:3] == _GZIP else file
    except READ_ERRORS as error:
        raise InputError(f"{shown_name(path)}: can't be read ({error}); is it damaged?") from error
