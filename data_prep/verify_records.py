"""Checks records: every byte, every record, and what the manifest says of them.

Each problem is printed with its file and record (counted from 0); the exit status is 1 if there is
any. Without a manifest beside the shards only the records themselves are checked.

Example:
    bert-verify-records --input_file=/tmp/text.manifest.json
"""

import dataclasses
import itertools
import os

import numpy as np

from bert_tf import flags
from bert_tf.data import features, manifest, tfrecord
from bert_tf.errors import InputError
from bert_tf.files import find_files
from bert_tf.flags import REQUIRED, option
from data_prep.record_checks import find_problems, label_count

_BATCH = 2048


@dataclasses.dataclass
class Job:
    """The flags."""

    input_file: list[str] = option(
        REQUIRED, "Manifests (all their shards are checked) or record files, globs, folders.")
    vocab_size: int = option(
        0, "Ids must be below this; 0 takes the size from the manifest, where there is one.")
    max_problems: int = option(20, "Stop after so many problems.")


def _shards(paths):
    """Yields (path of a shard, its manifest or None, its entry in it or None)."""
    plain = [path for path in paths if not path.endswith(".json")]
    for path in (path for path in paths if path.endswith(manifest.SUFFIX)):
        record = manifest.load_manifest(path)
        for entry in record["shards"]:
            shard = os.path.join(os.path.dirname(path), entry["name"])
            yield shard, record, entry
            if shard in plain:
                plain.remove(shard)
    known = {path: (record, entry) for record, entries in manifest.find_manifests(plain)
             for path, entry in entries.items()}
    for path in plain:
        yield path, *known.get(path, (None, None))


def check_shard(path, record, entry, vocab_size=0):
    """Yields a sentence for each problem of a shard.

    Args:
        path: the TFRecord file.
        record: its manifest, or None.
        entry: its entry in the manifest, or None.
        vocab_size: ids must be below this; 0 for that of the manifest, if any.
    """
    if not os.path.exists(path):
        yield f"{path}: the manifest names it, but it is not there."
        return
    if record:
        vocab_size = vocab_size or record["vocabulary"]["size"]
    count = 0
    try:
        for batch in _batches(path):
            for row, problem in _check_messages(batch, vocab_size, record):
                yield f"{path}: record {count + row}: {problem}"
            count += len(batch)
    except InputError as error:
        yield str(error)
        return
    if entry and count != entry["records"]:
        yield f"{path}: holds {count} records, the manifest says {entry['records']}."
    if entry and tfrecord.file_checksum(path) != entry["crc32c"]:
        yield f"{path}: its checksum is not the manifest's: the file was changed after it was made."


def _batches(path):
    records = tfrecord.read_records(path)
    while batch := list(itertools.islice(records, _BATCH)):
        yield batch


def _check_messages(messages, vocab_size, record):
    """Yields (row, problem) for the records that can't be what a job writes."""
    wanted, sizes = manifest.record_features(record) if record else (features.PRETRAINING, None)
    arrays = {feature.name: [] for feature in wanted}
    rows = []
    for row, message in enumerate(messages):
        try:
            values = tfrecord.parse_example(message)
            if sizes is None:
                sizes = {"max_seq_length": len(values["input_ids"]),
                         "max_predictions_per_seq": len(values["masked_lm_positions"])}
            _check_lengths(values, wanted, sizes)
        except (ValueError, KeyError) as error:
            yield row, str(error)
            continue
        rows.append(row)
        for name, column in arrays.items():
            column.append(values[name])
    if rows:
        columns = {name: np.array(column) for name, column in arrays.items()}
        num_labels = label_count(record["task"]) if record and "task" in record else None
        for problem, wrong in find_problems(columns, sizes, vocab_size, num_labels).items():
            for row in np.flatnonzero(wrong):
                yield rows[row], problem


def _check_lengths(values, wanted, sizes):
    for feature in wanted:
        if feature.name not in values:
            raise ValueError(f"has no {feature.name}.")
        length = feature.length(**sizes)
        if getattr(values[feature.name], "dtype", None) != feature.dtype:
            raise ValueError(f"{feature.name} is not a list of {feature.dtype}.")
        if len(values[feature.name]) != length:
            raise ValueError(f"{feature.name} has {len(values[feature.name])} values, "
                             f"not {length}.")


def main(job):
    """Prints the problems of all shards.

    Raises:
        InputError: there are any.
    """
    problems = checked = records = 0
    for path, record, entry in _shards(find_files(job.input_file, "input_file")):
        checked += 1
        records += entry["records"] if entry else 0
        for problem in check_shard(path, record, entry, job.vocab_size):
            print(problem)
            problems += 1
            if problems >= job.max_problems:
                raise InputError(f"stopped after {problems} problems.")
        if not record:
            print(f"{path}: no manifest names it; only the records were checked.")
    if problems:
        raise InputError(f"{problems} problems in {checked} files.")
    if not checked:
        raise InputError("--input_file names no records and no manifest of any.")
    print(f"{checked} file{'s are' if checked > 1 else ' is'} sound"
          + (f", {records:,} records as the manifests say." if records else "."))


def run():
    """The console entry point."""
    flags.run(main, Job)


if __name__ == "__main__":
    run()
