"""What became of every tensor, to be printed."""

import collections
import dataclasses


@dataclasses.dataclass(frozen=True)
class Account:
    """What became of every tensor of a file and of every variable of a model or other format.

    Attributes:
        source: the file.
        mapped: the file's tensor by our name.
        ignored: the reason by the name of the file's tensor.
        missing: our names that the file doesn't hold.
        absent: what becomes of those that are missing.
        notes: further sentences.
    """

    source: str
    mapped: dict
    ignored: dict
    missing: list
    absent: str = "left at their initial values"
    notes: tuple = ()

    def __str__(self):
        lines = [f"{self.source}: {len(self.mapped)} tensors mapped."]
        for reason, count in collections.Counter(self.ignored.values()).items():
            lines.append(f"{count} ignored: {reason}.")
        if self.missing:
            lines.append(f"{len(self.missing)} not in the file, {self.absent}: "
                         f"{', '.join(self.missing)}.")
        return "\n".join((*lines, *self.notes))
