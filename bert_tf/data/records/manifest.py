"""The manifest: a description of a set of shards, in their folder, written after the last shard."""

import fnmatch
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.files.reading import Values, check_shape

SUFFIX = ".manifest.json"
_FEATURE = {"name": str, "axis": (str, int),
            "dtype": Values("int64 or float32", ["int64", "float32"].__contains__),
            "end?": Values("V, S, labels or null", ["V", "S", "labels", None].__contains__)}
# The keys of a manifest that are read, see `check_shape`.
_SHAPE = {
    "shards": [{"name": str, "records": int, "bytes": int, "crc32c?": (str, int)}],
    "options": {"max_seq_length?": int, "max_predictions_per_seq?": int, "bsz_per_host?": int,
                "max_target_length?": int, "masked_lm_prob?": (int, float), "reuse_len?": int,
                "num_core_per_host?": int, "bi_data?": bool},
    "vocabulary": {"size?": int, "sha256?": str},
    "task?": {"kind": str, "num_choices": int, "labels": [(str, int)], "multi_label": bool,
              "features?": [_FEATURE]},
    "recipe?": {"name": str},
    "counts?": {"instances?": int},
    "features?": [str],
    "further_features?": [_FEATURE]}
_VOCABULARY = {"vocabulary": {"size": int, "sha256": str}}


def manifest_path(output_file: str) -> str:
    """The path of the manifest of `name.tfrecord` (or `.tfrecord.gz`): `name.manifest.json`."""
    for ending in (".gz", ".tfrecord"):
        output_file = output_file.removesuffix(ending)
    return output_file + SUFFIX


def tokenizer_folder(path: str) -> str:
    """The folder with the tokenizer's files of the records of a manifest: `name.tokenizer`."""
    return path.removesuffix(SUFFIX) + files.TOKENIZER_ENDING


def shard_name(output_file: str, index: int, count: int) -> str:
    """`output_file` itself where it is the only shard, else `name-00003-of-00008` (before .gz)."""
    if count == 1:
        return output_file
    ending = ".gz" if output_file.endswith(".gz") else ""
    return f"{output_file.removesuffix(ending)}-{index:05d}-of-{count:05d}{ending}"


def load_manifest(path: str, has_vocabulary: bool = False) -> dict[str, Any]:
    """Reads a manifest, which must describe its vocabulary if `has_vocabulary`; InputError if it is
    not one."""
    try:
        manifest = files.read_json(path)
        check_shape(manifest, _SHAPE)
        if has_vocabulary:
            check_shape(manifest, _VOCABULARY)
    except (InputError, ValueError) as error:
        problem = str(error).rstrip(".").removesuffix("; correct it")    # no user wrote it
        raise InputError(f"{path} is not a manifest of records ({problem}); make the records again "
                         "in another folder, or remove it and its shards first.") from error
    return manifest


def identity(manifest: Mapping[str, Any]) -> str:
    """Returns a hash that identifies records; descriptions of runs keep it."""
    text = json.dumps(manifest.get("fingerprint"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def record_files(patterns: str | Sequence[str], flag: str) -> list[str]:
    """Lists the record files that a flag names, or the shards if it names manifests alone.
    InputError if a file does not exist, or a .json file is not a manifest."""
    paths = files.find_files(patterns, flag)
    return [path for path in paths if not path.endswith(".json")] or files.find_files(
        [files.join_path(os.path.dirname(path), shard["name"])
         for path in paths for shard in load_manifest(path)["shards"]], flag)


def join_counts(counts: Sequence[Sequence[int]]) -> str:
    """Counts by token, added up over the pieces of a text, as a manifest has them."""
    return " ".join(map(str, map(sum, zip(*counts))))


def token_counts(manifest: Mapping[str, Any]) -> np.ndarray:
    """Returns how often the text has each token, int64 [V]; InputError if the manifest lacks it."""
    try:
        counts = np.array(manifest["token_counts"].split(), np.int64)
        if len(counts) == manifest["vocabulary"]["size"] and counts.min() >= 0 < counts.sum():
            return counts
    except (AttributeError, KeyError, ValueError, OverflowError):
        pass
    raise InputError("the records' manifest lacks token_counts for some tokens, which drawing "
                     "random tokens needs; make the records again.")


def find_manifests(shards: Iterable[str]
                   ) -> list[tuple[dict[str, Any], dict[str, dict[str, Any]], str]]:
    """Returns (manifest, {path of a shard: its entry in the manifest}, path of the manifest) of
    each manifest in the shards' folders that names some of the shards."""
    by_real_path = {files.real_path(path): path for path in shards}
    manifests = []
    for folder in sorted({os.path.dirname(path) for path in by_real_path}):
        for path in files.match_names(folder, "*" + SUFFIX):
            manifest = load_manifest(path, has_vocabulary=True)
            # The shards of a manifest may lie in several folders; names are relative to its own.
            entries = {}
            for shard in manifest["shards"]:
                name = files.real_path(files.join_path(folder, shard["name"]))
                if name in by_real_path:
                    entries[by_real_path[name]] = shard
            if entries:
                manifests.append((manifest, entries, path))
    return manifests


def check_whole(manifests: Iterable[tuple[dict, dict, str]], patterns: str | Sequence[str],
                flag: str) -> None:
    """Raises InputError if a shard is absent that a folder or a glob should have found; or if the
    shards do not have as many records as their manifest counts."""
    if isinstance(patterns, str):
        patterns = patterns.split(",")
    for manifest, _, path in manifests:
        for shard in manifest["shards"]:
            name = files.normal_path(files.join_path(os.path.dirname(path), shard["name"]))
            if not files.exists(name) and any(_covers(pattern, name) for pattern in patterns):
                raise InputError(f"--{flag}: {path} names {name}, which is missing; put the file "
                                 "there, make the records again, or name the other files one by "
                                 "one.")
        known, counted = counted_records(manifest)
        if known != counted:
            raise InputError(f"--{flag}: {path} counts {known:,} records, but its shards hold "
                             f"{counted:,}: the files were changed; make the records again.")


def counted_records(manifest: Mapping) -> tuple[int, int]:
    """Returns the number of records that a manifest states, and the sum over its shards, which is
    another one if somebody changed the manifest."""
    counted = sum(shard["records"] for shard in manifest["shards"])
    counts = manifest.get("counts", {})
    return counts.get("instances", counts.get("records", counted)), counted


def _covers(pattern, path):
    """Returns whether a folder or a glob would find a file if the file existed."""
    pattern = files.normal_path(pattern.strip())
    if files.is_folder(pattern):
        return path.startswith(pattern + os.sep)
    return fnmatch.fnmatch(path, pattern)
