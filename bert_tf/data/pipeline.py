"""Batches from records: which record comes at which step is a function of (seed, epoch, step).

So the state of the input is one integer, the number of records taken so far, and a run that is
started again sees exactly what it would have seen. Records are skipped before they are parsed.
"""

import dataclasses
import itertools
import os

import numpy as np
import tensorflow as tf

from bert_tf.data import features, manifest, tfrecord
from bert_tf.errors import InputError
from bert_tf.files import find_files, is_gzip

_FILES_AT_ONCE = 16
_SHUFFLE_BUFFER = 1 << 14
_SAMPLE = 16    # records of each file that are looked at before training starts


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """What each record of a set holds.

    Attributes:
        features: the `Feature`s, in the order of `features.KNOWN`.
        sizes: the lengths S and P of their axes, by the names of the flags; P only where there are
            features along it.
        vocab_size: V, what ids must be below; None while it is not known.
        num_labels: what the labels of the sentence objective must be below.
    """

    features: tuple[features.Feature, ...]
    sizes: dict[str, int]
    vocab_size: int | None = None
    num_labels: int = 2

    @classmethod
    def of_file(cls, path: str, names: list[str] | None = None) -> "RecordFormat":
        """The format of a file, whose axes are as long as those of its first record.

        Args:
            path: the TFRecord file, which holds a record.
            names: of the features; all known ones of the first record if None.

        Raises:
            InputError: the first record holds no text.
        """
        try:
            example = tfrecord.parse_example(next(tfrecord.read_records(path)))
            if "input_ids" not in example:
                raise ValueError("it has no input_ids")
        except ValueError as error:
            raise InputError(f"{path}: record 0 is not a pre-training record ({error}); make it "
                             "with create_pretraining_data.") from error
        found = [feature for name, feature in features.KNOWN.items()
                 if name in (example if names is None else names)]
        sizes = {}
        for feature in found:
            if feature.axis in features.AXES and feature.name in example:
                sizes.setdefault(features.AXES[feature.axis], len(example[feature.name]))
        return cls(tuple(found), sizes)

    def length(self, feature: features.Feature) -> int:
        """The number of its values in a record."""
        return feature.length(**self.sizes)

    def ends(self) -> dict[str, int]:
        """What the values of a feature must be below, by its name."""
        ends = {"V": self.vocab_size or np.iinfo(np.int32).max, "labels": self.num_labels,
                "S": self.sizes["max_seq_length"]}
        return {feature.name: ends[feature.end] for feature in self.features if feature.end}

    def check(self, example: dict[str, np.ndarray]) -> None:
        """Raises ValueError if a parsed record is not of this format; the message ends a sentence.
        """
        for feature in self.features:
            length = self.length(feature)
            values = example.get(feature.name)
            if getattr(values, "dtype", None) != feature.dtype or len(values) != length:
                raise ValueError(f"has no {feature.name} of {length} {feature.dtype} values; make "
                                 "it with create_pretraining_data.")
        for name, end in self.ends().items():
            wrong = example[name][(example[name] < 0) | (example[name] >= end)]
            if len(wrong):
                raise ValueError(f"has {wrong[0]} in {name}, which must be below {end}: was it "
                                 "made with another vocabulary?")

    def parse(self, messages: tf.Tensor) -> dict[str, tf.Tensor]:
        """From serialised records [B] to their features, int32 and float32 [B, length]."""
        batch = tf.io.parse_example(messages, {
            feature.name: tf.io.FixedLenFeature([self.length(feature)], feature.dtype)
            for feature in self.features})
        # On a GPU a lookup takes any id without an error.
        asserts = [tf.debugging.Assert(tf.reduce_all((batch[name] >= 0) & (batch[name] < end)),
                                       [f"{name} must be below {end}"])
                   for name, end in self.ends().items()]
        with tf.control_dependencies(asserts):
            return {name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else
                    tf.identity(value) for name, value in batch.items()}

    def blank(self) -> bytes:
        """The message of a record that is all zeros."""
        return tfrecord.serialize_examples({
            feature.name: np.zeros([1, self.length(feature)], feature.dtype)
            for feature in self.features})[0]


