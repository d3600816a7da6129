"""Ends programs on Ctrl-C (SIGINT), on SIGTERM, and when nobody reads their output or a disk is
full: with one line at most, and nothing half-written. A run that trains ends at the next step."""

import contextlib
import errno
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
# Errors of a disk, a quota or a system that takes no more of a file.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_END = b"\0"        # no signal has this number
_MESSAGE = (b"stopping at the next step, after compiling if that is not done; the state will be "
            b"saved (again: stop without it)\n")
# The signal whose exception was raised last: C++ may make another exception of it.
_raised: list[int] = []


class Terminated(BaseException):
    """SIGTERM arrived. As with KeyboardInterrupt, `finally` blocks run and the program ends."""


def _raise(number: int, frame: FrameType | None) -> None:
    _raised[:] = [number]
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


@contextlib.contextmanager
def _handled(handler: Any) -> Iterator[dict[int, Any]]:
    """Handles both signals so in the block; gives the handlers that they have after it, none beside
    the main thread, where signals go."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, handler) for number in STATUS}
    try:
        yield before
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """In the block, makes both signals raise an exception, prints one line and ends the program
    with the status that shells give to programs ended by a signal."""
    with _handled(_raise) as before:
        if not before:
            yield
            return
        _raised.clear()
        try:
            yield
        except (KeyboardInterrupt, Terminated, Exception) as error:
            if isinstance(error, Exception) and not _raised:
                raise
            number = signal.SIGINT if isinstance(error, KeyboardInterrupt) else _raised[0]
            # A second signal ends the rest of the program at once.
            before.update(dict.fromkeys(STATUS, signal.SIG_DFL))
            print("terminated" if number == signal.SIGTERM else "interrupted", file=sys.stderr)
            sys.exit(STATUS[number])


class FirstSignal:
    """Within a block, notes the first SIGINT or SIGTERM; a second one interrupts at once. Python's
    own handlers wait until TensorFlow returns, which may be many steps later. So a thread reads the
    numbers of signals as they come, and calls `stop` at the first.

    Attributes:
        noted: the number of the first signal; 0 before.
    """

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        self.noted, self._stop, self._before = 0, stop, {}

    def _note(self, number, _):
        if self.noted:
            _raise(number, None)
        self.noted = number

    def _watch(self):
        while (number := os.read(self._reader, 1)) != _END:
            if number[0] in STATUS:
                # Not by `print`: the signal may have interrupted one, which holds a lock.
                os.write(1, _MESSAGE)
                self._stop()
                break

    def __enter__(self) -> "FirstSignal":
        if threading.current_thread() is threading.main_thread():   # signals go there
            self._reader, self._writer = os.pipe()
            os.set_blocking(self._writer, False)
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
            self._former = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
            self._before = {number: signal.signal(number, self._note) for number in STATUS}
        return self

    def __exit__(self, *_) -> None:
        if self._before:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._former)
            os.write(self._writer, _END)
            self._thread.join()
            os.close(self._reader)
            os.close(self._writer)


@contextlib.contextmanager
def reaching_output() -> Iterator[None]:
    """Ends the program quietly if nobody reads its output any more, and with one sentence where the
    output can't be written, in the block and at its end."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        is_broken = isinstance(error, BrokenPipeError) and _is_unread(sys.stdout)
        if not is_broken and error.errno not in FULL:
            raise
        with contextlib.suppress(OSError):
            if not is_broken:
                remedy = "make room"
                if error.errno == errno.EFBIG:      # of FAT, or `ulimit -f`
                    remedy = "name a folder that takes larger files, or raise the limit"
                print(f"error: {error}: {remedy} and run the same command again.", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:     # the text in the buffer has nowhere to go
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # The status that shells give to programs that SIGPIPE ended.
        sys.exit(141 if is_broken else 1)


def _is_unread(stream) -> bool:
    """Whether the pipe that a stream writes to has no reader any more."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


@contextlib.contextmanager
def left_to_the_system() -> Iterator[None]:
    """In the block, both signals end the process at once, though C++ may let no Python run. At its
    end Python's handlers take effect again, even if a library has set its own: TensorFlow sets one
    for SIGTERM when it connects workers."""
    with _handled(signal.SIG_DFL):
        yield


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Holds all signals back in the block; processes that are started begin in this state."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STATUS)
    noted: list[int] = []
    try:
        # The system may give a signal to another thread, such as one of NumPy's; Python's handler
        # interrupts the main thread then too.
        with _handled(lambda number, _: noted.append(number)):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in noted:
            os.kill(os.getpid(), number)


def obey_parent() -> Callable[[], bool]:
    """Lets a worker process, started while signals were `held`, end when its parent asks for it:
    Ctrl-C, which reaches all processes of a terminal, has no effect; the first SIGTERM ends the
    worker without a word, after its `finally` blocks. Returns whether it was asked: where Python
    clears away a generator, it drops the exception that ends the worker."""
    asked: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if asked:       # a second one came before the first was blocked
            return
        asked.append(number)
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])
        sys.exit(STATUS[signal.SIGTERM])

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STATUS)
    return lambda: bool(asked)
