"""Locks that keep two processes from working on one folder or file."""

import contextlib
import os
import socket
from collections.abc import Iterator

import lazy_loader

from bert_tf.errors import InputError
from bert_tf.files.places import is_folder, is_remote, real_path

filelock = lazy_loader.load("filelock")     # most commands lock nothing

# Time for a stopped process to release its locks.
_LOCK_SECONDS = 1.0


class Held(InputError):
    """Another process is at work on the folder or the file."""


@contextlib.contextmanager
def locked(path: str, what: str, seconds: float = _LOCK_SECONDS) -> Iterator[None]:
    """Keeps other processes from working on the same folder, or on the same file, in the block.

    The lock is a hidden file: `.lock` in the folder `path`, or `.NAME.lock` next to the file
    `path`. It names the process that holds it, and disappears when the block ends. A process that
    dies releases its lock; the file that it leaves is taken over. Blocks may be nested. A store has
    no locks: there the block begins at once. Errors begin with `what`, the flag or the job. Another
    process that holds the lock is waited for, for some `seconds`.

    Raises:
        Held: another process holds the lock; names its number and its machine.
        InputError: the path can't be locked.
    """
    if is_remote(path):
        yield
        return
    folder, name = (path, "") if is_folder(path) else os.path.split(path)
    place = os.path.join(real_path(folder), f".{name}.lock" if name else ".lock")
    lock = filelock.FileLock(place, is_singleton=True)
    try:
        lock.acquire(timeout=seconds, poll_interval=_LOCK_SECONDS / 10)
    except filelock.Timeout as error:
        raise Held(f"{what}: {_holder(place)} is at work on {path!r}; wait until it ends, or "
                   "name another.") from error
    except OSError as error:
        raise InputError(f"{what}: {path!r} can't be locked ({error.strerror}); name a folder that "
                         "you may write to.") from error
    try:
        # Where files can't be locked, filelock marks them in its own way.
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
    try:
        with open(place, encoding="utf-8") as file:
            return file.read(200).strip().replace("\n", " ") or "another process"
    except (OSError, ValueError):
        return "another process"
