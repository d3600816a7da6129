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


def plan(lengths: np.ndarray, size: int, count: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns `packed_from`, int32 [R, S], and `packed_at`, int32 [B, S], of records of these
    lengths, int [B]. `count` is R; 0: the least that is allowed."""
    rows, columns, needed = lay_out(lengths, size)
    first = rows * size + columns                                           # [B]
    place = first[:, None] + np.arange(size)                                # [B, S]
    is_token = np.arange(size) < lengths[:, None]
    source = np.full((count or rounded(needed, len(lengths))) * size, -1, np.int32)
    source[place[is_token]] = np.flatnonzero(is_token)
    return source.reshape(-1, size), np.where(is_token, place, 0).astype(np.int32)


def _used_slots(counted, count):
    """`predictions`, int32 [M], of a bool [B, P] that is true where a slot counts."""
    order = np.argsort(~counted.reshape(-1), kind="stable")
    return order[:count or rounded(int(counted.sum()), counted.size)].astype(np.int32)


def _lengths(mask):
    """The places up to the last token of each record, int [B], of `input_mask` [B, S]."""
    size = mask.shape[1]
    return np.where(mask.any(1), size - np.argmax(mask[:, ::-1] != 0, axis=1), 0)


def _counted(batch):
    """Where slots for predictions count, bool [B, P]; None in a batch without such."""
    weights = [batch[name] for name in ("masked_lm_weights", "span_weights") if name in batch]
    return tf.reduce_any(tf.stack(weights) > 0, 0) if weights else None


def _pack(batch, parts, shape):
    """Adds the three features to a batch of tensors, of which each of `parts` is packed alone.
    `shape` is (R, M) of each part; zeros: as many as the part with the most needs."""
    size, counted = batch["input_mask"].shape[1], _counted(batch)
    has_slots = counted is not None

    def features(mask, *slots):
        pieces = np.split(_lengths(mask), parts)
        count = shape[0] or rounded(max(lay_out(p, size)[2] for p in pieces), len(pieces[0]))
        found = [np.concatenate(p) for p in zip(*(plan(piece, size, count) for piece in pieces))]
        for slot in slots:
            pieces = np.split(slot, parts)
            count = shape[1] or rounded(max(int(p.sum()) for p in pieces), pieces[0].size)
            found.append(np.concatenate([_used_slots(piece, count) for piece in pieces]))
        return found

    given = [batch["input_mask"], *([counted] if has_slots else [])]
    names = ["packed_from", "packed_at", *(["predictions"] if has_slots else [])]
    found = dict(zip(names, tf.numpy_function(features, given, [tf.int32] * len(names),
                                              stateful=False)))
    rows, slots = (count and count * parts or None for count in shape)
    found["packed_from"].set_shape([rows, size])
    found["packed_at"].set_shape(batch["input_mask"].shape)
    if has_slots:
        found["predictions"].set_shape([slots])
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
            counted = _counted(batch)

            def numbers(mask, *slots):
                size = mask.shape[1]
                rows = max(lay_out(piece, size)[2]
                           for piece in np.split(_lengths(mask), self.parts))
                found = [rounded(rows, len(mask) // self.parts), 0]
                for slot in slots:
                    pieces = np.split(slot, self.parts)
                    found[1] = rounded(max(int(p.sum()) for p in pieces), pieces[0].size)
                return np.array(found)

            given = [batch["input_mask"], *([] if counted is None else [counted])]
            found = tf.numpy_function(numbers, given, tf.int64, stateful=False)
            found.set_shape([2])
            return found
        return super().training_batches(seed, taken, global_batch, 1).map(as_it_is(shape))

    def _packed(self, batches, parts, shape):
        return batches.map(as_it_is(lambda batch: _pack(batch, parts, shape))).prefetch(2)
