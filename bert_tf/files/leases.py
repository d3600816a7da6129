"""Locks in a store, which has none of its own: numbered files, each created by one process alone.

The holder of a lease writes into its file again and again. A process that finds the file unchanged
for longer takes over: it creates the file of the next number, which a store lets one process do. No
clock is compared with another machine's. A holder that stopped for long finds the higher number and
ends.
"""

import contextlib
import json
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator

from bert_tf.errors import InputError
from bert_tf.files.places import is_alive, reaching, real_path

# Seconds between the holder's writings, and without one before another takes over.
RENEWAL = 15.0
PATIENCE = 60.0
_held: dict[str, "_Lease"] = {}


class Held(InputError):
    """Another process is at work on the folder or the file."""


@contextlib.contextmanager
def lease(path: str, what: str) -> Iterator[None]:
    """Keeps other processes from working on a remote folder or file in the block; see `locked`."""
    place = real_path(path)
    if place in _held:
        yield
        return
    own = _held[place] = _Lease(place, what)
    try:
        own.take()
        try:
            yield
        finally:
            own.release()
    finally:
        del _held[place]


class _Lease:
    def __init__(self, path, what):
        self._path, self._what = path, what
        self._token, self._number = uuid.uuid4().hex, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

        # Next to the locked path; a bucket holds its own lock.
        folder, name = os.path.split(path)
        self._folder, self._start = (path, ".lock-") if folder.endswith(":") else (
            folder, f".{name}.lock-")

    def _name(self, number):
        return f"{self._folder}/{self._start}{number:06d}"

    def _highest(self):
        """The highest number of a lock file, and the file's content; 0 and None without a file."""
        pattern = re.compile(re.escape(self._start) + r"(\d{6})$")
        with reaching(self._path) as (store, _):
            try:
                names = store.ls(self._folder, detail=False)
            except FileNotFoundError:
                return 0, None
            found = [int(match[1]) for each in names if (match := pattern.search(each))]
            if not found:
                return 0, None
            try:
                return max(found), store.cat_file(self._name(max(found)))
            except FileNotFoundError:       # released meanwhile
                return self._highest()

    def _content(self):
        return json.dumps({"process": os.getpid(), "machine": socket.gethostname(),
                           "space": _process_space(), "token": self._token,
                           "turn": time.monotonic_ns()}).encode()

    def take(self):
        """Takes the lease.

        Raises:
            Held: another process has it.
            InputError: the store refuses.
        """
        try:
            number, content = self._highest()
            if content and not _has_died(content):
                seen = number, content
                self._watch(*seen)
                number, content = self._highest()
                if content and (number, content) != seen:
                    raise self._busy(_holder(content))
            with reaching(self._path) as (store, _):
                store.pipe_file(self._name(number + 1), self._content(), mode="create")
            self._check_alone(number + 1, content)
        except FileExistsError as error:
            raise self._begun() from error
        except OSError as error:
            raise InputError(f"{self._what}: {self._path!r} can't be locked ({error.strerror}); "
                             "name a folder that you may write to.") from error
        self._number = number + 1
        self._thread.start()

    def _check_alone(self, own, before):
        """Gives up the file just created, with an error, where another process has created one
        too: the next, or the one before, which held `before`."""
        with reaching(self._path) as (store, _):
            try:
                found = store.cat_file(self._name(own - 1)) if own > 1 else None
            except FileNotFoundError:
                found = None
            if self._highest()[0] != own or found not in (None, before):
                store.rm_file(self._name(own))
                raise self._begun()

    def _busy(self, holder, does="is at work"):
        return Held(f"{self._what}: {holder} {does} on {self._path!r}; wait until it ends, or name "
                    "another.")

    def _begun(self):
        return self._busy("another process", "has begun to work")

    def _watch(self, number, content):
        """Waits until the holder writes, which is an error, or has not written for long."""
        holder = _holder(content)
        print(f"{holder} was at work on {self._path}; waiting {PATIENCE:.0f} s to see whether it "
              "still is", flush=True)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            time.sleep(min(1.0, RENEWAL / 4))
            now = self._highest()
            if now[1] is None:      # it has ended
                return
            if now != (number, content):
                raise self._busy(_holder(now[1]))

    def _renew(self):
        while not self._ended.wait(RENEWAL):
            # A renewal that fails is tried again at the next turn.
            with contextlib.suppress(OSError, InputError):
                number, _ = self._highest()
                if number != self._number:
                    os.write(2, f"error: {self._what}: another process has taken over "
                                f"{self._path!r}; this process ends.\n".encode())
                    os._exit(1)
                with reaching(self._path) as (store, _):
                    store.pipe_file(self._name(number), self._content())

    def release(self):
        """Gives the lease back: its files disappear. A failure is a warning: the work is done."""
        self._ended.set()
        if self._thread.ident:
            self._thread.join()
        try:
            for number in range(self._number, 0, -1):
                with reaching(self._path) as (store, _):
                    name = self._name(number)
                    if not store.exists(name):
                        break
                    store.rm_file(name)
        except (OSError, InputError) as error:
            print(f"warning: {self._what}: the lock of {self._path!r} could not be removed "
                  f"({error}); the next process will wait a minute.", flush=True)


def _holder(content):
    try:
        found = json.loads(content)
        return f"process {found['process']} on {found['machine']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _has_died(content):
    """Returns whether the holder was a process of this machine that has ended."""
    try:
        found = json.loads(content)
        if (found["machine"], found["space"]) != (socket.gethostname(), _process_space()):
            return False
        process = int(found["process"])
    except (ValueError, KeyError, TypeError):
        return False
    return not is_alive(process) or process == os.getpid()      # an earlier one with our number


def _process_space():
    """Returns the name of the namespace of process numbers; containers have their own."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
