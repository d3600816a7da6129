"""The flags of a benchmark that resumes where it was stopped."""

import dataclasses
import os
from typing import Any, ClassVar

from bert_tf import flags
from bert_tf.files import make_folder
from bert_tf.flags import check
from run_scripts.kept_results import KeptResults


class KeptComparison:
    """A command that resumes where it was stopped: the base of its dataclass of flags, which has
    `output_dir`.

    Attributes:
        free: flags that may change when it resumes.
    """

    free: ClassVar[tuple[str, ...]] = ("num_trials",)
    output_dir: str

    def check(self) -> None:
        """Raises InputError for values that can't work."""
        check(self)

    def settings(self) -> dict[str, Any]:
        """Returns the values that must be equal for results to be comparable."""
        values = dataclasses.asdict(self)       # type: ignore[call-overload]
        return {name: value for name, value in values.items()
                if name not in ("output_dir", *self.free)}

    def path(self, *parts: str) -> str:
        """A path in the output folder."""
        return os.path.join(self.output_dir, *parts)

    def open_results(self, *others: Any, contents: dict[str, Any] | None = None) -> KeptResults:
        """Opens the results in the output folder, which is made. Flags of `others` that differ from
        their defaults must be equal too, and `contents`, values that identify files."""
        make_folder(self.output_dir, "output_dir")
        settings = self.settings() | (contents or {})
        for other in others:
            settings |= flags.changed(other)
        results = KeptResults(self.path("results.json"), settings)
        flags.keep(self, self.output_dir)       # not those that do not fit the results
        return results
