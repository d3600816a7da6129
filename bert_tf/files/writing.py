"""Files that are whole or absent: outputs are written aside and renamed, or sent when whole; and
locks that keep two processes from working on one folder or file."""

import contextlib
import errno
import functools
import hashlib
import io
import itertools
import json
import os
import re
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar

import lazy_loader

from bert_tf import signals
from bert_tf.errors import InputError, naming
from bert_tf.files import places
from bert_tf.files.reading import open_file, send, staged, upload_place

# The text between the final name and the number of the process that writes the file.
ASIDE = ".tmp-bert_tf-"
# Bytes of a name to which ".flags.txt", `ASIDE` and what follows it can be added; disks take 255.
_LONGEST = 180
# The parts after `ASIDE`: the process, its machine, and a unique part for each writing.
_OWNER = re.compile(r"(\d+)-([0-9a-f]+)-([0-9a-f]+)")
_START = uuid.uuid4().hex[:12]      # differs from an earlier process's with the same number
_numbers = itertools.count()
# Age at which a file of another machine counts as left behind: this machine can't see whether its
# process lives.
_DAY = 86400.0
_check: ContextVar[Callable[[], None]] = ContextVar("_check", default=lambda: None)
filelock = lazy_loader.load("filelock")     # most commands lock nothing
# Time for a stopped process to release its locks.
_LOCK_SECONDS = 1.0


def leftovers(*paths: str) -> list[str]:
    """Lists the folders that processes left while they wrote some paths aside, or are writing now.
    Only names that this module gives count. Files for a store are written on this machine's disk.
    """
    targets = set(map(upload_place, paths))
    return [leftover for folder in {os.path.dirname(target) for target in targets}
            for target, leftover in _unfinished(folder) if target in targets]


def unfinished(path: str) -> list[str]:
    """Lists the names of all files beside `path` that have `leftovers`; of files for a store, on
    this machine's disk."""
    return [os.path.basename(target)
            for target, _ in _unfinished(os.path.dirname(upload_place(path)))]


def _unfinished(folder):
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(folder or "."):
            stem, mark, owner = name.rpartition(ASIDE)
            if mark and _OWNER.fullmatch(owner):
                yield os.path.join(folder, stem), os.path.join(folder, name)


def _aside(place):
    """Returns a name that no other process, machine or thread gives for writing `place`."""
    return f"{place}{ASIDE}{os.getpid()}-{_machine()}-{_START}{next(_numbers):x}"


@functools.cache
def _machine():
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def remove_leftovers(*paths: str) -> None:
    """Removes the unfinished files of some paths. Files that are still being written stay: their
    process lives on this machine, or they were written on another machine within a day."""
    for leftover in leftovers(*paths):
        process, machine, start = leftover.rpartition(ASIDE)[2].split("-")
        if machine != _machine():
            is_written = True       # if a file vanishes meanwhile
            with contextlib.suppress(FileNotFoundError):
                is_written = time.time() - max(map(os.path.getmtime, [
                    leftover, *places.files_under(leftover)])) < _DAY
        elif int(process) == os.getpid():
            is_written = start.startswith(_START)
        else:
            is_written = places.is_alive(int(process))
        if not is_written:
            shutil.rmtree(leftover, ignore_errors=True)


