"""Lays the records of a step into fewer rows (arXiv:2107.02027; best fit, longest first).

A packed batch holds its records as they are, and three features more: `packed_from` and
`packed_at`, where each token goes (see `bert_tf/layers/changes.py`), and `predictions`, which
masked tokens count (see `used` in `bert_tf/bert/objective.py`). The numbers of rows and of
predictions are multiples of a 32nd of the most, so that a device that must know all shapes compiles
a few.

Shapes: B records, S sequence, R rows, P slots for predictions, M predictions.
"""

import bisect

import numpy as np

_SHAPES = 32


def lay_out(lengths: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Lays records of lengths int [B], from 0 to `size`, into rows: the longest first, each into
    the fullest row that has room. Returns the row and the first column of each record, int [B], and
    the number of rows."""
    rows, columns = np.zeros((2, len(lengths)), np.int64)
    room: list[tuple[int, int]] = []        # (free places, row), in order
    count = 0
    for record in np.argsort(-lengths, kind="stable"):
        length = int(lengths[record])
        if not length:
            break
        fit = bisect.bisect_left(room, (length, -1))
        if fit < len(room):
            free, row = room.pop(fit)
        else:
            free, row, count = size, count, count + 1
        rows[record], columns[record] = row, size - free
        if free > length:
            bisect.insort(room, (free - length, row))
    return rows, columns, count


def rounded(count: int, most: int) -> int:
    """Returns the least of the allowed counts that is at least `count`; `most` is the largest."""
    step = -(-most // _SHAPES)
    return min(max(-(-count // step), 1) * step, most)


def plan(lengths: np.ndarray, size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns `packed_from`, int32 [R, S], and `packed_at`, int32 [B, S], of records of these
    lengths, int [B]. `count` is R, at least as many as `lay_out` needs."""
    rows, columns, _ = lay_out(lengths, size)
    place = (rows * size + columns)[:, None] + np.arange(size)              # [B, S]
    is_token = np.arange(size) < lengths[:, None]
    source = np.full(count * size, -1, np.int32)
    source[place[is_token]] = np.flatnonzero(is_token)
    return source.reshape(-1, size), np.where(is_token, place, 0).astype(np.int32)


def _parts_of(mask, slots, parts):
    """Returns the lengths of the records of each part, and where its slots count."""
    size = mask.shape[1]
    lengths = np.where(mask.any(1), size - np.argmax(mask[:, ::-1] != 0, axis=1), 0)
    return np.split(lengths, parts), np.split(slots, parts)


def packed_shape(mask, slots, parts):
    """Returns (R, M) of each part, int64 [2]: as many as the part with the most needs. `mask` is
    `input_mask`, integer [B, S]; `slots` tell which slots for predictions count, bool [B, P]."""
    lengths, slots = _parts_of(mask, slots, parts)
    rows = max(lay_out(part, mask.shape[1])[2] for part in lengths)
    count = 0
    if slots[0].size:
        count = rounded(max(int(part.sum()) for part in slots), slots[0].size)
    return np.array([rounded(rows, len(lengths[0])), count])


def packed_features(mask, slots, shape, parts):
    """Returns `packed_from`, `packed_at` and `predictions` of a batch. `shape` is (R, M) of each
    part, zeros to find it; see `packed_shape` for the others."""
    rows, count = shape if shape[0] else packed_shape(mask, slots, parts)
    lengths, slots = _parts_of(mask, slots, parts)
    plans = [plan(part, mask.shape[1], rows) for part in lengths]
    used = [np.argsort(~part.reshape(-1), kind="stable")[:count] for part in slots]
    return *map(np.concatenate, zip(*plans)), np.concatenate(used).astype(np.int32)
