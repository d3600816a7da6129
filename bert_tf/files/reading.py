"""Files opened for reading, plain or packed, local, in a store, or a pipe; JSON and its shape.

Libraries that open files by name get copies of remote files on this machine's disk, in
BERT_TF_STAGE_FOLDER. A copy's name has the version of the file. Copies beyond BERT_TF_STAGE_BYTES
go, the least recently used first.
"""

import atexit
import bz2
import collections.abc
import contextlib
import dataclasses
import gzip
import hashlib
import io
import json
import lzma
import os
import posixpath
import re
import shutil
import stat
import tempfile
import time
import typing
import zlib
from collections.abc import Callable
from typing import Any

from bert_tf.errors import InputError, from_extra, warn
from bert_tf.files.places import (
    file_size,
    files_under,
    identity,
    is_file,
    is_folder,
    is_remote,
    reaching,
    scheme_of,
    stage_folder,
)

# The name of standard input, or output, in the place of a file's.
STANDARD = "-"
_STANDARD_NAMES = (STANDARD, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
# Flags that name files to read, which may be pipes. Other flags may name a pipe to write to.
READ_FLAGS = re.compile("(?:.*_)?(?:input|train|dev|test|predict|transfer|vocab|config)_file")
# Files with the bytes of pipes, which `as_file` made: {name of the pipe: name of the file}.
_pipes: dict[str, str] = {}
# Errors of reading a damaged file, plain or packed.
READ_ERRORS = (EOFError, OSError, lzma.LZMAError, zlib.error)
_GZIP = b"\x1f\x8b\x08"
# The opener of a packed file, by its first bytes; bzip2's include the first bytes of a block.
_PACKINGS = {_GZIP: lambda file: gzip.GzipFile(fileobj=file), b"\xfd7zXZ\0": lzma.LZMAFile,
             b"\x28\xb5\x2f\xfd": lambda file: _open_zstd(file),
             **{b"BZh%d1AY&SY" % level: bz2.BZ2File for level in range(1, 10)}}
_LONGEST_MARK = max(map(len, _PACKINGS))
# Ends of the names of packed files.
_PACKED = (".gz", ".xz", ".bz2", ".zst")
# Tables by the endings of their names. The objects of "jsonl" are on a line each, or in a list.
TABLES = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
# What files that are no plain text hold beside their texts.
_MARKED = {**dict.fromkeys(TABLES, "names, numbers and quotes of a table"),
           **dict.fromkeys((".html", ".htm"), "tags of a web page")}
# Bytes that a request to a store asks for: a look at a file's head costs no more.
_BLOCK = 4 << 20
# Room for copies, in bytes, where BERT_TF_STAGE_BYTES does not say it.
_ROOM = 20 << 30
# Seconds that a copy is kept after its last use: another process may be about to open it.
_IN_USE = 600


def open_file(path: str | os.PathLike, mode: str = "r", **options: Any) -> Any:
    """Opens a file to read it, as `open` does; UTF-8 unless it is opened for bytes."""
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


def check_input(path: str, flag: str) -> None:
    if is_file(path):
        return
    if is_folder(path):
        raise InputError(f"--{flag}: {path} is a folder; name a file in it.")
    raise InputError(f"--{flag}: there is no file {path}; check the name.")


def read_json(path: str | os.PathLike, absent: dict | None = None) -> dict[str, Any]:
    """Reads the JSON object in the file `path`; an error names the line. `absent`: the values
    without a file; None: an InputError."""
    if absent is not None and not is_file(path):
        return absent
    try:
        with open_file(path, "rb") as file:
            return parse_json(file.read(), path)
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror}); name a file that you may "
                         "read.") from error


def parse_json(content: bytes, source: str | os.PathLike) -> dict[str, Any]:
    """Parses the JSON object in `content`; errors call it `source` and name the line."""
    try:
        value = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text; save it as UTF-8.") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{source}, line {error.lineno} is not valid JSON ({error.msg}); correct "
                         "it.") from error
    except (ValueError, RecursionError) as error:   # a number or a nesting without end
        raise InputError(f"{source} is not valid JSON ({error}); correct it.") from error
    if not isinstance(value, dict):
        raise InputError(f"{source} must hold a JSON object such as {{\"vocab_size\": 30522}}.")
    return value


class Values(typing.NamedTuple):
    """JSON values: in words for errors, and a check of one."""

    wanted: str
    fits: Callable[[Any], bool]


