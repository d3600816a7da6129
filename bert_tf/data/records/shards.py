"""Shards of records: written whole, checksummed, and made once, however often a job is started."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterable
from typing import Any

from bert_tf import files
from bert_tf.data.records import manifest, tfrecord
from bert_tf.data.records.jobs import TAKEN, Closed, FinishedPieces, Runner, Share, run_pieces
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.kept import as_json, differences

# Seconds that a share waits for another process that holds the lock. Who holds it is alive, and may
# read a large text for its checksums, or make all pieces.
_TURN_SECONDS = 86400.0


class Unfinished(Exception):
    """A share of the pieces is made, others are not."""


def make_shards(path: str, fingerprint: dict, pieces: Iterable, work: Callable[[int, Any], dict],
                num_workers: int, describe: Callable[[list], dict], may_replace: bool = True,
                by_place: bool = False, runner: Runner | None = None) -> tuple[dict, bool]:
    """Makes the shards of all pieces and then their manifest; finished pieces are not made again.
    Returns the manifest, and whether it was there already.

    A shard that is there counts only if its checksum is right. Shards of another job that have this
    manifest's name are removed first, if `may_replace`; files that no such job made are left alone.
    Raises InputError if another process makes these shards now, or a file that must not be removed
    is in the way; names it. Raises Unfinished if a share is made, but not all others.

    Args:
        fingerprint: JSON value of all that the shards depend on; has `output_file`, their names
            relative to the manifest's folder, `pieces`, with one entry a piece, and `options`.
        pieces: iteration begins only if there is something to do.
        work: picklable callable (index, piece) -> dict with `shards`, the entries of the shards it
            wrote, and whatever `describe` needs.
        describe: function of the results by piece; returns the manifest's further entries. If it
            raises InputError, no shard is kept.
        by_place: whether `pieces` is a list of places, which `work` reads. Then `work` also has
            `checksum(piece)`, the entry in the manifest's `pieces`; `version(piece)`, a JSON value
            that changes when the piece's files do; and `check_text()` and `check_unchanged()`,
            which raise InputError if a piece can't be taken, or has changed since it was found.
            Its results have `checksum` and `version` of the piece, which is taken for unchanged
            while its version is.
        runner: see `run_pieces`; None for `num_workers` processes of this machine.
    """
    if path.startswith("memory://"):        # which no other process sees
        if num_workers > 1:
            raise InputError(f"{path} is in the memory of one process, so other workers can't read "
                             "it; give --num_workers=1.")
        num_workers = 1
    job = _Job(path, fingerprint, pieces, work, describe, may_replace, by_place)
    if isinstance(runner, Share):
        return _make_share(job, runner, num_workers)
    with files.locked(path, "records"):
        if earlier := job.begin():
            return earlier, True
        try:
            results = job.run(num_workers, runner)
        except InputError:
            if not job.progress.noted():    # nothing to go on with
                job.progress.close()
            raise
        return job.finish(results), False


def _make_share(job, share, num_workers):
    with _turn(job.path):
        if earlier := job.begin():
            return earlier, True
    with contextlib.suppress(Closed):       # below it is known by whom
        job.run(num_workers, share)
    with _turn(job.path):
        results = []
        with contextlib.suppress(Closed):
            job.progress.check()
            results = job.noted()
        # Looked for after the notes, which go when it is there; a store has no turns.
        if files.exists(job.path):
            record = manifest.load_manifest(job.path)
            if not job.is_same(record.get("fingerprint")):
                raise InputError(f"{job.path}: {TAKEN}")
            job.progress.close()    # a worker of this share may have noted a piece since
            return record, True
        job.progress.check()
        if not all(_is_intact(job.folder, result, reads=False) for result in results):
            raise Unfinished(f"share {share} is finished; other shares, or the same command "
                             f"without --piece_share, make the rest of the {job.count} pieces")
        return job.finish(results), False


@contextlib.contextmanager
def _turn(path):
    """Locks the records; waits while another process holds them, and says which."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.locked(path, "records"))
        except files.Held as error:
            print(f"waiting: {error}", flush=True)
            stack.enter_context(files.locked(path, "records", _TURN_SECONDS))
        yield


