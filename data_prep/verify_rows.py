"""Checks of the records of recurrent language models: each by itself, and how rows go on."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def find_problems(f: dict[str, np.ndarray], ends: Mapping[str, int], record: Mapping[str, Any]
                  ) -> dict[str, np.ndarray]:
    """Finds the records with values that no job writes, as `verify_records.find_problems`; a
    feature's values must be below `ends`."""
    problems = {f"{name} is not below {end}.": ((f[name] < 0) | (f[name] >= end)).any(1)
                for name, end in ends.items()}
    if "next_token_weights" in f:
        mask = f["input_mask"]
        problems["input_mask is not ones, then zeros."] = (
            mask != (np.arange(mask.shape[1]) < mask.sum(1, keepdims=True))).any(1)
        weights = f["next_token_weights"]
        problems["next_token_weights are not 0 or 1, and 0 in the padding."] = (
            ((weights != 0) & (weights != 1)) | ((weights > 0) & (mask == 0))).any(1)
        problems["is_start is not 0 or 1."] = ~np.isin(f["is_start"], (0, 1)).all(1)
        return problems
    if record:
        for prefix in ("", "reverse_"):
            read, following = f[f"{prefix}input_ids"], f[f"{prefix}next_token_ids"]
            problems[f"{prefix}next_token_ids are not the tokens that follow."] = _breaks(
                read[:, 1:], following[:, :-1], prefix, record).any(1)
    return problems


def _breaks(read, expected, prefix, record):
    """Returns whether a token is neither the one expected nor the first of a sentence after the
    last of one."""
    first, last = record["vocabulary"]["cls_id"], record["vocabulary"]["sep_id"]
    if prefix:
        first, last = last, first
    return (read != expected) & ~((read == first) & (expected == last))


class Order:
    """Finds records that do not continue their row of the batch before."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record, self._rows = record, record["options"]["bsz_per_host"]
        self._before: dict[str, np.ndarray] = {}

    def broken(self, f: dict[str, np.ndarray]) -> np.ndarray:
        """Returns bool [B] for the next records of a shard, given their features [B, length]."""
        if "is_start" in f:     # whether a text continues shows only at its weights
            weights, ids = f["next_token_weights"][:, -1], f["next_token_ids"][:, -1]
            now = {"": (np.where(f["is_start"][:, 0] == 1, -1, f["input_ids"][:, 0]),
                        np.where(weights > 0, ids, -1))}
        else:
            now = {prefix: (f[f"{prefix}input_ids"][:, 0], f[f"{prefix}next_token_ids"][:, -1])
                   for prefix in ("", "reverse_")}
        found = np.zeros(len(f["input_ids"]), bool)
        for prefix, (read, following) in now.items():
            before = self._before.get(prefix, np.zeros(0, np.int64))
            late = max(self._rows - len(before), 0)     # records of the first batch
            expected = np.concatenate([before, following])[:max(len(read) - late, 0)]
            read = read[late:]
            wrong = _breaks(read, expected, prefix, self._record)
            found[late:] |= wrong & (read >= 0) & (expected >= 0)
            self._before[prefix] = np.concatenate([before, following])[-self._rows:]
        return found
