"""Checks records: every byte, every record, and the manifest's figures.

The records may be of any recipe or task. The command prints each problem with its file and record
(counted from 0). If there is a problem, the exit status is 1. Without a manifest beside the shards,
the command checks only the records.

Example:
    bert-verify-records --input_file=/tmp/text.manifest.json
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_tf import flags, recipes
from bert_tf.data import masking
from bert_tf.data.batches.bucketing import pads_left
from bert_tf.data.batches.example_set import record_features
from bert_tf.data.records import manifest, tfrecord
from bert_tf.data.records.features import RecordFormat
from bert_tf.data.segments import pairing
from bert_tf.errors import InputError, counted
from bert_tf.files import exists, find_files, is_folder, join_path
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.saved_task import kind_on_disk
from bert_tf.tokenization.vocabulary import Layout
from data_prep import verify_rows
from data_prep.verify_rows import outside

_BATCH = 2048
# Names of files that hold records.
_RECORDS = re.compile(r"tfrecord|-\d{5}-of-\d{5}")
_NOTHING = "nothing is masked."


@dataclasses.dataclass
class VerifyRecordsFlags:
    """Records to check."""

    input_file: list[str] = option(
        REQUIRED, "Manifests (all their shards are checked), record files, globs or folders.")
    vocab_size: int = option(
        0, "Ids must be below this number; 0: the vocabulary's size in the manifest, if there is "
        "one.")
    max_problems: int = option(20, "Stop after this many problems.")


def _shards(patterns):
    """Yields (path of a shard, its manifest or None, its entry in it or None)."""
    paths = find_files(patterns, "input_file")
    plain = [path for path in paths if not path.endswith(".json")]
    for path in (path for path in paths if path.endswith(manifest.SUFFIX)):
        record = manifest.load_manifest(path, has_vocabulary=True)
        for entry in record["shards"]:
            shard = join_path(os.path.dirname(path), entry["name"])
            yield shard, record, entry
            if shard in plain:
                plain.remove(shard)
    known = {path: (record, entry) for record, entries, _ in manifest.find_manifests(plain)
             for path, entry in entries.items()}
    # Files of the folders among the patterns that no manifest names, nor their names show.
    folders = tuple(pattern.rstrip("/") + "/" for pattern in patterns if is_folder(pattern))
    others = [path for path in plain if path not in {*known, *patterns}
              and path.startswith(folders) and not _RECORDS.search(os.path.basename(path))]
    if others:
        print(f"left out: {counted(len(others), 'file')} that no manifest names and that hold no "
              f"records by their names, such as {others[0]}")
    for path in plain:
        if path not in others:
            yield path, *known.get(path, (None, None))


def check_shard(path: str, record: dict | None, entry: dict | None, vocab_size: int = 0
                ) -> Iterator[str]:
    """Yields a sentence for each problem of a shard; ids are below `vocab_size`, or if it is 0 the
    manifest's, if any."""
    if not exists(path):
        yield f"{path}: the manifest names it, but it is not there."
        return
    count = 0
    try:
        form = _read_format(path, record, vocab_size)
        order = verify_rows.Order(record) if record and _in_rows(form) else None
        records = tfrecord.read_records(path)
        while batch := list(itertools.islice(records, _BATCH)):
            for row, problem in _check_messages(batch, form, record, order):
                yield f"{path}: record {count + row}: {problem}"
            count += len(batch)
    except InputError as error:
        yield str(error)
        return
    if entry and count != entry["records"]:
        yield f"{path}: holds {counted(count, 'record')}, the manifest has {entry['records']}."
    if entry and tfrecord.file_checksum(path) != entry["crc32c"]:
        yield f"{path}: its checksum is not the manifest's: the file was changed after it was made."


def _in_rows(form):
    return bool({"is_masked", "next_token_ids"} & set(form.names))


def _read_format(path, record, vocab_size):
    if not record:
        return dataclasses.replace(RecordFormat.of_file(path), vocab_size=vocab_size or None)
    num_labels, task = 2, record.get("task")        # two without a recipe, by the kind of record
    if task:
        num_labels = kind_on_disk(task).label_limit(task)
    elif record.get("recipe"):
        num_labels = pairing.num_labels(recipes.of_manifest(record).segments)
    return RecordFormat(*record_features(record), vocab_size or record["vocabulary"]["size"],
                        num_labels)


def _check_messages(messages, form, record, order=None):
    columns, rows = {name: [] for name in form.names}, []
    for row, message in enumerate(messages):
        try:
            values = tfrecord.parse_example(message)
            form.check_lengths(values)
        except ValueError as error:
            yield row, str(error)
            continue
        rows.append(row)
        for name, column in columns.items():
            column.append(values[name])
    if rows:
        arrays = {name: np.array(column) for name, column in columns.items()}
        for problem, wrong in find_problems(arrays, form, record or {}).items():
            for row in np.flatnonzero(wrong):
                yield rows[row], problem
        if order:
            for row in np.flatnonzero(order.broken(arrays)):
                yield rows[row], "it does not continue the record of its row in the batch before."


