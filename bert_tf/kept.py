"""What a job that resumes keeps in a JSON file: its settings, and its results as they arrive. Cells
are such jobs, of which several processes do one after the other."""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import Held, locked, make_folder, open_log, read_json, write_json

CELL, LOG = "cell.json", "log.txt"      # in the folder of a cell
_WAIT_SECONDS = 1.0     # until the cells that other processes work on are looked at again
_DIGEST = re.compile("[0-9a-f]{16,}")   # of a file or of weights


def as_json(value: Any) -> Any:
    """Returns a value as it is after it was written and read: tuples are lists. A job continues
    work on disk whose settings equal `as_json` of its own."""
    return json.loads(json.dumps(value))


def differing(own: dict, saved: dict) -> list[str]:
    """Returns the names of the settings that differ between two descriptions of a job, in the order
    of `own`. None means the same as an absent name."""
    own, saved = as_json(own), as_json(saved)
    return [name for name in dict.fromkeys([*own, *saved]) if own.get(name) != saved.get(name)]


def phrase(name: str, saved: Any, own: Any, inner: str = "") -> str:
    """Names a setting that differs, with its values where they can be read: "--learning_rate
    (0.0001, now 5e-05)". `inner` names a part of the setting."""
    if all(isinstance(row, dict) and "terms" in row for row in (saved, own)):     # of recipes
        saved, own = _leaves(saved), _leaves(own)
        inner = next(leaf for leaf in (*own, *saved) if saved.get(leaf) != own.get(leaf))
        return phrase("recipe", saved.get(inner), own.get(inner), inner.rpartition("/")[2] + " ")
    # A flag without a value has a default that depends on others.
    names = {None: "none" if inner else "default", "": "none"}
    if any(isinstance(value, (list, dict)) or _DIGEST.fullmatch(str(value))
           for value in (saved, own)):
        return f"--{name}"
    return f"--{name} ({inner}{names.get(saved, saved)}, now {names.get(own, own)})"


def _leaves(value, path=""):
    """The values of nested dicts and lists, by their path."""
    if not isinstance(value, (dict, list)):
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {name: leaf for key, inner in items
            for name, leaf in _leaves(inner, f"{path}/{key}").items()}


def differences(own: dict, saved: dict) -> list[str]:
    """Returns the `phrase` of each setting that differs."""
    return [phrase(name, saved.get(name), own.get(name)) for name in differing(own, saved)]


def check_same(place: str, others: Collection[str]) -> None:
    """Raises InputError if what a file or folder holds has other settings."""
    if others:
        raise InputError(f"{place} holds a run with another {', '.join(others)}; name another "
                         f"--output_dir, or remove {place}.")


def read_kept(path: str) -> dict[str, Any]:
    """Returns the content of the file of a `Kept`, {} without one; InputError if it is damaged."""
    try:
        return read_json(path, {})
    except InputError as error:
        if not isinstance(error.__cause__, ValueError):
            raise
        raise InputError(f"{path} is damaged; remove it, and run the command that wrote it again."
                         ) from error


class Kept:
    """A JSON file with the `settings` of a job, JSON values by name that its results depend on, and
    its results. Processes with equal settings may write to one file. InputError if the file is
    damaged, or holds results of other settings, which it names.

    Args:
        place: what an error says to remove, the file or the folder of the whole job.
        compare: function of own and saved settings that returns the differences.
        forgets: whether results of other settings are dropped.
    """

    def __init__(self, path: str, settings: dict[str, Any], place: str = "",
                 compare: Callable[[dict, dict], list[str]] = differences,
                 forgets: bool = False) -> None:
        self.path, self._content = path, {"settings": as_json(settings)}
        content = read_kept(path)
        others = compare(self.settings, content.get("settings", {})) if content else []
        if not forgets:
            check_same(place or path, others)
        if not others:
            self._content = {**content, **self._content}

    @property
    def settings(self) -> dict[str, Any]:
        return self._content["settings"]

    def begin(self, **more: Any) -> None:
        """Writes the settings, and `more` that is known about the job now."""
        self.settings.update(more)
        self._write()

    def get(self, *keys: str, measure: Callable[[], Any] = lambda: None) -> Any:
        """Returns the result under these keys; without one, measures and keeps it."""
        *folders, name = keys
        place = self._content
        for key in folders:
            place = place.setdefault(key, {})
        if name not in place and (result := measure()) is not None:
            place[name] = result
            self._write()
        return place.get(name)

    def put(self, key: str, value: Any) -> None:
        """Keeps a value in place of an earlier one."""
        self._content[key] = value
        self._write()

    def _write(self):
        content = read_kept(self.path)
        if content.get("settings") == self.settings:
            _fill(self._content, content)
        write_json(self.path, self._content)


def _fill(target, source):
    for name, value in source.items():
        if isinstance(value, dict) and isinstance(target.get(name), dict):
            _fill(target[name], value)
        else:
            target.setdefault(name, value)


def do_missing(missing: Callable[[], Collection], work: Callable[[Any], bool]) -> None:
    """Works on cells, one at a time, until none is missing. A cell whose `work` returns False, as
    another process does it or it waits for another cell, is tried again later."""
    while cells := missing():
        if not any(map(work, cells)):
            time.sleep(_WAIT_SECONDS)


@contextlib.contextmanager
def turn(folder: str) -> Iterator[bool]:
    """Makes a folder and locks it in the block; yields False if another process holds it."""
    make_folder(folder, "output_dir")
    with contextlib.ExitStack() as stack:
        is_free = True
        try:
            stack.enter_context(locked(folder, "--output_dir"))
        except Held:
            is_free = False
        yield is_free


@contextlib.contextmanager
def logged(folder: str) -> Iterator[None]:
    """Writes what is printed in the block into the log in a folder."""
    with open_log(os.path.join(folder, LOG)) as log, contextlib.redirect_stdout(log):
        yield
