"""Work for the processes of jobs, which import this file and not pytest."""

import os
import signal

from bert_tf.errors import InputError


def double(index, piece):
    return {"index": index, "double": 2 * piece}


def measure(index, piece):
    return {"length": len(piece)}


def fail_at_two(index, piece):
    if index == 2:
        raise InputError("piece 2 is bad")
    return double(index, piece)


def die(index, piece):
    os._exit(9)


class Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (9,)

    def __call__(self, index, piece):
        raise AssertionError("never reached")


class LargeWork:
    def __init__(self):
        self.table = b"x" * (1 << 23)

    def __call__(self, index, piece):
        raise AssertionError("never reached")


def fail_oddly(index, piece):
    raise type("Local", (Exception,), {})("can't be pickled")


def end_where_nobody_hears(index, piece):
    def text():
        try:
            yield
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    lines = text()
    next(lines)
    del lines       # Python drops what its `finally` block raises
    return index