@dataclasses.dataclass(frozen=True)
class RecordSet:
    """Pre-training records on disk, found to be consistent.

    Attributes:
        paths: the TFRecord files, all plain or all gzip.
        counts: records in each.
        format: `RecordFormat` of every record.
        manifests: those that name them, dicts; they agree on the vocabulary.
    """

    paths: list[str]
    counts: list[int]
    format: RecordFormat
    manifests: list[dict]

    @property
    def size(self) -> int:
        """The number of records."""
        return sum(self.counts)

    @property
    def vocab_hash(self) -> str | None:
        """Of the vocabulary they were made with; None without a manifest."""
        return self.manifests[0]["vocabulary"]["sha256"] if self.manifests else None

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
        paths = [p for p in find_files(patterns, flag) if not p.endswith(".json")]
        if not paths:
            raise InputError(f"--{flag} names manifests only; name the record files.")
        manifests = manifest.find_manifests(paths)
        known = {path: (entry, record) for record, entries in manifests
                 for path, entry in entries.items()}
        counts = [_count(path, known[path][0] if path in known else None) for path in paths]
        if not sum(counts):
            raise InputError(f"--{flag}: there are no records in {', '.join(paths[:3])}"
                             f"{' ...' if len(paths) > 3 else ''}.")
        paths, counts = zip(*[(p, c) for p, c in zip(paths, counts) if c])
        if len({is_gzip(path) for path in paths}) > 1:
            raise InputError(f"--{flag} mixes compressed and plain files.")
        found = [RecordFormat.of_file(path, known[path][1].get("features") if path in known
                                      else None) for path in paths]
        _check_formats(flag, paths, found)
        vocabularies = {(m["vocabulary"]["size"], m["vocabulary"]["sha256"]) for m, _ in manifests}
        if len(vocabularies) > 1:
            raise InputError(f"--{flag}: the records were made with different vocabularies.")
        vocab_size, _ = vocabularies.pop() if vocabularies else (None, None)
        return cls(list(paths), list(counts), dataclasses.replace(found[0], vocab_size=vocab_size),
                   [record for record, _ in manifests])

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
        sizes = {"max_seq_length": max_seq_length,
                 "max_predictions_per_seq": max_predictions_per_seq}
        for name, size in self.format.sizes.items():
            if sizes[name] != size:
                raise InputError(f"--{name} is {sizes[name]}, but the records of --{flag} were "
                                 f"made with {size}: {self.paths[0]}.")
        if self.format.vocab_size not in (None, vocab_size):
            raise InputError(
                f"vocab_size is {vocab_size} in --bert_config_file, but the records of --{flag} "
                f"were made with {self.format.vocab_size} tokens.")
        known = dataclasses.replace(self, format=dataclasses.replace(
            self.format, vocab_size=vocab_size, num_labels=num_labels))
        known.locate_damage(_SAMPLE)
        return known

    def identity(self) -> list:
        """What must be equal for a position in the stream to mean the same records."""
        return [self.counts, *self.format.sizes.values()]

    def locate_damage(self, most: int | None = None) -> None:
        """Reads the files, or the first `most` records of each, to find what is wrong with them.

        Raises:
            InputError: a record is damaged or can't be trained on; names it.
        """
        for path in self.paths:
            for number, message in enumerate(itertools.islice(tfrecord.read_records(path), most)):
                try:
                    self.format.check(tfrecord.parse_example(message))
                except ValueError as error:
                    raise InputError(f"{path}: record {number} {error}") from error

    def _epoch(self, seed, epoch):
        """The serialised records of one epoch, in the order of (seed, epoch)."""
        # The order shall not depend on the global seed; within the graph of a dataset this sets it
        # for that graph alone.
        tf.random.set_seed(1)
        paths = tf.random.experimental.stateless_shuffle(self.paths, [seed, epoch])
        records = tf.data.Dataset.from_tensor_slices(paths).interleave(
            lambda path: tf.data.TFRecordDataset(path, self.compression),
            cycle_length=min(_FILES_AT_ONCE, len(self.paths)), deterministic=True,
            num_parallel_calls=tf.data.AUTOTUNE)
        buffer = min(self.size, _SHUFFLE_BUFFER)
        return records.shuffle(buffer, _mix(seed, epoch), reshuffle_each_iteration=False)

    def training_batches(self, seed, taken, global_batch, replicas, worker=0, workers=1):
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
            lambda epoch: self._epoch(seed, epoch))
        batches = stream.skip(skip).batch(global_batch, drop_remainder=True)
        return _deal(batches, self.format.parse, replicas, worker, workers)

    def evaluation_batches(self, global_batch, max_steps, replicas, worker=0, workers=1):
        """Each record once, in the files' order, as `training_batches` deals them out.

        The last batch is filled up with records that are all zeros. `is_real_example`, float32
        [global_batch / replicas], which only evaluation has, is 0 for those.
        """
        messages = tf.data.TFRecordDataset(self.paths, self.compression)
        blank = tf.data.Dataset.from_tensors(self.format.blank()).repeat(-self.size % global_batch)
        batches = messages.concatenate(blank).batch(global_batch, drop_remainder=True)
        if max_steps:
            batches = batches.take(max_steps)
        return _deal(batches, self._parse_with_blanks, replicas, worker, workers)

    def _parse_with_blanks(self, messages):
        batch = self.format.parse(messages)
        batch["is_real_example"] = tf.cast(messages != self.format.blank(), tf.float32)
        return batch


def _deal(batches, parse, replicas, worker, workers):
    """From global batches of messages to the parsed batches of one worker's replicas."""
    local = replicas // workers
    mine = batches.map(lambda batch: tf.reshape(batch, [workers, local, -1])[worker])
    return mine.unbatch().map(parse).prefetch(2 * local)


def _mix(seed, epoch):
    """One int64 seed from two."""
    return tf.random.stateless_uniform([], [seed, epoch], None, None, tf.int64)


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
        if other.sizes != formats[0].sizes:
            one, two = (f"({', '.join(f.sizes)}) = ({', '.join(map(str, f.sizes.values()))})"
                        for f in (other, formats[0]))
            raise InputError(f"--{flag}: {path} has {one}, {paths[0]} has {two}.")
        if other.features != formats[0].features:
            odd = {f.name for f in other.features} ^ {f.name for f in formats[0].features}
            raise InputError(f"--{flag}: of {path} and {paths[0]} only one holds "
                             f"{', '.join(sorted(odd))}.")