def _remove(folder):
    with signals.held():        # one that ends the program would leave a part
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def checked(check: Callable[[], None]) -> Iterator[None]:
    """Calls a function before each file that this thread writes in the block gets its final name;
    the file does not get it if the function raises an error."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def _check_regular(path):
    """Raises InputError for a device, such as /dev/null, a pipe, or /dev/stdout and /dev/fd/3 even
    if they lead to a file: a file would take their place."""
    if not places.is_remote(path) and os.path.exists(path) and not (
            os.path.isfile(path) or os.path.isdir(path)) or (
            os.path.islink(path) and os.readlink(path).startswith("/proc/")
            or os.path.realpath(os.path.dirname(path)).startswith("/proc/")):
        raise InputError(f"{path} is a device or a pipe, which would be replaced; name a file.")


@contextlib.contextmanager
def replace_aside(path):
    """The name of a local file to write, in a folder of its own; it becomes `path` when the block
    ends without error. InputError if `path` is a device or a pipe."""
    _check_regular(path)
    place = upload_place(path)
    remove_leftovers(place)
    folder = _aside(place)
    aside = os.path.join(folder, os.path.basename(place))
    try:
        os.mkdir(folder)
        yield aside
        _check.get()()
        if places.is_remote(path):
            send(aside, path)
            return
        # On disk before it is renamed: a crash leaves the old file or the new one.
        descriptor = os.open(aside, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        os.replace(aside, path)
    except OSError as error:
        _name_full(error, folder, path, f"/{os.path.basename(place)}")
        raise
    finally:
        _remove(folder)


def _name_full(error, folder, path, inner=""):
    """Gives an error of a full disk the final name of the file, which is `inner` in the folder
    aside; an error of a write names none."""
    name = str(error.filename or folder)
    if error.errno in signals.FULL and name.startswith(folder):
        error.filename = f"{os.fspath(path)}{name.removeprefix(folder).removeprefix(inner)}"


@contextlib.contextmanager
def write_aside(path, mode="w", **open_options):
    """Opens `path` for writing; the final name appears when the block ends without an error.

    Text becomes UTF-8, and half of a surrogate pair, which JSON may hold, its escape."""
    if "b" not in mode:
        open_options = {"encoding": "utf-8", "errors": "backslashreplace", **open_options}
    with replace_aside(path) as aside, open(aside, mode, **open_options) as file:
        yield file


@contextlib.contextmanager
def open_log(path):
    """Opens a text file that grows. A local one keeps each line at once; a store takes the whole
    file when the block ends, with an error too."""
    if not places.is_remote(path):
        with open(path, "a", encoding="utf-8") as file:
            yield file
        return
    before = ""
    if places.is_file(path):
        with open_file(path, encoding="utf-8") as file:
            before = file.read()
    with io.StringIO() as file:
        try:
            yield file
        finally:
            with write_aside(path) as whole:
                whole.write(before + file.getvalue())


@contextlib.contextmanager
def folder_aside(path, marker=""):
    """The name of a local folder to fill; it becomes `path` when the block ends without error.
    InputError if `path` is there and isn't empty, or can't be written, or appears meanwhile; or
    holds files that would not be written.

    Args:
        marker: end of the name of a file that marks the folder as whole for readers. A store can't
            rename folders, so there this file is sent last. A folder there that lacks this file was
            not finished: its files are replaced.
    """
    there = check_free(path, marker)
    place = places.real_path(upload_place(path))    # no folder can take the place of a link
    aside = _aside(place)
    remove_leftovers(place)
    try:
        try:
            os.makedirs(aside)
            if places.is_remote(path):
                _try_store(path)
        except OSError as error:
            raise InputError(f"{path} can't be written ({error.strerror}); "
                             f"{_remedy(error)}.") from error
        yield aside
        if places.is_remote(path):
            if there - set(os.listdir(aside)):
                raise _taken(path)
            send_folder(aside, path, marker)
        else:
            try:
                os.replace(aside, place)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                raise InputError(f"{path} was written by another process meanwhile; name another "
                                 "folder.") from error
    except OSError as error:
        _name_full(error, aside, path)
        raise
    except InputError:
        raise
    except Exception as error:      # TensorFlow's own
        for number in signals.FULL:
            if os.strerror(number) in str(error):
                raise OSError(number, os.strerror(number), os.fspath(path)) from error
        raise
    finally:
        _remove(aside)


def check_free(path: str | os.PathLike, marker: str = "") -> set[str]:
    """Returns the names in a folder that may be written, before the work begins. InputError: as
    `folder_aside` raises it for a path that is there."""
    there = set(places.list_folder(path)) if places.is_folder(path) else set()
    is_in_the_way = places.is_taken(path) and (there or not places.is_folder(path))
    if is_in_the_way and not is_unfinished(path, marker):
        raise _taken(path)
    return there


def is_unfinished(path: str | os.PathLike, marker: str) -> bool:
    """Whether a store has files of a folder, but not the one sent last; see `folder_aside`."""
    return bool(marker) and places.is_remote(path) and places.is_folder(path) and not any(
        _is_marker(name, marker) for name in places.list_folder(path))


def _is_marker(name, marker):
    """Returns whether a file is sent last: config.json or bert_config.json, not a tokenizer's."""
    return bool(marker) and name.endswith(marker) and not name.startswith("tokenizer_")


def _taken(path):
    return InputError(f"{path} is there already and is not an empty folder; name another folder.")


def send_folder(folder: str, path: str, marker: str = "") -> None:
    """Sends a local folder's files to a store; see `folder_aside`."""
    names = sorted((os.path.relpath(name, folder) for name in places.files_under(folder)),
                   key=lambda name: (_is_marker(name, marker), name))
    for name in names:
        send(os.path.join(folder, name), f"{str(path).rstrip('/')}/{name}")


