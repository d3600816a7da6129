"""Notes of finished pieces; a killed job resumes from its notes."""

import contextlib
import json
import os
import re
from collections.abc import Callable
from typing import Any

import google_crc32c

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.kept import as_json

TAKEN = "a job with other flags or another text has taken over this output; name another output."
_JOB = "job.json"
_PIECE = re.compile(r"piece-(\d+)\.json")
# Names in the folder, also of texts that pieces made, and of what a killed process was writing.
_OWN = re.compile(r"(job\.json|piece-\d+\.json|\d{5,}\.txt)(\.tmp-.*)?")


class Closed(InputError):
    """The notes of a job are gone: another process has finished it, or makes another job's."""


class FinishedPieces:
    """The results of finished pieces, in a folder, so that a killed job resumes where it was. Texts
    that pieces make may be there too, named as 00000.txt.

    Args:
        folder: created if it does not exist; removed by `close`.
        fingerprint: JSON value of all that the results depend on.
        begin: called where the job begins afresh, before anything is written, with the fingerprint
            of another job that is found there, or None; the notes of that job are then removed.
        is_same: function of a fingerprint that is found there: whether it belongs to this job.

    Raises:
        InputError: the folder holds files that no job wrote.
    """

    def __init__(self, folder: str, fingerprint: Any, begin: Callable[[Any], None] | None,
                 is_same: Callable[[Any], bool] | None = None) -> None:
        self._folder = folder
        job = os.path.join(folder, _JOB)
        earlier = _read(job)
        self.goes_on = bool(earlier) and (
            is_same(earlier) if is_same else earlier == as_json(fingerprint))
        for name in sorted(files.list_folder(folder)) if files.is_folder(folder) else (
                [""] if files.is_taken(folder) else []):
            if not _OWN.fullmatch(name):
                raise InputError(f"{os.path.join(folder, name)} is in the folder where a job keeps "
                                 "its finished pieces; move the file away, or name another output.")
        if not self.goes_on:
            if begin:
                begin(earlier)
            files.remove_folder(folder)
            files.make_folders(folder)
            write_json(job, fingerprint)
        self._job = _checksum(earlier if self.goes_on else fingerprint)

    def check(self) -> None:
        """Raises `Closed` if the notes of the job that opened them are gone, InputError if they are
        of another job now."""
        job = _read(os.path.join(self._folder, _JOB))
        if job is None:
            raise Closed(f"{self._folder} is gone, with the notes of this job; start the same "
                         "command again.")
        if _checksum(job) != self._job:
            raise InputError(f"{self._folder}: {TAKEN}")

    def _path(self, index):
        return os.path.join(self._folder, f"piece-{index:05d}.json")

    def noted(self) -> list[int]:
        """Lists the pieces that have notes, intact or not."""
        names = []
        # Another share may finish the job, and remove the folder, at this moment.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            names = files.list_folder(self._folder)
        return sorted(int(match[1]) for name in names if (match := _PIECE.fullmatch(name)))

    def forget(self, index: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            files.remove_file(self._path(index))

    def result(self, index: int, is_intact: Callable[[Any], bool] = lambda result: True) -> Any:
        """Returns the piece's saved result, or None if there is no intact note of it, or if
        `is_intact` returns False for the result."""
        note = _read(self._path(index))
        if not isinstance(note, dict) or note.keys() != {"result", "crc32c"}:
            return None
        is_whole = note["crc32c"] == _checksum(note["result"])
        return note["result"] if is_whole and is_intact(note["result"]) else None

    def save(self, index: int, result: Any) -> None:
        """Notes that a piece is finished; its files must have their final names by now. Nothing is
        noted if another process that did the piece too has finished the job. InputError if the
        notes are of another job."""
        with contextlib.suppress(Closed, FileNotFoundError):    # it has finished, or finishes now
            self.check()
            write_json(self._path(index), {"result": result, "crc32c": _checksum(result)})

    def close(self) -> None:
        files.remove_folder(self._folder)


def _read(path):
    try:
        with files.open_file(path) as file:
            return json.load(file)
    except (OSError, ValueError, RecursionError):
        return None


def _checksum(result):
    return google_crc32c.value(json.dumps(result, sort_keys=True).encode())
