"""Files that are whole or absent: outputs are written aside and renamed."""

import contextlib
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import socket
import tempfile
import zlib
from collections.abc import Iterable, Iterator

import lazy_loader

from bert_tf.errors import InputError

filelock = lazy_loader.load("filelock")     # most commands lock nothing

# The name of standard input, or output, in the place of a file's.
STANDARD = "-"
# File of a job's flags in its folder; next to files, with a prefix and a dot.
FLAGFILE = "flags.txt"
# End of the name of a folder with a tokenizer's files, next to the records that it made.
TOKENIZER_ENDING = ".tokenizer"
# Errors of reading a damaged file, plain or gzip.
READ_ERRORS = (EOFError, OSError, zlib.error)
# Stands between the final name and the number of the process that writes the file.
_ASIDE = ".tmp-bert_tf-"
_GZIP = b"\x1f\x8b\x08"
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Flags that name files or folders.
PATH_FLAGS = re.compile(
    "(?:.*_)?(?:file|filelist|dir|checkpoint|path)|ensemble|eval_text|glove_embs|input|masked_lm|"
    "output|peer_python|picture|predecessor|student|teacher")
# Time for a stopped process to release its locks.
_LOCK_SECONDS = 1.0


def leftovers(path: str, ending: str = "") -> list[str]:
    """Lists the files or folders that killed processes left while they wrote `path` aside.

    Only names that this module gives count: a user's own `path.tmp-old` stays.
    """
    return [found for found in glob.glob(f"{glob.escape(str(path))}{_ASIDE}*{ending}")
            if found.removeprefix(f"{path}{_ASIDE}").removesuffix(ending).isdecimal()]


def _remove_leftovers(path, ending=""):
    """Removes what is left of `path`, but not what another living process is writing."""
    for leftover in leftovers(path, ending):
        process = int(leftover.removeprefix(f"{path}{_ASIDE}").removesuffix(ending))
        if process != os.getpid() and _is_alive(process):
            continue
        if os.path.isdir(leftover):
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with contextlib.suppress(FileNotFoundError):    # another process removes it too
                os.remove(leftover)


def _is_alive(process):
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


