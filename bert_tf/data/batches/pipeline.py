"""Batches from records: (seed, epoch, step) decides which records come at a step, so a resumed run
sees the same records, and the state of the input is the number of records taken so far. Records may
share rows, see row_layout.py. Shapes: B records, S sequence, R rows, P slots for predictions, M
predictions."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import tensorflow as tf

from bert_tf import recipes
from bert_tf.data.batches.record_files import RecordFiles
from bert_tf.data.batches.row_layout import packed_features, packed_shape
from bert_tf.data.records import manifest
from bert_tf.data.records.features import without_autotune
from bert_tf.errors import InputError
from bert_tf.files import is_remote, tensorflow_name

_FILES_AT_ONCE = 16
_SHUFFLE_BUFFER = 1 << 14
_EVEN = 0.9                     # of the records of the largest share, the least that another has
# Of functions of a dataset: no AutoGraph, which would take longer than tracing.
as_it_is = tf.autograph.experimental.do_not_convert
# Records that are looked at to estimate the share of rows.
_SAMPLE = 1024


@dataclasses.dataclass(frozen=True)
class RecordSet(RecordFiles):
    """Pre-training records, and the batches that are read from them."""

    # Function (batch, seed, numbers int64 [B]) -> batch that hides tokens, by the seed and each
    # record's number in the stream alone, or, if its attribute `by_batch` is true, by the global
    # batch too. Its attribute `adds` names the features that it adds to masks.
    masks: Callable = lambda batch, seed, numbers: batch
    # The number of shares of the files. A global batch takes equally many rows from each share, one
    # share after the other, so a worker reads only the shares of its rows.
    shares: int = 1

    def in_shares(self, shares: int) -> "RecordSet":
        """Returns these records in so many shares; in one where that is impossible, or where one
        share would have 10% fewer records than another."""
        fits = not self.rows and not getattr(self.masks, "by_batch", False)
        if 1 < shares <= len(self.paths) and fits:
            sizes = [sum(self.counts[file] for file in share)
                     for share in file_shares(self.counts, shares)]
            if min(sizes) >= _EVEN * max(sizes):
                return dataclasses.replace(self, shares=shares)
        return dataclasses.replace(self, shares=1)

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """Returns an endless dataset of the batches of each replica of one worker: dicts
        [global_batch / replicas, length], for the worker's replicas in turn, step after step.

        All workers walk the same stream, or the streams of the shares that they need; each parses
        its own part of every global batch, so the batches do not depend on how many devices share
        them.

        Args:
            seed: int below 2**31.
            taken: records that were taken before, by all replicas together.
            global_batch: records a step over all replicas and workers.
            replicas: replicas of all workers together.
        """
        def finish(number, messages):
            return self.masks(self.format.parse(messages), seed, number)

        if self.shares > 1:
            rows = _rows_of_shares(self, seed, taken, global_batch, worker, workers)
            local = replicas // workers
            parts = rows.map(as_it_is(lambda *batch: tf.nest.map_structure(
                lambda column: tf.reshape(column, [local, global_batch // replicas]), batch)))
            return without_autotune(parts.unbatch().map(as_it_is(finish)).prefetch(2 * local))
        return _deal(_stream(self, seed, taken).enumerate(taken), finish, global_batch, replicas,
                     worker, workers, getattr(self.masks, "by_batch", False))

    def evaluation_batches(self, global_batch: int, max_steps: int, replicas: int,
                           worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """Returns each record once, in the files' order, dealt out as by `training_batches`.
        Records of zeros fill the last batch. `is_real_example`, float32 [global_batch / replicas],
        which only evaluation has, is 0 for them."""
        messages = _records_of(self.paths, self.paths, self.compression)
        blank = tf.data.Dataset.from_tensors(self.format.blank()).repeat(-self.size % global_batch)
        records = messages.concatenate(blank)
        if max_steps:
            records = records.take(max_steps * global_batch)

        def finish(number, messages):
            batch = self.format.parse(messages)
            batch["is_real_example"] = tf.cast(messages != self.format.blank(), tf.float32)
            return self.masks(batch, 0, number)

        return _deal(records.enumerate(), finish, global_batch, replicas, worker, workers,
                     getattr(self.masks, "by_batch", False))


def open_records(patterns: str | list[str], flag: str) -> Any:
    """Returns the `RecordSet` of a flag; where manifests name tasks, the recipe's mixture of them.
    InputError as by `RecordSet.open`, or if only some records belong to a task."""
    paths = manifest.record_files(patterns, flag)
    by_task: dict[str, list[str]] = {}
    manifests = manifest.find_manifests(paths)
    manifest.check_whole(manifests, patterns, flag)
    known = {path: recipes.of_manifest(record)
             for record, entries, _ in manifests for path in entries}
    for path in paths:
        by_task.setdefault(getattr(known.get(path), "task", ""), []).append(path)
    if not any(by_task):
        return RecordSet.open(patterns, flag)
    if "" in by_task:
        raise InputError(f"--{flag}: {by_task[''][0]} names no task, but other records do; train "
                         "on records of one recipe, with their manifests beside them.")
    recipe = next(iter(known.values()))
    return recipes.load(recipe.mixture)({
        name: RecordSet.open(by_task[name], flag) for name in recipe.tasks if name in by_task})


def file_shares(counts: Sequence[int], shares: int) -> list[list[int]]:
    """Divides files, by their numbers of records, among shares of about equal size; returns the
    indices of each share's files."""
    files: list[list[int]] = [[] for _ in range(shares)]
    sizes = [0] * shares
    for file in sorted(range(len(counts)), key=lambda file: -counts[file]):
        smallest = sizes.index(min(sizes))
        files[smallest].append(file)
        sizes[smallest] += counts[file]
    return [sorted(share) for share in files]