def check_shape(value: Any, shape: Any, place: str = "it") -> None:
    """Raises ValueError, with the name `place`, if a JSON value has another shape.

    A shape is a type or a tuple of types; `Values`; a list of the shape that all elements have; the
    shapes of an object's values by name, where names that end in "?" may be absent; or a dataclass,
    whose fields are all there and no others. A number of a type is from 0 to 2^40."""
    inner = "" if place == "it" else f"{place}."
    if isinstance(shape, Values):
        if not shape.fits(value):
            raise ValueError(f"{place} is {json.dumps(value)[:40]}; write {shape.wanted}")
    elif dataclasses.is_dataclass(shape):
        fields = {name: _shape_of(hint) for name, hint in typing.get_type_hints(shape).items()}
        check_shape(value, fields, place)
        if unknown := value.keys() - fields:
            raise ValueError(f"{place} has {', '.join(sorted(unknown))}")
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{place} is not a JSON object")
        for key, part in shape.items():
            name = key.removesuffix("?")
            if name in value:
                check_shape(value[name], part, inner + name)
            elif name == key:
                raise ValueError(f"{place} has no {name}")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise ValueError(f"{place} is not a list")
        for number, part in enumerate(value):
            check_shape(part, shape[0], f"{place}[{number}]")
    elif not isinstance(value, shape) or type(value) is bool is not shape or (
            type(value) in (int, float) and not 0 <= value < 1 << 40):
        raise ValueError(f"{place} is {str(value)[:40]}")


def _shape_of(hint):
    if typing.get_origin(hint) is tuple:
        return [_shape_of(typing.get_args(hint)[0])]
    if typing.get_origin(hint) is collections.abc.Mapping:
        return {}
    return (int, float) if hint is float else hint


def digest(*paths: str) -> str:
    """Returns the SHA-256 of the files' bytes, in their order, in hexadecimal."""
    digests = hashlib.sha256()
    for path in paths:
        with open_file(path, "rb") as file:
            digests.update(hashlib.file_digest(file, "sha256").digest())
    return digests.hexdigest()


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
    return file_size(path) >= len(_GZIP) and read_range(path, 0, len(_GZIP)) == _GZIP


def unpacked_name(path: str) -> str:
    """Returns the name of a file without the end that says how it is packed."""
    return path[:path.rindex(".")] if path.lower().endswith(_PACKED) else path


def ending(path: str) -> str:
    """Returns the ending of a name, in small letters and without that of a compressed file."""
    return os.path.splitext(unpacked_name(path))[1].lower()


def warn_of_tables(paths: collections.abc.Iterable[str]) -> None:
    """Warns if a file, which is read as plain text, has the name of a table or of a web page."""
    if path := next((path for path in paths if ending(path) in _MARKED), ""):
        warn(f"{shown_name(path)} is read as plain text, with the {_MARKED[ending(path)]}; save "
             "its texts alone in a .txt file (bert-extract-text reads JSON lines).")


def is_packed(path: str) -> bool:
    with open_file(path, "rb") as file:
        return _packing(file.read(_LONGEST_MARK)) is not None


def _packing(head):
    return next((opened for mark, opened in _PACKINGS.items() if head.startswith(mark)), None)


def _open_zstd(file):
    pyarrow = from_extra("pyarrow", "corpora", "a Zstandard file (.zst)")
    packed = pyarrow.PythonFile(file, mode="r")
    return io.BufferedReader(pyarrow.CompressedInputStream(packed, "zstd"), 1 << 20)


