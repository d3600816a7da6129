"""The one kind of error that the user can fix, and the forked processes that raise it."""

import contextlib
import difflib
import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


class InputError(ValueError):
    """A bad file, line, flag, tensor or configuration, named with the remedy in one sentence.
    Scripts print it without a traceback and exit with its `status`; library users may catch it as a
    ValueError. `is_asked_for` is true of a stop that the user asked for, which is no error."""

    status = 1
    is_asked_for = False
    # Keras would put the arguments of the call beside the sentence.
    _keras_call_info_injected = True


class DivergedError(InputError):
    """Training has led to numbers that are not finite, in the `step`."""

    def __init__(self, message: str, step: int) -> None:
        super().__init__(message)
        self.step = step


def from_extra(module: str, extra: str, what: str) -> Any:
    """The module of a package that an extra of bert_tf installs. Raises InputError without it; says
    `what` needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"{what} needs a package that is not installed ({error}); pip install "
                         f"'bert_tf[{extra}]'.") from error


_called: dict[str, str] = {}       # what messages call files that the user did not name


def _renamed(message):
    for path, name in _called.items():
        message = message.replace(path, name)
    return message


@functools.cache
def warn(message: str) -> None:
    """Prints a warning once a process, to standard error: standard output may get predictions."""
    print(f"warning: {_renamed(message)}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def calling(names: Mapping[str, str]) -> Iterator[None]:
    """Lets the warnings and the InputErrors of a block call files by names, {path: name}."""
    _called.update(names)
    try:
        yield
    except InputError as error:
        raise InputError(_renamed(str(error))) from error
    finally:
        for path in names:
            _called.pop(path, None)


@contextlib.contextmanager
def naming(source: str | os.PathLike, keys: Mapping[str, str] | None = None) -> Iterator[None]:
    """Puts a source, such as a file, before the message of an InputError that the block raises.
    `keys`: {our name of a setting: the source's}, for the names in the message."""
    try:
        yield
    except InputError as error:
        message = re.sub(r"\w+", lambda word: (keys or {}).get(word[0]) or word[0], str(error))
        raise InputError(f"{source}: {message}") from error


def check_least(name: str, value: Any, least: int = 1) -> None:
    """Raises InputError unless a setting is a whole number of at least `least`."""
    if not hasattr(value, "__index__") or value < least:
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least {least}.")


def counted(number: int, noun: str) -> str:
    """Returns "1 text", "2 texts" and so on."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Iterable[Any], most: int = 5) -> str:
    """Returns the first names with commas between them, and how many more there are."""
    first = list(map(str, names))
    more = f" and {len(first) - most:,} more" if len(first) > most else ""
    return ", ".join(first[:most]) + more


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """Returns the name of `known` that is most similar to a wrong name, "" if none has at least the
    similarity `least` of difflib. Of equally similar names, this one shares most first letters with
    the wrong name."""
    wrong, names = str(name).lower(), {str(other).lower(): str(other) for other in known}
    likeness = {other: (difflib.SequenceMatcher(None, other, wrong).ratio(),
                        len(os.path.commonprefix([other, wrong])), other) for other in names}
    alike = sorted((other for other in names if likeness[other][0] >= least),
                   key=likeness.__getitem__, reverse=True)
    begun = [other for other in alike[:2] if other.startswith(wrong)]
    return next((names[other] for other in (*begun, *alike)), "")


def nearest_flag(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """Returns the flag that holds all words of a wrong name, as train_batch_size those of
    batch_size; of several the one of training, then the one of fewest words. Else see `nearest`."""
    wrong, names = name.lower(), {other.lower(): other for other in known}
    holding = [other for other in names if {*wrong.split("_")} <= {*other.split("_")}]
    if not holding or len(wrong) <= len("lr"):
        # A word that is unlike the one in its place means something else, as qa in place of seq.
        return nearest(name, [names[other] for other in names if other.count("_") != wrong.count(
            "_") or all(difflib.SequenceMatcher(None, *words).ratio() >= 0.5
                        for words in zip(other.split("_"), wrong.split("_")))], least)
    usual = f"num_train_{wrong}", f"train_{wrong}", f"do_{wrong}"
    return names[min(holding, key=lambda other: (other not in usual, other.count("_")))]


def choose_from(name: str, known: Iterable[str]) -> str:
    """Returns the end of a message on a wrong name: the name that is meant, and all there are."""
    known = list(known)
    meant = nearest(name, known)
    begin = f"did you mean {meant}? The choices are" if meant else "choose from"
    return f"{begin} {', '.join(map(str, known))}."


_explanations: list[Callable[[Exception], InputError | None]] = []


def explain_with(explain: Callable[[Exception], InputError | None]) -> None:
    """Registers a function that explains an error. Programs print the explanation in place of a
    traceback, unless the function returns None."""
    _explanations.append(explain)


def explained(error: Exception) -> InputError | None:
    """Returns the explanation of a library's error, if a function of `explain_with` gives one."""
    return next((explanation for explain in _explanations if (explanation := explain(error))), None)


# Whether TensorFlow had begun before this process was forked. It lacks the other one's threads, for
# which TensorFlow would wait without end.
_is_fork = False


def check_process() -> None:
    """Raises InputError in the fork of a process whose TensorFlow had begun."""
    if _is_fork:
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
    """Notes whether this process is the fork of one whose TensorFlow had begun; for
    `os.register_at_fork`."""
    global _is_fork
    eager = sys.modules.get("tensorflow.python.eager.context")
    context = eager and eager.context_safe()
    _is_fork = bool(context and context._initialized)       # which starts its threads