@dataclasses.dataclass
class _Job:
    """The shards of a manifest; see `make_shards`. After `begin`, `progress` has the notes of the
    finished pieces."""

    path: str
    fingerprint: dict
    pieces: Any
    work: Any
    describe: Callable[[list], dict]
    may_replace: bool
    by_place: bool

    def __post_init__(self):
        self.folder = os.path.dirname(files.absolute(self.path))
        self.count = len(self.fingerprint["pieces"])
        self.progress: Any = None

    def run(self, num_workers, runner):
        return run_pieces(self.pieces, self.count, self.work, self.progress, num_workers,
                          functools.partial(_is_intact, self.folder), runner)

    def begin(self) -> dict | None:
        """Removes the files of another job. Returns the manifest if it exists with all shards, else
        opens the notes."""
        earlier = manifest.load_manifest(self.path) if files.exists(self.path) else None
        names = [shard["name"] for shard in (earlier or {}).get("shards", ())]
        if earlier and not self.is_same(earlier.get("fingerprint")):
            # Other flags or another text: the old shards must not lie among the new ones.
            self._discard(earlier.get("fingerprint"), names)
            files.remove_file(self.path)
            print(f"{self.path} described records of other flags or another text; they are "
                  "replaced.", flush=True)
            earlier = None

        def clear(other):
            with contextlib.suppress(KeyError, TypeError):      # it is not a fingerprint
                self._discard(other, _planned(other))
            for path in self._paths(_planned(self.fingerprint)):
                if not earlier and files.is_taken(path):
                    raise InputError(f"{path} exists, but no manifest names it, and it would be "
                                     "overwritten; remove it, or name another file.")

        self.progress = FinishedPieces(
            self.path.removesuffix(manifest.SUFFIX) + ".progress",
            {**self.fingerprint, "by_place": True} if self.by_place else self.fingerprint,
            clear, self.is_same)
        if earlier:
            known, counted = manifest.counted_records(earlier)
            damaged = _find_damaged(self.folder, earlier["shards"])
            if known == counted and not damaged:
                self.progress.close()
                return earlier
            wrong = f"{damaged} is not as its manifest describes it"
            if known != counted:
                wrong = (f"{self.path} was changed: it counts {known:,} records, its shards "
                         f"{counted:,}")
            print(f"warning: {wrong}; all shards of {self.path} are made again", flush=True)
            self._remove(names)
            files.remove_file(self.path)
        if self.by_place and self.progress.goes_on:
            list(map(self._result, self.progress.noted()))
        return None

    def _result(self, index):
        """The noted result of a piece; None if its text has changed, and the note is removed."""
        result = self.progress.result(index)
        if self.by_place and not self._is_current(index, result):
            self.progress.forget(index)
            return None
        return result

    def noted(self) -> list[Any]:
        """Returns the results by piece if there are notes of all, else None for each. A piece whose
        text has changed has None too, and its note is removed. InputError if the text has changed
        since this process began."""
        if self.by_place:
            self.work.check_unchanged()
        if not {*range(self.count)} <= {*self.progress.noted()}:    # no need to read them
            return [None] * self.count
        return list(map(self._result, range(self.count)))

    def finish(self, results: list[dict]) -> dict:
        pieces = self.fingerprint["pieces"]
        if self.by_place:
            self.work.check_unchanged()
            pieces = [result["checksum"] for result in results]
        try:
            description = self.describe(results)
        except InputError:
            self._remove(_planned(self.fingerprint))
            self.progress.close()
            raise
        record = {**description, "shards": [shard for r in results for shard in r["shards"]],
                  "fingerprint": {**self.fingerprint, "pieces": pieces}}
        write_json(self.path, record)
        self.progress.close()
        files.remove_leftovers(*self._paths(_planned(self.fingerprint)))
        return record

    def _discard(self, other, names):
        if not self.may_replace:
            others = differences(*(
                {**each["options"], "text": [each.get("examples"), each.get("input")],
                 **{name: each.get(name) for name in (
                     "vocabulary", "task", "teachers", "teacher_vocabularies")}}
                for each in (self.fingerprint, {"options": {}, **(other or {})})))
            raise InputError(
                f"{self.path} describes other records, made from another "
                f"{', '.join(others).replace('--', '') or 'text'}; name another folder, or remove "
                "these records and what was trained on them.")
        if self.by_place:
            self.work.check_text()      # before another result is removed for it
        self._remove(names)

    def _paths(self, names):
        return [files.join_path(self.folder, name) for name in names]

    def _remove(self, names):
        """Removes shards that are not to be, finished or not: a share that still writes one ends
        before it has its final name."""
        paths = self._paths(names)
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                files.remove_file(path)
        for path in files.leftovers(*paths):
            files.remove_folder(path)

    @functools.cached_property
    def _checksums(self):
        if not self.by_place:
            return self.fingerprint["pieces"]
        return list(map(self.work.checksum, self.pieces))

    def is_same(self, other: Any) -> bool:
        """Whether a fingerprint on disk is this job's."""
        if not isinstance(other, dict) or not isinstance(other.get("pieces"), list):
            return False
        own, others = ({**each, "pieces": len(each["pieces"]), "by_place": None}
                       for each in (self.fingerprint, other))
        if as_json(own) != others:
            return False
        if self.by_place and other.get("by_place"):     # each note identifies its text
            return True
        return as_json(self._checksums) == other["pieces"]

    def _is_current(self, index, result):
        try:
            return (result["version"] == self.work.version(self.pieces[index])
                    or result["checksum"] == self.work.checksum(self.pieces[index]))
        except (KeyError, TypeError, IndexError):
            return False


def _planned(fingerprint):
    """The names of all shards that the job of this fingerprint makes, finished or not."""
    count = len(fingerprint["pieces"])
    return [manifest.shard_name(name, index, count)
            for name in fingerprint["output_file"] for index in range(count)]


def _find_damaged(folder, shards, reads=True):
    """Returns the path of the first shard that is absent or not as its entry in a manifest says,
    None if all are well. With `reads` all bytes are read, else the sizes alone are looked at."""
    for shard in shards:
        path = files.join_path(folder, shard["name"])
        if not files.is_file(path) or files.file_size(path) != shard["bytes"] or (
                reads and tfrecord.file_checksum(path) != shard["crc32c"]):
            return path
    return None


def _is_intact(folder, result, reads=True):
    try:
        return (bool(result["shards"]) and isinstance(result["counts"], dict)
                and _find_damaged(folder, result["shards"], reads) is None)
    except (OSError, KeyError, TypeError):
        return False
