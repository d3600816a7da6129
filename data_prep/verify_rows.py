"""Checks of records in rows that are read side by side, such as XLNet's: of each record, and of how
rows continue."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def outside(values: np.ndarray, end: int) -> np.ndarray:
    """Returns which rows of values [B, length] have one that is not in [0, end): bool [B]."""
    return ((values < 0) | (values >= end)).any(1)


def not_below(f: dict[str, np.ndarray], ends: Mapping[str, int]) -> dict[str, np.ndarray]:
    return {f"{name} is not below {end}.": outside(f[name], end) for name, end in ends.items()}


def find_problems(f: dict[str, np.ndarray], ends: Mapping[str, int], record: Mapping[str, Any]
                  ) -> dict[str, np.ndarray]:
    """Finds problems as `verify_records.find_problems`; values must be below `ends`."""
    if "seg_id" in f:
        problems = not_below(f, {**ends, "is_masked": 2, "label": 2})
        return problems | _stream_problems(f, record)
    problems = not_below(f, ends)
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


def _stream_problems(f, record):
    segments, change = f["seg_id"], np.diff(f["seg_id"], axis=1)
    problems = {"seg_id is not zeros, then ones, then a 2.": (
        (segments[:, 0] != 0) | (segments[:, -1] != 2) | (segments[:, -2] != 1)
        | ~np.isin(change, (0, 1)).all(1) | (change.sum(1) != 2))}
    if not record:
        return problems
    options, vocabulary = record["options"], record["vocabulary"]
    ids, reuse = f["input"], options["reuse_len"]
    # The last place of segments 0 and 1 is a separator's.
    is_last = np.pad(change != 0, ((0, 0), (0, 1)))
    wrong = ids[:, -1] != vocabulary["cls_id"]
    if (is_last.sum(1) == 2).all():
        wrong |= (ids[is_last].reshape(-1, 2) != vocabulary["sep_id"]).any(1)
    problems["the segments do not end with <sep>, <sep> and <cls>."] = wrong
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


def _breaks(read, expected, prefix, record):
    """Whether a token is neither the expected one nor the first of the next sentence."""
    first, last = record["vocabulary"]["cls_id"], record["vocabulary"]["sep_id"]
    if prefix:
        first, last = last, first
    return (read != expected) & ~((read == first) & (expected == last))


def _ends(f, options):
    """Returns the first token of each record and the token that must follow the record, for each
    direction; negative where the record does not show it."""
    if "seg_id" in f:       # the next batch begins after the first part
        return {"": (f["input"][:, 0], f["target"][:, options["reuse_len"] - 1])}
    if "is_start" in f:     # whether a text continues shows only at its weights
        weights, ids = f["next_token_weights"][:, -1], f["next_token_ids"][:, -1]
        return {"": (np.where(f["is_start"][:, 0] == 1, -1, f["input_ids"][:, 0]),
                     np.where(weights > 0, ids, -1))}
    return {prefix: (f[f"{prefix}input_ids"][:, 0], f[f"{prefix}next_token_ids"][:, -1])
            for prefix in ("", "reverse_")}


class Order:
    """Finds records that do not continue their row of the batch before."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record, self._rows = record, record["options"]["bsz_per_host"]
        self._before: dict[str, np.ndarray] = {}

    def broken(self, f: dict[str, np.ndarray]) -> np.ndarray:
        """Returns bool [B] for the next records of a shard, given their features [B, length]."""
        is_broken = np.zeros(len(next(iter(f.values()))), bool)
        for prefix, (read, following) in _ends(f, self._record["options"]).items():
            before = self._before.get(prefix, np.zeros(0, np.int64))
            late = max(self._rows - len(before), 0)     # records of the first batch
            expected = np.concatenate([before, following])[:max(len(read) - late, 0)]
            read = read[late:]
            wrong = read != expected
            if "seg_id" not in f:
                wrong = _breaks(read, expected, prefix, self._record)
            is_broken[late:] |= wrong & (read >= 0) & (expected >= 0)
            self._before[prefix] = np.concatenate([before, following])[-self._rows:]
        return is_broken
