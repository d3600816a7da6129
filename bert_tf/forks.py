"""Forks of a process whose TensorFlow had begun. They lack that process's threads, and TensorFlow
would wait for them without end."""

import os
import sys
from collections.abc import Callable
from typing import Any

from bert_tf.errors import InputError

_forks: list[int] = []          # this process, if TensorFlow had begun before it was forked


def check_process() -> None:
    """Raises InputError in such a fork."""
    if _forks:
        raise InputError("TensorFlow was used, as by opening a model, before this process was "
                         "forked, and can't compute here; open models in the workers alone "
                         "(gunicorn without --preload), or start them with multiprocessing's "
                         "\"spawn\".")


class _Unusable:
    """The copy of a model that can't be opened: whatever is called raises the error."""

    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        if name.startswith("__"):       # what Python asks for in order to copy
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        raise self._error


def opened_again(kind: Callable, *arguments: Any) -> Any:
    """Returns `kind(*arguments)`, what `__reduce__` makes a copy by. If that is an InputError, the
    copy raises it when it is called: a worker of multiprocessing's Pool that can't read its task
    leaves the Pool waiting."""
    try:
        return kind(*arguments)
    except InputError as error:
        return _Unusable(error)


def note_fork() -> None:
    """Notes whether this process is such a fork; for `os.register_at_fork`."""
    eager = sys.modules.get("tensorflow.python.eager.context")
    context = eager and eager.context_safe()
    if context and context._initialized:        # which starts its threads
        _forks.append(os.getpid())
