"""Results that a command keeps as they arrive: started again, it measures only missing results."""

import functools
from collections.abc import Callable
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import exists, read_json, with_whole_names, write_json
from bert_tf.options import as_json, differing_options


class KeptResults:
    """Results in a JSON file, written as they arrive: a finished run is not repeated. Processes
    with equal settings, JSON values by name that the results depend on, may write to one file.
    Results of other settings are an InputError, or dropped if this `forgets` them."""

    def __init__(self, path: str, settings: dict[str, Any], forgets: bool = False):
        self._path, self._content = path, read_json(path) if exists(path) else {}
        other = differing_options(with_whole_names(settings), with_whole_names(
            self._content.get("settings", {})))
        if self._content and other and not forgets:
            raise InputError(f"{path} was made with other {' and '.join(other)}; name another "
                             "--output_dir.")
        self._content = {**({} if other else self._content), "settings": settings}

    def get(self, *keys: str, measure: Callable[[], Any]) -> Any:
        """Returns the result under these keys; without one, measures and keeps it."""
        *folders, name = keys
        place = functools.reduce(lambda owner, key: owner.setdefault(key, {}), folders,
                                 self._content)
        if name not in place:
            place[name] = measure()
            self._write()
        return place[name]

    def put(self, key: str, value: Any) -> None:
        """Keeps a value made from all results, in place of the kept value."""
        self._content[key] = value
        self._write()

    def _write(self):
        content = read_json(self._path) if exists(self._path) else {}
        if content.get("settings") == as_json(self._content["settings"]):
            _fill(self._content, content)
        write_json(self._path, self._content)


def _fill(target, source):
    for name, value in source.items():
        if isinstance(value, dict) and isinstance(target.get(name), dict):
            _fill(target[name], value)
        else:
            target.setdefault(name, value)
