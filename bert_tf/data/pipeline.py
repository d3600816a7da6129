"""Batches from records: which record comes at which step is a function of (seed, epoch, step).

So the state of the input is one integer, the number of records taken so far, and a run that is
started again sees exactly what it would have seen. Records are skipped before they are parsed.
"""

import dataclasses
import itertools
import os
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert_tf import recipes
from bert_tf.data import manifest, tfrecord
from bert_tf.data.features import RecordFormat, without_autotune
from bert_tf.data.pairing import PAIRINGS
from bert_tf.errors import InputError
from bert_tf.files import find_files, is_gzip

_FILES_AT_ONCE = 16
_SHUFFLE_BUFFER = 1 << 14
_TABLE_ROWS = 128    # of a table of embeddings may be made full
_SAMPLE = 16    # records of each file that are looked at before training starts
# Of functions of a dataset: no AutoGraph, which would take longer than tracing.
_as_it_is = tf.autograph.experimental.do_not_convert


def _no_masks(batch, seed, numbers):
    """The batch as it is: its tokens are hidden already."""
    del seed, numbers
    return batch


@dataclasses.dataclass(frozen=True)
class RecordSet:
    """Pre-training records on disk, found to be consistent.

    Attributes:
        paths: the TFRecord files, all plain or all gzip.
        counts: records in each.
        format: `RecordFormat` of every record.
        manifest: that of the records, a dict, or None; the first of several, which agree on the
            vocabulary and the recipe.
        masks: function (batch, seed, numbers int64 [B]) -> batch that hides tokens. What it hides
            must depend on the seed and each record's number in the stream alone, or, if its
            attribute `by_batch` is true, on the global batch besides. Its attribute `adds`, if it
            has one, names the features that it adds beside those of masks.
    """

    paths: list[str]
    counts: list[int]
    format: RecordFormat
    manifest: dict | None
    masks: Callable = _no_masks

    @property
    def tasks(self) -> tuple[str, ...]:
        """Those of the records: none, where they are of one kind."""
        return ()

    @property
    def size(self) -> int:
        """The number of records."""
        return sum(self.counts)

    @property
    def vocab_hash(self) -> str | None:
        """Of the vocabulary they were made with; None without a manifest."""
        return self.manifest and self.manifest["vocabulary"]["sha256"]

    @property
    def rows(self) -> int:
        """The size of the batches of records that are in order: each record of a batch continues
        one of the batch before. 0 where records may be shuffled."""
        if self.manifest is None:
            return 0
        pairing = PAIRINGS[recipes.of_manifest(self.manifest).segments.pairing]
        if not (pairing.in_streams or pairing.in_rows):
            return 0
        return self.manifest["options"]["bsz_per_host"]

    def check_batch(self, size: int, size_flag: str, flag: str) -> None:
        """Checks that records in order come in the batches for which they were made.

        Args:
            size: of a batch over all devices.
            size_flag, flag: the flags that give it and the records.

        Raises:
            InputError: they do not.
        """
        if self.rows and size != self.rows:
            raise InputError(
                f"--{size_flag} is {size}, but the records of --{flag} were made for batches of "
                f"{self.rows}, of which each continues the one before; give --{size_flag}="
                f"{self.rows}, or make them again with --bsz_per_host={size}.")

    @property
    def compression(self) -> str:
        """"GZIP" or "", as TFRecordDataset wants it."""
        return "GZIP" if is_gzip(self.paths[0]) else ""

    @classmethod
    def open(cls, patterns: str | list[str], flag: str) -> "RecordSet":
        """Finds records and checks what can be checked without reading them all.

        Counts come from the manifest where there is one and the file's size agrees with it, else
        from walking the file, which finds truncated records.

        Args:
            patterns: files, globs or folders.
            flag: the flag that names them, for messages.

        Raises:
            InputError: no file, no records, a truncated one, different formats.
        """
        paths, counts, manifests = _find(patterns, flag)
        known = {path: record for record, entries in manifests for path in entries}
        found = [RecordFormat.of_file(path, known.get(path, {}).get("features"))
                 for path in paths]
        _check_formats(flag, paths, found)
        record = manifests[0][0] if manifests else None
        _check_manifests(flag, [record for record, _ in manifests])
        vocab_size = record and record["vocabulary"]["size"]
        return cls(paths, counts, dataclasses.replace(found[0], vocab_size=vocab_size), record)

    def check(self, flag: str, max_seq_length: int, max_predictions_per_seq: int, vocab_size: int,
              num_labels: int = 2) -> "RecordSet":
        """Checks that flags and the configuration agree with the records.

        Args:
            flag: the flag that names the records.
            max_seq_length, max_predictions_per_seq: the flags.
            vocab_size: of the configuration.
            num_labels: what `next_sentence_labels` must be below.

        Returns:
            This `RecordSet`, which knows `vocab_size` and `num_labels` then.

        Raises:
            InputError: they disagree.
        """
        for name, value in (("max_seq_length", max_seq_length),
                            ("max_predictions_per_seq", max_predictions_per_seq)):
            if self.format.sizes.get(name, value) != value:
                raise InputError(f"--{name} is {value}, but the records of --{flag} were made "
                                 f"with {self.format.sizes[name]}: {self.paths[0]}.")
        made = self.format.vocab_size or vocab_size
        if vocab_size not in (made, made + -made % _TABLE_ROWS):
            raise InputError(
                f"vocab_size is {vocab_size} in --bert_config_file, but the records of --{flag} "
                f"were made with {self.format.vocab_size} tokens.")
        known = dataclasses.replace(self, format=dataclasses.replace(
            self.format, vocab_size=vocab_size, num_labels=num_labels))
        known.locate_damage(_SAMPLE)
        return known

    def identity(self) -> dict:
        """What must be equal for a position in the stream to mean the same records.

        Earlier versions kept the list of the first values: new names come last.
        """
        return {"counts": self.counts, **self.format.sizes}

    def locate_damage(self, most: int | None = None) -> None:
        """Reads the files, or the first `most` records of each, to find what is wrong with them.

        Raises:
            InputError: a record is damaged or can't be trained on; names it.
        """
        for path in self.paths:
            _check_records(path, self.format, most)

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """An endless dataset of the batches of each replica of one worker.

        All workers walk the same stream; each parses its own part of every global batch, so the
        batches do not depend on how many devices share them.

        Args:
            seed: int below 2**31.
            taken: records that were taken before, by all replicas together.
            global_batch: records a step over all replicas and workers.
            replicas: replicas of all workers together.
            worker, workers: which of how many.

        Returns:
            tf.data.Dataset of dicts [global_batch / replicas, length]: the elements for the
            worker's replicas in turn, step after step.
        """
        first_epoch, skip = divmod(taken, self.size)
        stream = tf.data.Dataset.range(first_epoch, np.iinfo(np.int64).max).flat_map(
            _as_it_is(lambda epoch: _epoch(self, seed, epoch))).skip(skip)

        def finish(number, messages):
            return self.masks(self.format.parse(messages), seed, number)

        return _deal(stream.enumerate(taken), finish, global_batch, replicas, worker, workers,
                     getattr(self.masks, "by_batch", False))

    def evaluation_batches(self, global_batch: int, max_steps: int, replicas: int,
                           worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """Each record once, in the files' order, as `training_batches` deals them out.

        The last batch is filled up with records that are all zeros. `is_real_example`, float32
        [global_batch / replicas], which only evaluation has, is 0 for those.
        """
        messages = tf.data.TFRecordDataset(self.paths, self.compression)
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


def _check_records(path, record_format, most):
    """Raises InputError if one of the first `most` records of a file, or of all, is wrong."""
    for number, message in enumerate(itertools.islice(tfrecord.read_records(path), most)):
        try:
            record_format.check(tfrecord.parse_example(message))
        except ValueError as error:
            raise InputError(f"{path}: record {number} {error}") from error


def _epoch(records, seed, epoch):
    """The serialised records of one epoch, in the order of (seed, epoch)."""
    # The order shall not depend on the global seed; within the graph of a dataset this sets it
    # for that graph alone.
    tf.random.set_seed(1)
    paths = tf.random.experimental.stateless_shuffle(records.paths, [seed, epoch])
    if records.rows:
        return tf.data.TFRecordDataset(paths, records.compression)
    messages = tf.data.Dataset.from_tensor_slices(paths).interleave(
        _as_it_is(lambda path: tf.data.TFRecordDataset(path, records.compression)),
        cycle_length=min(_FILES_AT_ONCE, len(records.paths)), deterministic=True,
        num_parallel_calls=tf.data.AUTOTUNE)
    buffer = min(records.size, _SHUFFLE_BUFFER)
    return messages.shuffle(buffer, _mix(seed, epoch), reshuffle_each_iteration=False)


def _deal(stream, finish, global_batch, replicas, worker, workers, by_batch):
    """From a stream of (number, message) to the batches of one worker's replicas, made by `finish`
    of numbers and messages [B]; with `by_batch`, of those of the whole global batch at once.
    """
    local = replicas // workers
    batches = stream.batch(global_batch, drop_remainder=True)

    def share(*batch):
        batch = tf.nest.map_structure(lambda column: tf.reshape(
            column, [workers, local, global_batch // replicas, *column.shape[1:]])[worker], batch)
        return batch[0] if by_batch else batch

    if by_batch:
        return without_autotune(batches.map(_as_it_is(finish)).map(_as_it_is(share)).unbatch()
                                .prefetch(2 * local))
    mine = batches.map(_as_it_is(share))
    return without_autotune(mine.unbatch().map(_as_it_is(finish)).prefetch(2 * local))


def _mix(seed, epoch):
    """One int64 seed from two."""
    return tf.random.stateless_uniform([], [seed, epoch], None, None, tf.int64)


def _find(patterns, flag):
    """The files that hold records, how many each holds, and what `find_manifests` finds of them."""
    paths = [p for p in find_files(patterns, flag) if not p.endswith(".json")]
    if not paths:
        raise InputError(f"--{flag} names manifests only; name the record files.")
    manifests = manifest.find_manifests(paths)
    known = {path: entry for _, entries in manifests for path, entry in entries.items()}
    counts = [_count(path, known.get(path)) for path in paths]
    if not sum(counts):
        raise InputError(f"--{flag}: there are no records in {', '.join(paths[:3])}"
                         f"{' ...' if len(paths) > 3 else ''}.")
    paths, counts = zip(*[(p, c) for p, c in zip(paths, counts) if c])
    if len({is_gzip(path) for path in paths}) > 1:
        raise InputError(f"--{flag} mixes compressed and plain files.")
    return list(paths), list(counts), manifests


def _count(path, entry):
    if entry:
        if os.path.getsize(path) != entry["bytes"]:
            raise InputError(f"{path} has {os.path.getsize(path)} bytes, its manifest says "
                             f"{entry['bytes']}: it is truncated or was changed; make it again.")
        return entry["records"]
    return tfrecord.count_records(path)


def _check_formats(flag, paths, formats):
    """Raises InputError if the formats of the files differ."""
    for path, other in zip(paths, formats):
        if other.features != formats[0].features:
            odd = {f.name for f in other.features} ^ {f.name for f in formats[0].features}
            raise InputError(f"--{flag}: of {path} and {paths[0]} only one holds "
                             f"{', '.join(sorted(odd))}.")
        if other.sizes != formats[0].sizes:
            one, two = (f"({', '.join(f.sizes)}) = ({', '.join(map(str, f.sizes.values()))})"
                        for f in (other, formats[0]))
            raise InputError(f"--{flag}: {path} has {one}, {paths[0]} has {two}.")


def _check_manifests(flag, manifests):
    """Raises InputError if the records of several manifests do not go together."""
    for what, found in (
            ("vocabularies", {(m["vocabulary"]["size"], m["vocabulary"]["sha256"])
                              for m in manifests}),
            ("recipes", {str(recipes.from_description(m.get("recipe"))) for m in manifests}),
            ("batches or predictions", {str([m["options"].get(name) for name in (
                "bsz_per_host", "num_core_per_host", "bi_data", "reuse_len",
                "max_predictions_per_seq")]) for m in manifests
                if "bsz_per_host" in m["options"]})):
        if len(found) > 1:
            raise InputError(f"--{flag}: the records were made with different {what}.")
