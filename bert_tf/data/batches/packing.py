"""Training batches whose records share rows, see row_layout.py. Shapes: B records, S sequence, R
rows, P slots for predictions, M predictions."""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Self

import tensorflow as tf

from bert_tf.data.batches.pipeline import RecordSet, as_it_is
from bert_tf.data.batches.row_layout import packed_features, packed_shape

# Records that are looked at to estimate the share of rows.
_SAMPLE = 1024


def _slots(batch):
    """Returns which slots hold predictions, bool [B, P]; [B, 0] in a batch without slots."""
    weights = [batch[name] for name in ("masked_lm_weights", "span_weights") if name in batch]
    if not weights:
        return tf.zeros([tf.shape(batch["input_mask"])[0], 0], tf.bool)
    return tf.reduce_any(tf.stack(weights) > 0, 0)


def _pack(batch, parts, shape):
    """Adds the features of packing to a batch of tensors; each of its `parts` is packed alone. See
    `packed_features`."""
    packing = dict(zip(("packed_from", "packed_at", "predictions"), tf.numpy_function(
        lambda mask, slots: packed_features(mask, slots, shape, parts),
        [batch["input_mask"], _slots(batch)], [tf.int32] * 3, stateful=False)))
    rows, count = (number * parts or None for number in shape)
    packing["packed_from"].set_shape([rows, batch["input_mask"].shape[1]])
    packing["packed_at"].set_shape(batch["input_mask"].shape)
    packing["predictions"].set_shape([count])
    if "masked_lm_weights" not in batch:
        del packing["predictions"]
    return {**batch, **packing}


@dataclasses.dataclass(frozen=True)
class PackedRecords(RecordSet):
    """A `RecordSet` whose training batches are packed.

    `parts` is the number of parts of a global batch that are packed alone, since each is computed
    alone: replicas times parts of an accumulation.
    """

    parts: int = 1

    @classmethod
    def of(cls, records: RecordSet, parts: int) -> Self:
        return cls(**vars(records), parts=parts)

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1,
                         length: tuple[int, int] | None = None) -> tf.data.Dataset:
        """Returns the batches of `RecordSet`, packed; with `length`, (R, M) of each part, only the
        global batches that have these numbers in `batch_lengths`."""
        batches = super().training_batches(seed, taken, global_batch, replicas, worker, workers)
        if length is not None:
            shapes = self._shapes(seed, taken, global_batch)
            chosen = tf.data.Dataset.zip(shapes, batches.batch(replicas // workers)).filter(
                as_it_is(lambda shape, _: tf.reduce_all(shape == length)))
            batches = chosen.map(as_it_is(lambda _, batch: batch)).unbatch()
        return batches.map(as_it_is(lambda batch: _pack(
            batch, self.parts // replicas, length or (0, 0)))).prefetch(2)

    def batch_lengths(self, seed: int, taken: int, global_batch: int) -> Iterator[tuple[int, int]]:
        """Yields (R, M) of the parts of each global batch, as many as the part with the most
        needs."""
        for shape in self._shapes(seed, taken, global_batch).as_numpy_iterator():
            yield int(shape[0]), int(shape[1])

    def share(self, global_batch: int) -> float:
        """Returns the rows that are computed as a share of the records, measured on the first
        steps, at most an epoch."""
        part = global_batch // self.parts
        steps = max(min(_SAMPLE, self.size) // global_batch, 1)
        shapes = itertools.islice(self.batch_lengths(0, 0, global_batch), steps)
        return sum(rows for rows, _ in shapes) / (steps * part)

    def _shapes(self, seed, taken, global_batch):
        """A dataset of (R, M), int64 [2], of each global batch."""
        def shape(batch):
            sizes = tf.numpy_function(lambda mask, slots: packed_shape(mask, slots, self.parts),
                                      [batch["input_mask"], _slots(batch)], tf.int64,
                                      stateful=False)
            sizes.set_shape([2])
            return sizes
        return super().training_batches(seed, taken, global_batch, 1).map(as_it_is(shape))