def find_problems(f: dict[str, np.ndarray], form: RecordFormat, record: Mapping[str, Any]
                  ) -> dict[str, np.ndarray]:
    """Returns {a sentence that names a problem: bool [B], whether a record has it} of values that
    no job writes. `f` holds the values of each feature, [B, length]."""
    if "decoder_target_tokens" in f:
        return _pair_problems(f, form)
    if _in_rows(form):
        return verify_rows.find_problems(f, form.ends(), record)
    rows, size = len(f["input_mask"]), form.sizes["max_seq_length"]
    mask = f["input_mask"].reshape(rows, -1, size)      # several sequences in a multiple choice
    lengths = mask.sum(2, keepdims=True)
    length = lengths[:, 0]
    problems = verify_rows.not_below(f, form.ends())
    cls_last = "cls_last" in record.get("vocabulary", {})
    place = np.arange(size) - (cls_last and pads_left(mask)) * (size - lengths)
    problems["input_mask is not ones, then zeros."] = (
        mask != ((place >= 0) & (place < lengths))).any((1, 2))
    if "sequence_ids" in f:
        numbers = np.pad(f["sequence_ids"], ((0, 0), (1, 0)))
        problems["sequence_ids do not count from 1, or are not 0 in the padding."] = (
            (numbers[:, 1:] != (numbers[:, :-1] + np.isin(np.diff(numbers), 1)) * mask[:, 0])
            | (numbers[:, 1:] < mask[:, 0])).any(1)
    else:
        allowed, end = "0 or 1", 2
        if cls_last:
            allowed, end = "from 0 to 4", 5
        problems[f"segment_ids are not {allowed}."] = outside(f["segment_ids"], end)
    problems |= _label_problems(f, form, length)
    if form.is_masked:
        made = masking.find(recipes.of_manifest(record or None).corruption)
        problems.update(_mask_problems(
            f, length, Layout(0, 0, 0) if made.hides_special else Layout()))
        # A unit of more tokens than may be masked is passed over.
        if not made.always_predicts or made.units != "subwords":
            problems.pop(_NOTHING)
    elif "mask_id" in record.get("vocabulary", {}):
        problems["a token is masked already, but masks are to be drawn while training."] = (
            f["input_ids"] == record["vocabulary"]["mask_id"]).any(1)
    return problems


def _label_problems(f, form, length):
    problems = {}
    for name in {"label_weights", "token_boundary", "token_label_ids",
                 "token_label_weights", "entities"} & form.names:
        problems[f"{name} are not 0 or 1."] = outside(f[name], 2)
    if "label_ids" in f and form.num_labels:
        problems[f"a label is not below {form.num_labels}."] = outside(
            f["label_ids"], form.num_labels)
    for name in {"label_weights", "token_boundary", "token_label_weights", "entities"} & form.names:
        problems[f"{name} are above 0 in the padding."] = (
            (f[name] > 0) & (f["input_mask"] == 0)).any(1)
    for name in {"start_positions", "end_positions"} & form.names:
        problems[f"{name} lies in the padding."] = (f[name] >= length).any(1)
    for name in {"span_weights", "word_order_weights"} & form.names:
        problems[f"{name} are not 0 or 1, and 0 where nothing is predicted."] = (
            (f[name] != 0) & ((f[name] != 1) | (f["masked_lm_weights"] == 0))).any(1)
    return problems


def _pair_problems(f, form):
    problems = verify_rows.not_below(f, form.ends())
    for name in {"encoder_input_tokens", "decoder_target_tokens"} & form.names:
        used = f[name] > 0
        problems[f"{name} has padding before a token."] = (used[:, 1:] & ~used[:, :-1]).any(1)
    targets = f["decoder_target_tokens"]
    problems["there is no target."] = ~(targets > 0).any(1)
    problems["decoder_loss_weights are not 0 or 1, and 0 in the padding."] = (
        outside(f["decoder_loss_weights"], 2) | (f["decoder_loss_weights"] > (targets > 0)).any(1))
    shifted = np.pad(targets[:, :-1], ((0, 0), (1, 0)))
    if "decoder_segment_ids" in f:
        shifted = shifted * (f["decoder_positions"] > 0)
        for side, name in (("encoder", "input"), ("decoder", "target")):
            if f"{side}_segment_ids" in f:
                problems[f"{side}_segment_ids are 0 at tokens, or not at padding."] = (
                    (f[f"{side}_segment_ids"] > 0) != (f[f"{side}_{name}_tokens"] > 0)).any(1)
    problems["decoder_input_tokens are not the targets, shifted by one."] = (
        f["decoder_input_tokens"] != shifted).any(1)
    return problems


def _mask_problems(f, length, layout):
    """Finds problems of masked tokens; `length` [B, 1] counts the tokens of the sequence, `layout`
    the tokens at its ends that are never masked."""
    positions, used = f["masked_lm_positions"], f["masked_lm_weights"] > 0
    return {
        "a masked position is [CLS] or lies in the padding.":
            (used & ((positions < layout.before) | (positions >= length - layout.after))).any(1),
        "masked positions are not in order.":
            (used[:, 1:] & (np.diff(positions, axis=1) <= 0)).any(1),
        "masked_lm_weights are not ones, then zeros.":
            (f["masked_lm_weights"] != (np.arange(used.shape[1]) < used.sum(1)[:, None])).any(1),
        _NOTHING: ~used.any(1),
    }


def main(job: VerifyRecordsFlags) -> None:
    """Prints the problems of all shards; InputError if there are any."""
    problems = checked = records = 0
    for path, record, entry in _shards(job.input_file):
        checked += 1
        records += (entry or {}).get("records", 0)
        for problem in check_shard(path, record, entry, job.vocab_size):
            print(problem)
            problems += 1
            if problems >= job.max_problems:
                raise InputError(f"stopped after {problems} problems.")
        if not record:
            print(f"{path}: no manifest names it; only the records were checked.")
    if problems:
        raise InputError(f"{counted(problems, 'problem')} in {counted(checked, 'file')}.")
    if not checked:
        raise InputError("--input_file names neither records nor a manifest; name one of them.")
    print(f"{checked} file{'s are' if checked > 1 else ' is'} sound"
          f"{f', {records:,} records as in the manifests' if records else ''}.")


if __name__ == "__main__":
    flags.run(main, VerifyRecordsFlags)