def check_file(path: str, flag: str) -> None:
    """Raises InputError if the name of an output is the name of a folder, a device or a pipe, or is
    too long."""
    if places.is_folder(path) or path.endswith(os.sep):
        raise InputError(f"--{flag}: {path!r} is a folder; name a file.")
    if len(os.fsencode(os.path.basename(path))) > _LONGEST:
        raise InputError(f"--{flag}: {path!r} has a name of more than {_LONGEST} bytes, to which "
                         "endings are added; give a shorter one.")
    with naming(f"--{flag}"):
        _check_regular(path)


def announce_replacing(paths: Iterable[str]) -> None:
    """Prints which of the files are there and will be replaced, before the work begins."""
    there = [path for path in paths if places.is_taken(path)]
    if there:
        print(f"{', '.join(there)} will be replaced.", flush=True)


def write_json(path, value):
    """Writes `value` as indented JSON, whole or not at all."""
    with write_aside(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def copy_file(source, target):
    """Copies a file, whole or not at all."""
    with replace_aside(target) as aside:
        shutil.copyfile(staged(source), aside)


def make_folder(path, flag):
    """Creates the folder `path` and checks that files can be written there; errors name `flag`."""
    with naming(f"--{flag}"):
        try:
            if places.is_remote(path):
                _try_store(path)
                return
            os.makedirs(path or ".", exist_ok=True)
            with tempfile.TemporaryFile(dir=path or "."):
                pass
        except OSError as error:
            raise InputError(f"can't write to {path!r} ({error.strerror}); "
                             f"{_remedy(error)}.") from error


def _remedy(error):
    if error.errno in signals.FULL:
        return "make room, or name a folder on another disk"
    return "name a folder that you may write to"


def _try_store(path):
    with places.reaching(path) as (store, name):
        probe = f"{name.rstrip('/')}/.bert_tf-{uuid.uuid4().hex}"
        store.pipe_file(probe, b"1")
        store.rm_file(probe)


class Held(InputError):
    """Another process is at work on the folder or the file."""


@contextlib.contextmanager
def locked(path: str, what: str, seconds: float = _LOCK_SECONDS) -> Iterator[None]:
    """Keeps other processes from working on the same folder, or on the same file, in the block.

    The lock is a hidden file: `.lock` in the folder `path`, or `.NAME.lock` next to the file
    `path`. It names the process that holds it, and disappears when the block ends. A process that
    dies releases its lock; the file that it leaves is taken over. Blocks may be nested. A store has
    no locks: there the block begins at once. Errors begin with `what`, the flag or the job. Another
    process that holds the lock is waited for, for some `seconds`; then Held names its number and
    its machine. InputError if the path can't be locked."""
    if places.is_remote(path):
        yield
        return
    folder, name = (path, "") if places.is_folder(path) else os.path.split(path)
    place = os.path.join(places.real_path(folder), f".{name}.lock" if name else ".lock")
    lock = filelock.FileLock(place, is_singleton=True)
    try:
        lock.acquire(timeout=seconds, poll_interval=_LOCK_SECONDS / 10)
    except filelock.Timeout as error:
        remedy = "wait until it ends, or name another"
        if isinstance(lock, filelock.SoftFileLock):     # which a kill on another machine leaves
            remedy += f"; if it was killed, remove {place}, since this disk locks no files"
        raise Held(f"{what}: {_holder(place)} is at work on {path!r}; {remedy}.") from error
    except OSError as error:
        raise InputError(f"{what}: {path!r} can't be locked ({error.strerror}); "
                         f"{_remedy(error)}.") from error
    try:
        # Where files can't be locked, filelock marks them in its own way.
        if lock.lock_counter == 1 and not isinstance(lock, filelock.SoftFileLock):
            # On a full disk the lock names nobody.
            with contextlib.suppress(OSError), open(place, "w", encoding="utf-8") as file:
                file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        yield
    finally:
        if lock.lock_counter == 1:
            with contextlib.suppress(OSError):
                os.remove(place)    # while it is locked: nobody else has it
        lock.release()


def _holder(place):
    try:
        with open(place, encoding="utf-8") as file:
            first, *rest = file.read(200).strip().split("\n")
    except (OSError, ValueError):
        first, rest = "", []
    if first.isdecimal() and rest:      # as filelock writes it
        return f"process {first} on {rest[0]}"
    return first or "another process"
