"""Shards of records: written whole, checksummed, and made once, however often a job is started."""

import contextlib
import functools
import glob
import gzip
import os

import google_crc32c

from bert_tf.data import manifest, tfrecord
from bert_tf.data.jobs import Progress, run_pieces
from bert_tf.errors import InputError
from bert_tf.files import write_aside, write_json


class _Digested:
    """A file that checksums what is written to it."""

    def __init__(self, file, digest):
        self._file, self._digest = file, digest

    def write(self, data):
        self._digest.update(bytes(data))
        return self._file.write(data)

    def flush(self):
        self._file.flush()


def write_shard(path, folder, blocks):
    """Writes one TFRecord file, gzip if its name ends in .gz; the same records, the same bytes.

    Args:
        path: the file.
        folder: where the manifest will stand.
        blocks: iterable of dicts of arrays [B, length], as `tfrecord.serialize_examples` takes.

    Returns:
        Its entry in the manifest: name (relative to `folder`), records, bytes, crc32c.
    """
    records = 0
    with write_aside(path, "wb") as file:
        digest = google_crc32c.Checksum()
        sink = _Digested(file, digest)
        # No name and no time in the gzip header.
        out = gzip.GzipFile("", "wb", 6, sink, 0) if path.endswith(".gz") else sink
        for features in blocks:
            messages = tfrecord.serialize_examples(features)
            out.write(b"".join(map(tfrecord.frame, messages)))
            records += len(messages)
        if out is not sink:
            out.close()
    return {"name": os.path.relpath(path, folder), "records": records,
            "bytes": os.path.getsize(path), "crc32c": digest.digest().hex()}


def make_shards(path, fingerprint, pieces, work, num_workers, describe, may_replace=True):
    """Makes the shards of all pieces and then their manifest; what is finished is not done again.

    Shards of another job that stand under this manifest's name are removed first, if they may be.

    Args:
        path: of the manifest.
        fingerprint: JSON value of all that the shards depend on; has `output_file`, their names
            relative to the manifest's folder, and `pieces`, with one entry a piece.
        pieces: iterable of the pieces; it is begun only if there is something to do.
        work: picklable callable (index, piece) -> dict with `shards`, the entries of the shards it
            wrote, and whatever `describe` needs.
        num_workers: see `run_pieces`.
        describe: function of the results by piece: what else the manifest is to say. Where it
            raises InputError, no shard is kept.
        may_replace: whether shards of another job may be removed.

    Returns:
        The manifest, and whether it was there already.

    Raises:
        InputError: what must not be removed stands there.
    """
    folder = os.path.dirname(os.path.abspath(path))

    def discard(names):
        if not may_replace:
            raise InputError(f"{path} is of other records, made from another task, text or "
                             "vocabulary or with other flags: name another folder, or remove it.")
        _remove(folder, names)

    earlier = manifest.load_manifest(path) if os.path.exists(path) else None
    names = [shard["name"] for shard in earlier["shards"]] if earlier else []
    if earlier and earlier.get("fingerprint") != fingerprint:
        # Other flags or another text: the old shards must not stand beside the new ones.
        discard(names)
        os.remove(path)
        earlier = None
    progress = Progress(path.removesuffix(manifest.SUFFIX) + ".progress", fingerprint,
                        lambda other: discard(_planned(other)))
    if earlier:
        if _is_intact(folder, earlier):
            progress.close()
            return earlier, True
        _remove(folder, names)
        os.remove(path)
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


def _planned(fingerprint):
    """The names of all shards that the job of this fingerprint makes, finished or not."""
    count = len(fingerprint["pieces"])
    return [manifest.shard_name(name, index, count)
            for name in fingerprint["output_file"] for index in range(count)]


def _remove(folder, names):
    """Removes shards, and what a killed process left of them."""
    for path in (os.path.join(folder, name) for name in names):
        for found in (path, *glob.glob(f"{glob.escape(path)}.tmp-*")):
            with contextlib.suppress(FileNotFoundError):
                os.remove(found)


def _is_intact(folder, result):
    """Whether the shards of a result or manifest are there."""
    paths = [(os.path.join(folder, shard["name"]), shard) for shard in result["shards"]]
    return all(os.path.exists(p) and os.path.getsize(p) == s["bytes"] for p, s in paths)
