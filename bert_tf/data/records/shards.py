"""Shards of records: written whole, checksummed, and made once, however often a job is started."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterable
from typing import Any

from bert_tf.data.records import manifest, tfrecord
from bert_tf.data.records.jobs import Progress, run_pieces
from bert_tf.errors import InputError
from bert_tf.files import (
    absolute,
    exists,
    file_size,
    is_file,
    is_taken,
    join_path,
    leftovers,
    locked,
    remove_file,
    write_json,
)
from bert_tf.options import same_options


def make_shards(path: str, fingerprint: dict, pieces: Iterable, work: Callable[[int, Any], dict],
                num_workers: int, describe: Callable[[list], dict], may_replace: bool = True,
                defaults: dict | None = None) -> tuple[dict, bool]:
    """Makes the shards of all pieces and then their manifest; what is finished is not done again.

    A shard that is there counts only if its checksum is right. Shards of another job that have this
    manifest's name are removed first, if they may be; files that no such job made are left alone.

    Args:
        fingerprint: JSON value of all that the shards depend on; has `output_file`, their names
            relative to the manifest's folder, `pieces`, with one entry a piece, and `options`. A
            later version must leave a new option out where it has its default: other files keep a
            hash of the fingerprint.
        pieces: iteration begins only if there is something to do.
        work: picklable callable (index, piece) -> dict with `shards`, the entries of the shards it
            wrote, and whatever `describe` needs.
        describe: function of the results by piece; returns what else the manifest holds. If it
            raises InputError, no shard is kept.
        may_replace: whether shards of another job may be removed.
        defaults: defaults of `options`; a name that a fingerprint lacks equals its default.

    Returns:
        The manifest, and whether it was there already.

    Raises:
        InputError: another process makes these shards now, or a file that must not be removed is in
            the way; names it.
    """
    if path.startswith("memory://"):        # which no other process sees
        if num_workers > 1:
            raise InputError(f"{path} is in the memory of one process; give --num_workers=1.")
        num_workers = 1
    with locked(path, "records"):
        return _make_shards(path, fingerprint, pieces, work, num_workers, describe, may_replace,
                            functools.partial(_is_same_job, fingerprint, defaults or {}))


def _make_shards(path, fingerprint, pieces, work, num_workers, describe, may_replace, is_same):
    folder = os.path.dirname(absolute(path))

    def discard(names):
        if not may_replace:
            raise InputError(f"{path} is of other records, made from another task, text or "
                             "vocabulary or with other flags: name another folder, or remove it.")
        _remove(folder, names)

    def begin(other):
        with contextlib.suppress(KeyError, TypeError):      # it is no fingerprint
            discard(_planned(other))
        if not earlier:
            _refuse_foreign(folder, _planned(fingerprint))

    earlier = manifest.load_manifest(path) if exists(path) else None
    names = [shard["name"] for shard in earlier["shards"]] if earlier else []
    if earlier and not is_same(earlier.get("fingerprint")):
        # Other flags or another text: the old shards must not lie beside the new ones.
        discard(names)
        remove_file(path)
        earlier = None
    progress = Progress(path.removesuffix(manifest.SUFFIX) + ".progress", fingerprint,
                        begin, is_same)
    if earlier:
        damaged = find_damaged(folder, earlier["shards"])
        if not damaged:
            progress.close()
            return earlier, True
        print(f"warning: {damaged} is not as its manifest describes it; all shards of {path} are "
              "made again", flush=True)
        _remove(folder, names)
        remove_file(path)
    results = run_pieces(pieces, len(fingerprint["pieces"]), work, progress, num_workers,
                         functools.partial(_is_intact, folder))
    try:
        description = describe(results)
    except InputError:
        _remove(folder, _planned(fingerprint))
        progress.close()
        raise
    record = {**description, "shards": [shard for r in results for shard in r["shards"]],
              "fingerprint": fingerprint}
    write_json(path, record)
    progress.close()
    return record, False


def _is_same_job(fingerprint, defaults, earlier):
    """Whether the fingerprint in an earlier file belongs to the same job."""
    if not isinstance(earlier, dict) or not isinstance(earlier.get("options"), dict):
        return False
    return (same_options(fingerprint["options"], earlier["options"], defaults)
            and same_options({**fingerprint, "options": None}, {**earlier, "options": None}, {}))


def _planned(fingerprint):
    """The names of all shards that the job of this fingerprint makes, finished or not."""
    count = len(fingerprint["pieces"])
    return [manifest.shard_name(name, index, count)
            for name in fingerprint["output_file"] for index in range(count)]


def _refuse_foreign(folder, names):
    """Raises InputError if a file exists that a shard would replace, as no job of ours made it."""
    for path in (join_path(folder, name) for name in names):
        if is_taken(path):
            raise InputError(f"{path} exists, but no manifest names it: it would be overwritten. "
                             "Remove it, or name another file.")


def _remove(folder, names):
    """Removes shards, and what a killed process left of them."""
    for path in (join_path(folder, name) for name in names):
        for found in (path, *leftovers(path)):
            with contextlib.suppress(FileNotFoundError):
                remove_file(found)


def find_damaged(folder: str, shards: list[dict]) -> str | None:
    """The path of the first shard that is absent or not as its entry in a manifest describes it.

    All bytes are read, at the speed of the disk.
    """
    for shard in shards:
        path = join_path(folder, shard["name"])
        if not is_file(path) or file_size(path) != shard["bytes"] or (
                tfrecord.file_checksum(path) != shard["crc32c"]):
            return path
    return None


def _is_intact(folder, result):
    """Whether the note of a piece is one, and its shards are as it describes them."""
    try:
        return (bool(result["shards"]) and isinstance(result["counts"], dict)
                and find_damaged(folder, result["shards"]) is None)
    except (KeyError, TypeError):
        return False
