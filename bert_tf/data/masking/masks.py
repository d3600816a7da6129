"""Masks of records: the predicted tokens of each sequence, and the tokens in their place."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

MASK, KEEP = -2, -1     # replacements that are not token ids, as `PythonRandom.throws` gives them


def quotas(max_seq_length: int, masked_lm_prob: float, max_predictions_per_seq: int,
           raised_without: int | None = None) -> list[int]:
    """The most predictions in a sequence of 0 .. S tokens, special tokens counted: list [S + 1].

    With `raised_without` special tokens that do not count, shares are rounded up.
    """
    if raised_without is not None:
        return [min(max_predictions_per_seq, math.ceil(masked_lm_prob * max(length, 0)))
                for length in range(-raised_without, max_seq_length - raised_without + 1)]
    return [min(max_predictions_per_seq, max(1, int(round(length * masked_lm_prob))))
            for length in range(max_seq_length + 1)]


@dataclasses.dataclass
class Masks:
    """The predictions of M sequences, by position.

    Attributes:
        positions: uint16 [M, P], in the sequence with its special tokens; 0 where unused.
        replacements: int32 [M, P]: a token id, MASK or KEEP.
        counts: uint16 [M], how many of the P are used.
        extra: further features of the predictions, arrays [M, P] by name, 0 where unused.
    """

    positions: np.ndarray
    replacements: np.ndarray
    counts: np.ndarray
    extra: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def used(self) -> np.ndarray:
        """bool [M, P]."""
        return np.arange(self.positions.shape[1]) < self.counts[:, None]

    def rows(self, rows) -> "Masks":
        return Masks(self.positions[rows], self.replacements[rows], self.counts[rows],
                     {name: values[rows] for name, values in self.extra.items()})

    @classmethod
    def join(cls, parts: Sequence["Masks"]) -> "Masks":
        arrays = (np.concatenate([getattr(part, name) for part in parts])
                  for name in ("positions", "replacements", "counts"))
        return cls(*arrays, {name: np.concatenate([part.extra[name] for part in parts])
                             for name in parts[0].extra})

    def hide(self, input_ids: np.ndarray, mask_id: int) -> dict[str, np.ndarray]:
        """Puts the replacements into `input_ids` [M, S], in place.

        Returns:
            masked_lm_positions and masked_lm_ids, int [M, P], and masked_lm_weights, float32
            [M, P], the three 0 where unused; and `extra`.
        """
        positions, used = self.positions.astype(np.int64), self.used
        labels = np.take_along_axis(input_ids, positions, 1)
        shown = np.where(self.replacements == KEEP, labels, self.replacements)
        shown = np.where(shown == MASK, mask_id, shown)
        row = np.broadcast_to(np.arange(len(input_ids))[:, None], used.shape)
        input_ids[row[used], positions[used]] = shown[used]
        return {"masked_lm_positions": positions, "masked_lm_ids": np.where(used, labels, 0),
                "masked_lm_weights": used.astype(np.float32), **self.extra}
