"""Results that a command keeps as they arrive: started again, it measures only what is missing."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any, ClassVar

from bert_tf.errors import InputError
from bert_tf.files import make_folder, write_json
from bert_tf.flags import check
from bert_tf.options import defaults_of, read_json


class KeptResults:
    """Results in a JSON file, written as they arrive: a run that is finished is not run again.

    Args:
        path: the file.
        settings: what must be equal for results to be comparable.
        forgets: whether results that were made with other settings are forgotten.
        contents: what identifies the files that results depend on, which earlier versions did not
            keep; a name that is absent on disk is not compared.

    Raises:
        InputError: the file's results were made with other settings, and are not forgotten.
    """

    def __init__(self, path: str, settings: dict[str, Any], forgets: bool = False,
                 contents: dict[str, Any] | None = None):
        self._path, self._content = path, read_json(path) if os.path.exists(path) else {}
        known, contents = self._content.get("contents", {}), contents or {}
        is_same = self._content.get("settings", {}) == settings and all(
            known.get(name, value) == value for name, value in contents.items())
        if self._content and not (is_same or forgets):
            raise InputError(f"{path} was made with other flags; name another --output_dir.")
        self._content = {**(self._content if is_same else {}), "settings": settings,
                         **({"contents": contents} if contents else {})}
        if contents != known and os.path.exists(path):
            write_json(path, self._content)

    def get(self, *keys: str, measure: Callable[[], Any]) -> Any:
        """The result under these keys; that of `measure()`, which is kept, if there is none yet."""
        *folders, name = keys
        place = functools.reduce(lambda owner, key: owner.setdefault(key, {}), folders,
                                 self._content)
        if name not in place:
            place[name] = measure()
            write_json(self._path, self._content)
        return place[name]

    def put(self, key: str, value: Any) -> None:
        """Keeps what was made of all results, in the place of what is there."""
        self._content[key] = value
        write_json(self._path, self._content)


class KeptComparison:
    """A command that goes on where it was stopped: the base of its dataclass of flags, which has
    `output_dir`.

    Attributes:
        free: flags that may change when it goes on.
    """

    free: ClassVar[tuple[str, ...]] = ("num_trials",)
    output_dir: str

    def check(self) -> None:
        """Raises InputError for values that can't work."""
        check(self)

    def settings(self) -> dict[str, Any]:
        """What must be equal for results to be comparable."""
        values = dataclasses.asdict(self)       # type: ignore[call-overload]
        return {name: value for name, value in values.items()
                if name not in ("output_dir", *self.free)}

    def path(self, *parts: str) -> str:
        """A path in the output folder."""
        return os.path.join(self.output_dir, *parts)

    def open_results(self, *others: Any) -> KeptResults:
        """The results in the output folder, which is made.

        Args:
            others: further dataclasses of flags, of which those that differ from their defaults
                must be equal too.

        Raises:
            InputError: they are of other flags.
        """
        make_folder(self.output_dir, "output_dir")
        settings = self.settings()
        for other in others:
            defaults = defaults_of(type(other))
            settings |= {name: value for name, value in dataclasses.asdict(other).items()
                         if value != defaults.get(name)}
        return KeptResults(self.path("results.json"), settings)