def _rows_of_shares(records, seed, taken, global_batch, worker, workers):
    """A dataset of (numbers, messages) [global_batch / workers] of a worker's rows."""
    shares = records.shares
    if global_batch % shares or taken % shares:
        raise InputError(f"--train_batch_size ({global_batch}) must be a multiple of {shares}, the "
                         "number of shares in which this run reads its files.")
    own_rows, of_share = global_batch // workers, global_batch // shares
    begin = worker * own_rows
    first, end = begin // of_share, -(-(begin + own_rows) // of_share)      # shares that are read
    streams = []
    for files in file_shares(records.counts, shares)[first:end]:
        share = dataclasses.replace(records, paths=[records.paths[file] for file in files],
                                    counts=[records.counts[file] for file in files])
        streams.append(_stream(share, seed, taken // shares).batch(of_share))
    begins = tf.data.Dataset.range(taken + begin, np.iinfo(np.int64).max, global_batch)

    def join(number, batches):
        messages = tf.concat(batches, 0)[begin - first * of_share:][:own_rows]
        return number + tf.range(own_rows, dtype=tf.int64), messages

    return tf.data.Dataset.zip(begins, tuple(streams)).map(as_it_is(join))


def _stream(records, seed, taken):
    first_epoch, skip = divmod(taken, records.size)
    return tf.data.Dataset.range(first_epoch, np.iinfo(np.int64).max).flat_map(
        as_it_is(lambda epoch: _epoch(records, seed, epoch))).skip(skip)


def _epoch(records, seed, epoch):
    # The order shall not depend on the global seed; within the graph of a dataset this sets it
    # for that graph alone.
    tf.random.set_seed(1)
    paths = tf.random.experimental.stateless_shuffle(records.paths, [seed, epoch])
    if records.rows:
        return _records_of(paths, records.paths, records.compression)
    messages = _record_files(paths, records.paths).interleave(
        as_it_is(lambda path: tf.data.TFRecordDataset(path, records.compression)),
        cycle_length=min(_FILES_AT_ONCE, len(records.paths)), deterministic=True,
        num_parallel_calls=tf.data.AUTOTUNE)
    buffer = min(records.size, _SHUFFLE_BUFFER)
    mixed = tf.random.stateless_uniform([], [seed, epoch], None, None, tf.int64)
    return messages.shuffle(buffer, mixed, reshuffle_each_iteration=False)


def _must_copy(paths):
    return any(is_remote(path) and not path.startswith("gs://") for path in paths)


def _record_files(paths, of):
    """The dataset of the names that TensorFlow opens the files `paths` by. If files of `of`, all
    names, must be copied to this machine, the next file is copied while one is read."""
    def copy(path):
        name = tf.numpy_function(lambda name: tensorflow_name(name.decode()), [path], tf.string)
        name.set_shape([])
        return name

    names = tf.data.Dataset.from_tensor_slices(paths)
    return names.map(copy).prefetch(1) if _must_copy(of) else names


def _records_of(paths, of, compression):
    """The serialised records of files, one file after the other; see `_record_files`."""
    if not _must_copy(of):
        return tf.data.TFRecordDataset(paths, compression)
    return _record_files(paths, of).flat_map(
        lambda path: tf.data.TFRecordDataset(path, compression))


def _deal(stream, finish, global_batch, replicas, worker, workers, by_batch):
    """Turns a stream of (number, message) into the batches of one worker's replicas. `finish` takes
    numbers and messages [B]; with `by_batch`, it takes the whole global batch at once."""
    local = replicas // workers
    batches = stream.batch(global_batch, drop_remainder=True)
    if replicas == 1:       # there is nothing to share
        return without_autotune(batches.map(as_it_is(finish)).prefetch(2))

    def share(*batch):
        batch = tf.nest.map_structure(lambda column: tf.reshape(
            column, [workers, local, global_batch // replicas, *column.shape[1:]])[worker], batch)
        return batch[0] if by_batch else batch

    if by_batch:
        return without_autotune(batches.map(as_it_is(finish)).map(as_it_is(share)).unbatch()
                                .prefetch(2 * local))
    own_batches = batches.map(as_it_is(share))
    return without_autotune(own_batches.unbatch().map(as_it_is(finish)).prefetch(2 * local))


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
    """A `RecordSet` whose training batches are packed."""

    # The number of parts of a global batch that are packed alone, since each is computed alone:
    # replicas times parts of an accumulation.
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
