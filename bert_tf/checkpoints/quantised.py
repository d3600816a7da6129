"""Models whose matrices are stored as integers of 2 to 8 bits: `quantised.safetensors`. Each
`NAME/integers` has a `NAME/range`, float32: the greatest magnitude (scheme symmetric), or the least
and the greatest number of each group [2, G]. Other tensors are float32."""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence

import numpy as np

from bert_tf.checkpoints import checksummed, rules
from bert_tf.checkpoints.keras_file import described_objectives
from bert_tf.checkpoints.rules import Format, Source, Tensor

NAME = rules.QUANTISED
_FORMAT = Format(rows=None, ignored=(
    (r".*/ranges/\w+", "ranges of a network that rounds its numbers"),))


@dataclasses.dataclass(frozen=True)
class Rounded:
    """A matrix of `integers`, int64 [I, O], of so many `bits`, and their `range`, a float32 scalar
    or [2, G] (see bert_tf/layers/quantisation.py)."""

    integers: np.ndarray
    range: np.ndarray
    bits: int

    def pack(self) -> np.ndarray:
        """Returns int8 [I, O], or, for fewer bits, uint8 with one number after the other."""
        if self.bits == 8:
            return self.integers.astype(np.int8)
        values = (self.integers + 2 ** (self.bits - 1)).astype(np.uint8).reshape(-1, 1)
        return np.packbits(np.unpackbits(values, axis=1, count=self.bits, bitorder="little"))

    @classmethod
    def unpack(cls, packed: np.ndarray, spread: np.ndarray, bits: int, shape: Sequence[int]
               ) -> "Rounded":
        """Inverts `pack`, given the range, and [I, O]."""
        if bits == 8:
            return cls(packed.astype(np.int64), spread, bits)
        single = np.unpackbits(packed, count=int(np.prod(shape)) * bits).reshape(-1, bits)
        values = np.packbits(single, axis=1, bitorder="little")[:, 0].astype(np.int64)
        return cls(values.reshape(shape) - 2 ** (bits - 1), spread, bits)

    def floats(self) -> np.ndarray:
        """Returns float32 [I, O] that rounds to these integers with this range."""
        if self.range.ndim == 0:
            largest = 2 ** (self.bits - 1) - 1
            floats = (self.integers * (self.range / np.float32(largest))).astype(np.float32)
            return np.where(np.abs(self.integers) == largest, np.sign(self.integers) * self.range,
                            floats).astype(np.float32)
        low, high = (np.repeat(end, self.integers.shape[1] // len(end)) for end in self.range)
        half = 2 ** (self.bits - 1)
        scale = np.float32(2**self.bits - 1) / np.maximum(high - low, np.float32(1e-8))
        zero = np.round(scale * low) + half
        floats = (self.integers + zero) / scale
        # The ends of a range stand for themselves, so that it is found again.
        groups = self.integers.reshape(len(floats), self.range.shape[1], -1)
        for end, values in ((groups.min((0, 2)), low), (groups.max((0, 2)), high)):
            reached = np.repeat(end, groups.shape[2])
            floats = np.where(self.integers == reached, values, floats)
        return floats.astype(np.float32)


def find(path: str) -> str | None:
    return rules.named(path, NAME)


def write(folder: str, tensors: dict[str, np.ndarray | Rounded], objectives: list[dict]) -> str:
    """Writes the file into `folder` and returns its path. `tensors` have our names; `objectives`
    are Keras's descriptions of a Learner's."""
    held, rounded = {}, {}
    for name, tensor in tensors.items():
        if isinstance(tensor, Rounded):
            held[f"{name}/integers"], held[f"{name}/range"] = tensor.pack(), tensor.range
            rounded[name] = [tensor.bits, list(tensor.integers.shape)]
        else:
            held[name] = tensor
    path = os.path.join(folder, NAME)
    checksummed.write(path, held, {"rounded": rounded, "objectives": objectives})
    return path


def _tensor(name, held: Mapping[str, np.ndarray], rounded):
    if name not in rounded:
        return Tensor(name, held[name].shape, str(held[name].dtype), lambda: held[name])
    bits, shape = rounded[name]
    read = functools.cache(lambda: Rounded.unpack(
        held[f"{name}/integers"], held[f"{name}/range"], bits, shape).floats())
    return Tensor(name, tuple(shape), "float32", read)


def read(file: str) -> Source:
    held, extra = checksummed.read(file)
    rounded = extra["rounded"]
    plain = [name for name in held if not name.endswith(("/integers", "/range"))]
    return Source(file, rules.config_beside(file),
                  {name: _tensor(name, held, rounded) for name in (*plain, *rounded)}, _FORMAT,
                  rules.vocabulary_beside(file),
                  objectives=tuple(described_objectives(extra, file)))