@contextlib.contextmanager
def replace_aside(path, ending=""):
    """Gives the name of a file to write; it becomes `path` only when the block ends without error.

    Args:
        ending: end of the temporary name, for libraries that look at it.
    """
    check_local([path])
    _remove_leftovers(path, ending)
    aside = f"{path}{_ASIDE}{os.getpid()}{ending}"
    try:
        yield aside
        # On disk before it is renamed: a crash leaves the old file or the new one.
        descriptor = os.open(aside, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        os.replace(aside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(aside)


@contextlib.contextmanager
def write_aside(path, mode="w", **open_options):
    """Opens `path` for writing; the final name appears when the block ends without an error."""
    if "b" not in mode:
        open_options.setdefault("encoding", "utf-8")
    with replace_aside(path) as aside, open(aside, mode, **open_options) as file:
        yield file


@contextlib.contextmanager
def folder_aside(path):
    """Gives the name of a folder to fill; it becomes `path` only when the block ends without error.

    Raises:
        InputError: `path` is there and isn't empty, or can't be written.
    """
    check_local([path])
    path = os.path.abspath(path)
    aside = f"{path}{_ASIDE}{os.getpid()}"
    if os.path.exists(path) and not (os.path.isdir(path) and not os.listdir(path)):
        raise InputError(f"{path} is there already and isn't an empty folder; name another.")
    _remove_leftovers(path)
    try:
        try:
            os.makedirs(aside)
        except OSError as error:
            raise InputError(f"{path} can't be written ({error.strerror}).") from error
        yield aside
        os.replace(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def announce_replacing(paths: Iterable[str]) -> None:
    """Prints which of the files are there and will be replaced, before the work begins."""
    there = [path for path in paths if os.path.lexists(path)]
    if there:
        print(f"{', '.join(there)} will be replaced.", flush=True)


def write_json(path, value):
    """Writes `value` as indented JSON, whole or not at all."""
    # A lone surrogate becomes its escape in JSON.
    with write_aside(path, errors="backslashreplace") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def digest(*paths: str) -> str:
    """Returns the SHA-256 of the files' bytes, in their order, in hexadecimal."""
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def is_gzip(path):
    """Returns whether a file is compressed, by its first bytes."""
    with open(path, "rb") as file:
        return file.read(3) == _GZIP


def shown_name(path: str) -> str:
    """Returns the name of an input file in messages."""
    return "standard input" if path == STANDARD else path


@contextlib.contextmanager
def open_unpacked(path):
    """Opens a file or `STANDARD` input, unpacked if it is gzip, to read its bytes."""
    is_file = path != STANDARD
    try:
        with open(path if is_file else 0, "rb", closefd=is_file) as file:
            yield gzip.GzipFile(fileobj=file) if file.peek(3)[:3] == _GZIP else file
    except READ_ERRORS as error:
        raise InputError(f"{shown_name(path)}: can't be read ({error}); is it damaged?") from error


def make_folder(path, flag):
    """Creates the folder `path` and checks that files can be written in it; an error names `flag`.
    """
    check_local([path], f"--{flag}: ")
    try:
        os.makedirs(path or ".", exist_ok=True)
        with tempfile.TemporaryFile(dir=path or "."):
            pass
    except OSError as error:
        raise InputError(f"--{flag}: can't write to {path!r} ({error.strerror}); "
                         "name a folder that you may write to.") from error


@contextlib.contextmanager
def locked(path: str, what: str) -> Iterator[None]:
    """Keeps other processes from working on the same folder, or on the same file, in the block.

    The lock is a hidden file: `.lock` in the folder `path`, or `.NAME.lock` next to the file
    `path`. It names the process that holds it, and disappears when the block ends. A process that
    dies releases its lock; the file that it leaves is taken over. Blocks may be nested.

    Args:
        path: an existing folder, or a file, which may be absent.
        what: the flag or the job, with which an error begins.

    Raises:
        InputError: another process holds the lock; names its number and its machine.
    """
    folder, name = (path, "") if os.path.isdir(path) else os.path.split(path)
    place = os.path.join(os.path.realpath(folder), f".{name}.lock" if name else ".lock")
    lock = filelock.FileLock(place, is_singleton=True)
    try:
        lock.acquire(timeout=_LOCK_SECONDS, poll_interval=_LOCK_SECONDS / 10)
    except filelock.Timeout as error:
        raise InputError(f"{what}: {_holder(place)} is at work on {path!r}; wait until it ends, or "
                         "name another.") from error
    except OSError as error:
        raise InputError(f"{what}: {path!r} can't be locked ({error.strerror}); "
                         "name one that you may write to.") from error
    try:
        # Where files can't be locked, filelock marks them in a way of its own.
        if lock.lock_counter == 1 and not isinstance(lock, filelock.SoftFileLock):
            with open(place, "w", encoding="utf-8") as file:
                file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        yield
    finally:
        if lock.lock_counter == 1:
            with contextlib.suppress(OSError):
                os.remove(place)    # while it is locked: nobody else has it
        lock.release()


def _holder(place):
    """Reads the text that a lock's holder wrote into its file."""
    try:
        with open(place, encoding="utf-8") as file:
            return file.read(200).strip().replace("\n", " ") or "another process"
    except (OSError, ValueError):
        return "another process"


def check_local(values: list, source: str = "") -> None:
    """Raises InputError if a name begins with a scheme, such as gs://bucket/run, s3:// and hf://.

    As a local file it would mean a folder "gs:". Values that are not texts are ignored; errors
    begin with `source`, such as a flag.
    """
    for value in values:
        if isinstance(value, (str, os.PathLike)) and _REMOTE.match(os.fspath(value)):
            raise InputError(f"{source}{value} is not on this machine's disks; name a local file "
                             "or folder.")


def check_decodable(values: list, source: str) -> None:
    """Raises InputError if a text, such as the name of a file, holds bytes that are not UTF-8.

    Python represents such bytes by lone surrogates, which TensorFlow and JSON can't take. Other
    values are ignored.
    """
    for value in values:
        try:
            if isinstance(value, str):
                value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{source}: {value!r} holds bytes that are not UTF-8; rename the file "
                             "or folder.") from error


def find_files(patterns, flag, suffixes=None):
    """Lists the files of comma-separated names, globs and folders, each pattern sorted.

    Flagfiles and tokenizers, which jobs write next to their output, are only found by their names.

    Args:
        patterns: a string such as "a.txt,more/*.txt,folder" or a list of them.
        suffixes: in a folder, take the files that end in one of these; all visible files if None.
    """
    if isinstance(patterns, str):
        patterns = patterns.split(",")
    found = []
    for pattern in filter(None, (p.strip() for p in patterns)):
        check_local([pattern], f"--{flag}: ")
        if os.path.isdir(pattern):
            names = [os.path.join(root, name) for root, _, names in os.walk(pattern)
                     for name in names if not name.startswith(".") and (
                         root == pattern or not root.endswith(TOKENIZER_ENDING))]
            names = [n for n in names if suffixes is None or n.endswith(tuple(suffixes))]
        else:
            names = [pattern] if os.path.isfile(pattern) else glob.glob(pattern, recursive=True)
        names = sorted(name for name in names if os.path.isfile(name) and (
            name == pattern or not f".{os.path.basename(name)}".endswith(f".{FLAGFILE}")))
        if not names:
            raise InputError(f"--{flag}: no file matches {pattern!r}.")
        found += names
    if not found:
        raise InputError(f"--{flag} names no file.")
    check_decodable(found, f"--{flag}")
    return found
