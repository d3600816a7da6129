"""Finds files of pre-training records, and checks that they and a run go together."""

import dataclasses
import hashlib
import itertools
import json
from typing import ClassVar, Self

from bert_tf import recipes
from bert_tf.data.records import manifest, tfrecord
from bert_tf.data.records.features import RecordFormat
from bert_tf.data.segments.pairing import find_pairing
from bert_tf.errors import InputError
from bert_tf.files import file_size, is_gzip
from bert_tf.tokenization.vocabulary import has_rows

_SAMPLE = 16    # records of each file that are looked at before training starts


@dataclasses.dataclass(frozen=True)
class RecordFiles:
    """Pre-training records on disk, found to be consistent."""

    paths: list[str]    # the TFRecord files, all plain or all gzip
    counts: list[int]
    format: RecordFormat
    manifest: dict | None   # the first of several, of one vocabulary and recipe; None without one
    tasks: ClassVar[tuple[str, ...]] = ()   # of the records, if they have any
    checksum: str | None = None     # of all files' checksums in manifests; None without manifests

    @property
    def size(self) -> int:
        return sum(self.counts)

    @property
    def vocab_hash(self) -> str | None:
        """Hash of the vocabulary that the records were made with; None without a manifest."""
        return self.manifest and self.manifest["vocabulary"]["sha256"]

    @property
    def rows(self) -> int:
        """The size of the batches of records that are in order: each record of a batch continues
        one of the batch before. 0 where records may be shuffled."""
        if self.manifest and find_pairing(recipes.of_manifest(self.manifest).segments).in_rows:
            return self.manifest["options"]["bsz_per_host"]
        return 0

    def check_batch(self, size: int, size_flag: str, flag: str) -> None:
        """Raises InputError if records in order do not come in batches of the size that they were
        made for; `size` is of a batch over all devices."""
        if self.rows and size != self.rows:
            raise InputError(
                f"--{size_flag} is {size}, but the records of --{flag} were made for batches of "
                f"{self.rows}, where each batch continues the batch before; give "
                f"--{size_flag}={self.rows}, or make them again with --bsz_per_host={size}.")

    @property
    def compression(self) -> str:
        """"GZIP" or "", as TFRecordDataset wants it."""
        return "GZIP" if is_gzip(self.paths[0]) else ""

    @classmethod
    def open(cls, patterns: str | list[str], flag: str) -> Self:
        """Finds records and checks all that can be checked without reading every record. Counts
        come from the manifest, if it exists and the file's size agrees with it, else from walking
        the file. InputError if there is no file, no record, a truncated one, or several formats."""
        paths = manifest.record_files(patterns, flag)
        manifests = manifest.find_manifests(paths)
        manifest.check_whole(manifests, patterns, flag)
        known = {path: record for record, entries, _ in manifests for path in entries}
        shards = {path: shard for _, entries, _ in manifests for path, shard in entries.items()}
        for path in paths:
            if path in shards and file_size(path) != shards[path]["bytes"]:
                raise InputError(f"{path} has {file_size(path)} bytes, but its manifest says "
                                 f"{shards[path]['bytes']}: the file is truncated or was changed; "
                                 "make it again.")
        counts = [shards[path]["records"] if path in shards else tfrecord.count_records(path)
                  for path in paths]
        if not sum(counts):
            raise InputError(f"--{flag}: there are no records in {', '.join(paths[:3])}"
                             f"{' ...' * (len(paths) > 3)}; make them again.")
        paths = [path for path, count in zip(paths, counts) if count]
        counts = [count for count in counts if count]
        if len({is_gzip(path) for path in paths}) > 1:
            raise InputError(f"--{flag} mixes compressed and plain files; name one kind.")
        formats = [RecordFormat.of_file(path, known.get(path, {}).get("features"))
                   for path in paths]
        _check_formats(flag, paths, formats)
        record = next((record for record, *_ in manifests), None)
        _check_manifests(flag, [record for record, *_ in manifests])
        vocab_size = record and record["vocabulary"]["size"]
        checksum, sums = None, [shards.get(path, {}).get("crc32c") for path in paths]
        if None not in sums:
            checksum = hashlib.sha256(json.dumps(sums).encode()).hexdigest()[:16]
        return cls(paths, counts, dataclasses.replace(formats[0], vocab_size=vocab_size), record,
                   checksum)

    def check(self, flag: str, max_seq_length: int, max_predictions_per_seq: int, vocab_size: int,
              num_labels: int = 2) -> Self:
        """Returns these records, which know `vocab_size` and `num_labels`, the number that
        `next_sentence_labels` must be below. Raises InputError if flags or the configuration
        disagree with the records."""
        for name, value in (("max_seq_length", max_seq_length),
                            ("max_predictions_per_seq", max_predictions_per_seq)):
            if (size := self.format.sizes.get(name, value)) != value:
                raise InputError(f"--{name} is {value}, but the records of --{flag} have {size} "
                                 f"({self.paths[0]}); give --{name}={size}.")
        if not has_rows(vocab_size, self.format.vocab_size or vocab_size):
            raise InputError(
                f"vocab_size is {vocab_size} in the model's configuration, but the records of "
                f"--{flag} were made with {self.format.vocab_size} tokens; make them with the "
                "model's vocabulary, or change vocab_size of a new model.")
        known = dataclasses.replace(self, format=dataclasses.replace(
            self.format, vocab_size=vocab_size, num_labels=num_labels))
        known.locate_damage(_SAMPLE)
        return known

    def identity(self) -> dict:
        """Values that must be equal for a position in the stream to mean the same records."""
        return {"counts": self.counts, **self.format.sizes, "checksum": self.checksum}

    def locate_damage(self, most: int | None = None) -> None:
        """Reads the files, or the first `most` records of each; raises InputError, which names the
        record, for one that is damaged or can't be trained on."""
        for path in self.paths:
            for number, message in enumerate(itertools.islice(tfrecord.read_records(path), most)):
                try:
                    self.format.check(tfrecord.parse_example(message))
                except ValueError as error:
                    raise InputError(f"{path}: record {number} {error}") from error


def _check_formats(flag, paths, formats):
    for path, other in zip(paths, formats):
        if other.features != formats[0].features:
            odd = {f.name for f in other.features} ^ {f.name for f in formats[0].features}
            raise InputError(f"--{flag}: only one of {path} and {paths[0]} holds "
                             f"{', '.join(sorted(odd))}; name records that were made with the same "
                             "flags.")
        if other.sizes != formats[0].sizes:
            one, two = (f"({', '.join(f.sizes)}) = ({', '.join(map(str, f.sizes.values()))})"
                        for f in (other, formats[0]))
            raise InputError(f"--{flag}: {path} has {one}, {paths[0]} has {two}; name records that "
                             "were made with the same flags.")


def _check_manifests(flag, manifests):
    for what, values in (
            ("vocabularies", {(m["vocabulary"]["size"], m["vocabulary"]["sha256"])
                              for m in manifests}),
            ("recipes", {str(recipes.from_description(m.get("recipe"))) for m in manifests}),
            ("labels", {str(m["options"].get("labels") or []) for m in manifests}),
            ("batches or predictions", {str([m["options"].get(name) for name in (
                "bsz_per_host", "num_core_per_host", "bi_data", "reuse_len",
                "max_predictions_per_seq")]) for m in manifests
                if "bsz_per_host" in m["options"]})):
        if len(values) > 1:
            raise InputError(f"--{flag}: the records were made with different {what}; name records "
                             "that were made with the same flags.")
