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
class RecordSet:
    """Pre-training records on disk, found to be consistent.

    Attributes:
        paths: the TFRecord files, all plain or all gzip.
        counts: records in each.
        max_seq_length, max_predictions_per_seq: S and P of every record.
        vocab_size: ids must be below it; None while it is not known.
        vocab_hash: of the vocabulary they were made with; None without a manifest.
    """

    paths: list
    counts: list
    max_seq_length: int
    max_predictions_per_seq: int
    vocab_size: int | None
    vocab_hash: str | None

    @property
    def size(self):
        """The number of records."""
        return sum(self.counts)

    @property
    def compression(self):
        """"GZIP" or "", as TFRecordDataset wants it."""
        return "GZIP" if is_gzip(self.paths[0]) else ""

    @classmethod
    def open(cls, patterns, flag):
        """Finds records and checks what can be checked without reading them all.

        Counts come from the manifest where there is one and the file's size agrees with it, else
        from walking the file, which finds truncated records.

        Raises:
            InputError: no file, no records, a truncated one, different lengths.
        """
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
        lengths = {path: _lengths(path) for path in paths}
        if len(set(lengths.values())) > 1:
            odd = next(p for p in paths if lengths[p] != lengths[paths[0]])
            raise InputError(f"--{flag}: {odd} has (max_seq_length, max_predictions_per_seq) = "
                             f"{lengths[odd]}, {paths[0]} has {lengths[paths[0]]}.")
        vocabularies = {(m["vocabulary"]["size"], m["vocabulary"]["sha256"]) for m, _ in manifests}
        if len(vocabularies) > 1:
            raise InputError(f"--{flag}: the records were made with different vocabularies.")
        vocab_size, vocab_hash = vocabularies.pop() if vocabularies else (None, None)
        return cls(list(paths), list(counts), *lengths[paths[0]], vocab_size, vocab_hash)

    def check(self, flag, max_seq_length, max_predictions_per_seq, vocab_size):
        """Checks that flags and the configuration agree with the records.

        Returns:
            This `RecordSet`, with the vocabulary's size known to it.

        Raises:
            InputError: they disagree.
        """
        for name, value in (("max_seq_length", max_seq_length),
                            ("max_predictions_per_seq", max_predictions_per_seq)):
            if getattr(self, name) != value:
                raise InputError(f"--{name} is {value}, but the records of --{flag} were made "
                                 f"with {getattr(self, name)}: {self.paths[0]}.")
        if self.vocab_size is not None and self.vocab_size != vocab_size:
            raise InputError(f"vocab_size is {vocab_size} in --bert_config_file, but the records "
                             f"of --{flag} were made with {self.vocab_size} tokens.")
        known = dataclasses.replace(self, vocab_size=vocab_size)
        known.locate_damage(_SAMPLE)
        return known

    def identity(self):
        """What must be equal for a position in the stream to mean the same records."""
        return [self.counts, self.max_seq_length, self.max_predictions_per_seq]

    def locate_damage(self, most=None):
        """Reads the files, or the first `most` records of each, to find what is wrong with them.

        Raises:
            InputError: a record is damaged or can't be trained on; names it.
        """
        for path in self.paths:
            for number, message in enumerate(itertools.islice(tfrecord.read_records(path), most)):
                try:
                    self._check_example(tfrecord.parse_example(message))
                except ValueError as error:
                    raise InputError(f"{path}: record {number} {error}") from error

    def _check_example(self, example):
        for feature in features.PRETRAINING:
            length = feature.length(self.max_seq_length, self.max_predictions_per_seq)
            values = example.get(feature.name)
            if getattr(values, "dtype", None) != feature.dtype or len(values) != length:
                raise ValueError(f"has no {feature.name} of {length} {feature.dtype} values; make "
                                 "it with create_pretraining_data.")
        for name, end in self._ends().items():
            wrong = example[name][(example[name] < 0) | (example[name] >= end)]
            if len(wrong):
                raise ValueError(f"has {wrong[0]} in {name}, which must be below {end}: was it "
                                 "made with another vocabulary?")

    def _ends(self):
        """What the values of a feature must be below."""
        vocab_size = self.vocab_size or np.iinfo(np.int32).max
        return {"input_ids": vocab_size, "masked_lm_ids": vocab_size,
                "masked_lm_positions": self.max_seq_length, "next_sentence_labels": 2}

    def _parse(self, messages):
        """dict of int32 and float32 [B, length]."""
        lengths = self.max_seq_length, self.max_predictions_per_seq
        batch = tf.io.parse_example(messages, {
            feature.name: tf.io.FixedLenFeature([feature.length(*lengths)], feature.dtype)
            for feature in features.PRETRAINING})
        # On a GPU a lookup takes any id, without a word.
        asserts = [tf.debugging.Assert(tf.reduce_all((batch[name] >= 0) & (batch[name] < end)),
                                       [f"{name} must be below {end}"])
                   for name, end in self._ends().items()]
        with tf.control_dependencies(asserts):
            return {name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else
                    tf.identity(value) for name, value in batch.items()}

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
        return self._deal(batches, self._parse, replicas, worker, workers)

    def evaluation_batches(self, global_batch, max_steps, replicas, worker=0, workers=1):
        """Each record once, in the files' order, as `training_batches` deals them out.

        The last batch is filled up with records of weight 0: `masked_lm_weights`, and
        `next_sentence_weights`, which only evaluation has.
        """
        messages = tf.data.TFRecordDataset(self.paths, self.compression)
        blank = tf.data.Dataset.from_tensors(self._blank()).repeat(-self.size % global_batch)
        batches = messages.concatenate(blank).batch(global_batch, drop_remainder=True)
        if max_steps:
            batches = batches.take(max_steps)
        return self._deal(batches, self._parse_with_blanks, replicas, worker, workers)

    @staticmethod
    def _deal(batches, parse, replicas, worker, workers):
        """From global batches of messages to the parsed batches of one worker's replicas."""
        local = replicas // workers
        mine = batches.map(lambda batch: tf.reshape(batch, [workers, local, -1])[worker])
        return mine.unbatch().map(parse).prefetch(2 * local)

    def _parse_with_blanks(self, messages):
        batch = self._parse(messages)
        batch["next_sentence_weights"] = tf.cast(messages != self._blank(), tf.float32)
        return batch

    def _blank(self):
        """The message of a record that is all zeros."""
        lengths = self.max_seq_length, self.max_predictions_per_seq
        return tfrecord.serialize_examples({
            feature.name: np.zeros([1, feature.length(*lengths)], feature.dtype)
            for feature in features.PRETRAINING})[0]


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


def _lengths(path):
    """S and P, from the first record."""
    for message in tfrecord.read_records(path):
        try:
            example = tfrecord.parse_example(message)
            return len(example["input_ids"]), len(example["masked_lm_positions"])
        except (KeyError, ValueError) as error:
            raise InputError(f"{path}: record 0 is not a pre-training record ({error}); make it "
                             "with create_pretraining_data.") from error
    raise InputError(f"{path} holds no record.")
