"""Checks of records that are cut from streams, such as XLNet's: each by itself, and their order."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def find_problems(f: dict[str, np.ndarray], ends: Mapping[str, int], record: Mapping[str, Any]
                  ) -> dict[str, np.ndarray]:
    """Finds the records with values that no job writes, as `verify_records.find_problems`; a
    feature's values must be below `ends`."""
    segments, change = f["seg_id"], np.diff(f["seg_id"], axis=1)
    problems = {f"{name} is not below {end}.": ((f[name] < 0) | (f[name] >= end)).any(1)
                for name, end in {**ends, "is_masked": 2, "label": 2}.items()}
    problems["seg_id is not zeros, then ones, then a 2."] = (
        (segments[:, 0] != 0) | (segments[:, -1] != 2) | (segments[:, -2] != 1)
        | ~np.isin(change, (0, 1)).all(1) | (change.sum(1) != 2))
    if not record:
        return problems
    options, vocabulary = record["options"], record["vocabulary"]
    ids, reuse = f["input"], options["reuse_len"]
    # The last place of segments 0 and 1 is a separator's.
    is_last = np.pad(change != 0, ((0, 0), (0, 1)))
    problems["the segments do not end with <sep>, <sep> and <cls>."] = (
        (ids[is_last].reshape(-1, 2) != vocabulary["sep_id"]).any(1)
        if (is_last.sum(1) == 2).all() else np.zeros(len(ids), bool)) | (
            ids[:, -1] != vocabulary["cls_id"])
    # Each target is the next token but at the ends of the three parts, and behind them.
    follows = np.ones_like(is_last)
    follows[:, [reuse - 1, -2, -1]] = False
    follows[:, :-1] &= ~is_last[:, 1:]
    problems["target is not the token that follows."] = (
        follows & (f["target"] != np.roll(ids, -1, 1))).any(1)
    if options["max_predictions_per_seq"]:
        problems[f"not {options['max_predictions_per_seq']} tokens are predicted."] = (
            f["is_masked"].sum(1) != options["max_predictions_per_seq"])
    return problems


class Order:
    """Finds records that do not continue their row of the batch before."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._rows = record["options"]["bsz_per_host"]
        self._reuse = record["options"]["reuse_len"]
        self._expected = np.zeros(0, np.int64)
        self._seen = 0

    def broken(self, f: dict[str, np.ndarray]) -> np.ndarray:
        """Returns bool [B] for the next records of a shard, given their features [B, length]."""
        # The token after the first part is where the next batch begins.
        expected = np.concatenate([self._expected, f["target"][:, self._reuse - 1]])
        firsts = f["input"][:, 0]
        late = max(self._rows - self._seen, 0)      # records of the first batch
        found = np.zeros(len(firsts), bool)
        found[late:] = firsts[late:] != expected[:max(len(firsts) - late, 0)]
        self._expected = expected[max(len(firsts) - late, 0):]
        self._seen += len(firsts)
        return found