def is_pipe(path: str) -> bool:
    """Returns whether a name is standard input, a pipe or a device, whose bytes come once."""
    if path == STANDARD:
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def as_file(path: str, default: str | None = None) -> str:
    """Returns the name of a file with the bytes of a pipe, which lasts as long as the process; or
    the name itself if it is not a pipe. A flag whose `default` is `STANDARD` can read standard
    input piece by piece; its value is then `STANDARD`."""
    if not isinstance(path, str) or not is_pipe(path):
        return path
    if path in _STANDARD_NAMES:
        path = STANDARD
        if default == STANDARD:
            return path
    if path not in _pipes:
        folder = tempfile.mkdtemp(prefix="pipe-", dir=stage_folder())
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        name = os.path.join(folder, "stdin" if path == STANDARD else os.path.basename(path))
        with _open_bytes(path) as file, open(name, "wb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
        _pipes[path] = name
    return _pipes[path]


def shown_name(path: str) -> str:
    path = next((pipe for pipe, name in _pipes.items() if name == path), path)
    return "standard input" if path == STANDARD else path


def _open_bytes(path):
    return open(0, "rb", closefd=False) if path == STANDARD else open_file(path, "rb")


@contextlib.contextmanager
def open_unpacked(path):
    """Opens a file or `STANDARD` input for bytes; unpacks gzip, xz, bzip2 and Zstandard."""
    try:
        with _open_bytes(path) as file:
            if isinstance(file, io.BytesIO):
                file = io.BufferedReader(file)
            if opened := _packing(file.peek(_LONGEST_MARK)[:_LONGEST_MARK]):
                file = opened(file)
            yield file
    except FileNotFoundError as error:
        raise InputError(f"there is no file {error.filename or path}; check the name.") from error
    except IsADirectoryError as error:
        raise InputError(f"{shown_name(path)} is a folder; name a file in it.") from error
    except READ_ERRORS as error:
        raise InputError(f"{shown_name(path)}: can't be read ({error}); if the file is damaged, "
                         "copy or download it again.") from error


def upload_place(path: str) -> str:
    """Returns the local name of a remote file that is written here before it is sent; the name of
    another file as it is."""
    if not is_remote(path):
        return os.fspath(path)
    named = hashlib.sha256(os.fspath(path).encode()).hexdigest()[:16]
    return os.path.join(stage_folder(), f"upload-{named}-{posixpath.basename(path)}")


def send(source: str, target: str) -> None:
    """Sends a local file to a store, where its name appears once all its bytes are there."""
    with reaching(target) as (store, name):
        store.put_file(source, name)


def staged(path: str) -> str:
    """Returns the name of a local file with a remote one's content; the name itself if it is local.
    OSError if the file is absent; InputError if the store can't be reached."""
    if not is_remote(path):
        return path

    def fetch(aside):
        with reaching(path) as (store, name):
            _make_room(store.info(name)["size"])
            store.get_file(name, aside)

    return _copied(path, identity(path), fetch)


def tensorflow_name(path: str) -> str:
    """The name that TensorFlow opens a file by: it reads gs:// itself, else local files."""
    return path if path.startswith("gs://") else staged(path)


def _copied(path, version, write):
    """The name of a copy of a file in this version, which `write` makes if there is none."""
    version = hashlib.sha256(f"{path}\n{version}".encode()).hexdigest()
    place = os.path.join(stage_folder(), "files", version, posixpath.basename(path))
    if not os.path.isfile(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=os.path.dirname(place))
        os.close(handle)
        try:
            write(aside)
            os.replace(aside, place)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(aside)
    os.utime(place)
    return place


def unpacked_size(path: str, version: str) -> int:
    """The size of a packed file when unpacked, in bytes; for `version` see `identity`."""
    return os.path.getsize(_unpacked(path, version))


def unpacked_range(path: str, version: str, start: int, end: int) -> bytes:
    """Returns bytes of a packed file by their places when it is unpacked, into a copy."""
    return read_range(_unpacked(path, version), start, end)


def _unpacked(path, version):
    def unpack(aside):
        with open(aside, "wb") as copy, open_unpacked(path) as file:
            while block := file.read(1 << 20):
                try:
                    copy.write(block)
                except OSError as error:
                    raise InputError(
                        f"{path} can't be unpacked into {stage_folder()} ({error.strerror}); make "
                        "room, or set BERT_TF_STAGE_FOLDER to another folder.") from error
        _make_room(0)

    return _copied(path, f"{version}\nunpacked", unpack)


def _make_room(size):
    """Removes the copies used least recently, so that `size` bytes more stay within the room."""
    room = os.environ.get("BERT_TF_STAGE_BYTES", str(_ROOM))
    if not room.isdecimal():
        raise InputError(f"BERT_TF_STAGE_BYTES is {room!r}; it must be a number of bytes.")
    copies = []
    for name in files_under(os.path.join(stage_folder(), "files")):
        with contextlib.suppress(FileNotFoundError):    # another process removes it too
            copies.append((os.path.getmtime(name), os.path.getsize(name), name))
    size += sum(copy[1] for copy in copies)
    for used, freed, name in sorted(copies):
        if size <= int(room) or used > time.time() - _IN_USE:
            break
        with contextlib.suppress(OSError):
            os.remove(name)
            os.rmdir(os.path.dirname(name))
        size -= freed
