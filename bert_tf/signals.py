"""Ends programs on Ctrl-C (SIGINT), on SIGTERM, and when nobody reads their output or a disk is
full: with one line at most, and nothing half-written."""

import contextlib
import errno
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
_AGAIN_SECONDS = 0.05
# The signal that will arrive once more, and its sender.
_late: list[tuple[int, threading.Timer]] = []
# The signal whose exception was raised last: C++ may make another exception of it.
_raised: list[int] = []


class Terminated(BaseException):
    """SIGTERM arrived. As with KeyboardInterrupt, `finally` blocks run and the program ends."""


# Ends of files, and functions there ("": all), that call C code. It drops an exception that a
# signal raises in it, or prints it and raises another.
_CALL_C = (("<frozen importlib._bootstrap>", ""),
           ("tensorflow/python/util/nest_util.py", "_tf_core_flatten"))


def _raise(number: int, frame: FrameType | None) -> None:
    while frame:
        code = frame.f_code
        if any(code.co_filename.endswith(file) and function in ("", code.co_name)
               for file, function in _CALL_C):
            _send_again(number)
            return
        frame = frame.f_back
    _late.clear()
    _raised[:] = [number]
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _send_again(number: int) -> None:
    """Has a signal arrive once more, a little later."""
    timer = threading.Timer(_AGAIN_SECONDS, os.kill, (os.getpid(), number))
    timer.daemon = True
    _late[:] = [(number, timer)]
    timer.start()


def _number(error: BaseException | None) -> signal.Signals | None:
    """Returns the signal that an exception represents."""
    return (signal.SIGTERM if isinstance(error, Terminated) else
            signal.SIGINT if isinstance(error, KeyboardInterrupt) else None)


@contextlib.contextmanager
def _lost_signals_come_again() -> Iterator[None]:
    """In the block, repeats a signal whose exception was raised where Python drops exceptions, such
    as in a `__del__` or a callback of a weak reference."""
    before = sys.unraisablehook

    def send_again(unraisable: "sys.UnraisableHookArgs") -> None:
        number = _number(unraisable.exc_value)
        if number is None:
            before(unraisable)
        else:
            _send_again(number)

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """In the block, makes both signals raise an exception, prints one line and ends the program
    with the status that shells give to programs ended by a signal."""
    if threading.current_thread() is not threading.main_thread():
        yield       # signals go to the main thread
        return
    before = {number: signal.signal(number, _raise) for number in STATUS}
    _raised.clear()
    try:
        try:
            with _lost_signals_come_again():
                yield
        finally:
            for number, timer in _late:     # the block has ended before that
                timer.cancel()
                _raise(number, None)
    except (KeyboardInterrupt, Terminated, Exception) as error:
        if isinstance(error, Exception) and not _raised:
            raise
        number = _number(error) or signal.Signals(_raised[0])
        # A second signal ends the rest of the program at once.
        before = dict.fromkeys(STATUS, signal.SIG_DFL)
        print("terminated" if number == signal.SIGTERM else "interrupted", file=sys.stderr)
        sys.exit(STATUS[number])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
        if not is_broken and error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        with contextlib.suppress(OSError):
            if not is_broken:
                print(f"error: {error}: make room and run the same command again.", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:     # the text in the buffer has nowhere to go
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # The status that shells give to programs that SIGPIPE ended.
        sys.exit(141 if is_broken else 1)


def _is_unread(stream) -> bool:
    """Returns whether the pipe that a stream writes to has no reader any more."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def restore_handlers() -> None:
    """Makes Python's handlers of both signals take effect again where a library has set its own, as
    TensorFlow does for SIGTERM when it connects workers."""
    if threading.current_thread() is threading.main_thread():
        for number in STATUS:
            signal.signal(number, signal.getsignal(number))


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Holds all signals back in the block; processes that are started begin in this state."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STATUS)
    noted: list[int] = []
    # The system may give a signal to another thread, such as one of NumPy's; Python's handler
    # interrupts the main thread then too.
    handlers = {number: signal.signal(number, lambda number, _: noted.append(number))
                for number in STATUS} if (
                    threading.current_thread() is threading.main_thread()) else {}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in noted:
            os.kill(os.getpid(), number)


def obey_parent() -> None:
    """Lets a worker process, started while signals were `held`, end when its parent asks for it.

    Ctrl-C reaches all processes of a terminal; the parent decides. SIGTERM ends the worker without
    a word, after its `finally` blocks; where it comes from a group and from the parent too, the
    second one does not disturb them.
    """
    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(STATUS[signal.SIGTERM])

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STATUS)
