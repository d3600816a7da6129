"""Packs the records of a step into fewer rows (arXiv:2107.02027; best fit, longest first).

A packed batch holds its records as they are, in the same order, and three features more:
`packed_from` and `packed_at`, where each token goes (see `bert_tf/layers/masks.py`), and
`predictions`, which masked tokens count (see `used` in `bert_tf/objectives/pretraining.py`).

How records share rows depends on their lengths alone. The numbers of rows and of predictions are
multiples of a 32nd of the most, so that a device that must know all shapes compiles a few.

Shapes: B records, S sequence, R rows, P slots for predictions, M predictions.
"""

import bisect
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Self

import numpy as np
import tensorflow as tf

from bert_tf.data.batches.pipeline import RecordSet, as_it_is

_SHAPES = 32
# Records that are looked at to estimate the share of rows.
_SAMPLE = 1024


def lay_out(lengths: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Lays records into rows: the longest first, each into the fullest row that has room.

    Args:
        lengths: int [B], from 0 to `size`.
        size: S.

    Returns:
        The row and the first column of each record, int [B], and the number of rows.
    """
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


def _shape(mask, slots, parts):
    """(R, M), int64 [2]: of each part as many as the part with the most needs."""
    lengths, slots = _parts_of(mask, slots, parts)
    needed = max(lay_out(part, mask.shape[1])[2] for part in lengths)
    return np.array([rounded(needed, len(lengths[0])),
                     rounded(max(int(part.sum()) for part in slots), slots[0].size)
                     if slots[0].size else 0])


def _features(mask, slots, shape, parts):
    """Returns `packed_from`, `packed_at` and `predictions` of a batch; `shape` is (R, M) of each
    part, zeros to find it."""
    rows, count = shape if shape[0] else _shape(mask, slots, parts)
    lengths, slots = _parts_of(mask, slots, parts)
    plans = [plan(part, mask.shape[1], rows) for part in lengths]
    used = [np.argsort(~part.reshape(-1), kind="stable")[:count] for part in slots]
    return *map(np.concatenate, zip(*plans)), np.concatenate(used).astype(np.int32)


def _slots(batch):
    """Where slots for predictions count, bool [B, P]; [B, 0] in a batch without such."""
    weights = [batch[name] for name in ("masked_lm_weights", "span_weights") if name in batch]
    return tf.reduce_any(tf.stack(weights) > 0, 0) if weights else tf.zeros(
        [tf.shape(batch["input_mask"])[0], 0], tf.bool)


def _pack(batch, parts, shape):
    """Adds the features of packing to a batch of tensors, of which each of `parts` is packed alone;
    see `_features`."""
    found = dict(zip(("packed_from", "packed_at", "predictions"), tf.numpy_function(
        lambda mask, slots: _features(mask, slots, shape, parts),
        [batch["input_mask"], _slots(batch)], [tf.int32] * 3, stateful=False)))
    rows, count = (number * parts or None for number in shape)
    found["packed_from"].set_shape([rows, batch["input_mask"].shape[1]])
    found["packed_at"].set_shape(batch["input_mask"].shape)
    found["predictions"].set_shape([count])
    if "masked_lm_weights" not in batch:
        del found["predictions"]
    return {**batch, **found}


@dataclasses.dataclass(frozen=True)
class PackedRecords(RecordSet):
    """A `RecordSet` whose training batches are packed.

    `parts` is the number of parts of a global batch that are packed alone, since each is computed
    alone: replicas times parts of an accumulation.
    """

    parts: int = 1

    @classmethod
    def of(cls, records: RecordSet, parts: int) -> Self:
        """Packs the batches of records."""
        fields = {field.name: getattr(records, field.name)
                  for field in dataclasses.fields(records)}
        return cls(**fields, parts=parts)

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1,
                         length: tuple[int, int] | None = None) -> tf.data.Dataset:
        """Returns the batches of `RecordSet`, packed; with `length`, (R, M) of each part, only the
        global batches that have these numbers in `batch_lengths`."""
        if length is None:
            batches = super().training_batches(seed, taken, global_batch, replicas, worker, workers)
            return self._packed(batches, self.parts // replicas, (0, 0))
        shapes = self._shapes(seed, taken, global_batch)
        batches = super().training_batches(seed, taken, global_batch, replicas, worker, workers)
        local = replicas // workers
        chosen = tf.data.Dataset.zip(shapes, batches.batch(local)).filter(
            as_it_is(lambda shape, _: tf.reduce_all(shape == length)))
        return self._packed(chosen.map(as_it_is(lambda _, batch: batch)).unbatch(),
                            self.parts // replicas, length)

    def batch_lengths(self, seed: int, taken: int, global_batch: int
                      ) -> Iterator[tuple[int, int]]:
        """Yields (R, M) of the parts of each global batch, as many as the part with the most
        needs."""
        for shape in self._shapes(seed, taken, global_batch).as_numpy_iterator():
            yield int(shape[0]), int(shape[1])

    def share(self, global_batch: int) -> float:
        """Returns the rows that are computed as a share of the records, measured on the first
        steps."""
        part = global_batch // self.parts
        steps = max(_SAMPLE // global_batch, 1)
        shapes = itertools.islice(self.batch_lengths(0, 0, global_batch), steps)
        return sum(rows for rows, _ in shapes) / (steps * part)

    def _shapes(self, seed, taken, global_batch):
        """A dataset of (R, M), int64 [2], of each global batch."""
        def shape(batch):
            found = tf.numpy_function(lambda mask, slots: _shape(mask, slots, self.parts),
                                      [batch["input_mask"], _slots(batch)], tf.int64,
                                      stateful=False)
            found.set_shape([2])
            return found
        return super().training_batches(seed, taken, global_batch, 1).map(as_it_is(shape))

    def _packed(self, batches, parts, shape):
        return batches.map(as_it_is(lambda batch: _pack(batch, parts, shape))).prefetch(2)
