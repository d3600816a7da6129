"""Signals that come while a run trains: it ends at the next step, and its state is kept."""

import os
import signal
import socket
import threading
from collections.abc import Callable

from bert_tf.errors import InputError
from bert_tf.signals import STATUS, Terminated

_END = b"\0"        # no signal has this number
_MESSAGE = (b"stopping at the next step, after compiling if that is not done; the state will be "
            b"saved (again: stop at once)\n")


class Stopped(InputError):
    """A signal ended the training, whose state is kept.

    Args:
        number: of the signal; programs end with its status.
    """

    is_asked_for = True

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.status = STATUS[signal.Signals(number)]


class Signals:
    """Within a block, notes the first SIGINT or SIGTERM; a second one interrupts at once.

    Python's own handlers wait until TensorFlow returns, which may be many steps later. So a thread
    reads the numbers of signals as they come.

    Args:
        stop: called in that thread at the first signal.

    Attributes:
        noted: the number of the first signal; 0 before.
    """

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        self.noted, self._stop, self._before = 0, stop, {}

    def _note(self, number, _):
        if self.noted:
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
        self.noted = number

    def _watch(self):
        while (number := self._arrivals.recv(1)) != _END:
            if number[0] in STATUS:
                # Not by `print`: the signal may have interrupted one, which holds a lock.
                os.write(1, _MESSAGE)
                self._stop()
                break

    def __enter__(self):
        if threading.current_thread() is not threading.main_thread():
            return self     # signals go elsewhere
        self._arrivals, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        self._former = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._note) for number in STATUS}
        return self

    def __exit__(self, *_):
        if not self._before:
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._former)
        self._sender.send(_END)
        self._thread.join()
        self._arrivals.close()
        self._sender.close()
