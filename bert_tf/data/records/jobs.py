"""Work over numbered pieces: several processes, the same result, nothing finished done twice. A
killed job resumes from its notes of finished pieces."""

import contextlib
import functools
import itertools
import json
import multiprocessing
import os
import pickle
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import connection, resource_tracker
from typing import Any, NamedTuple

import google_crc32c

from bert_tf import files, signals
from bert_tf.errors import InputError, counted
from bert_tf.files import checked, write_json
from bert_tf.kept import as_json

_BROKEN = (EOFError, OSError)      # of the pipe of a dead process
_SECONDS_TO_END = 5         # for a worker to remove its temporary files
TAKEN = "a job with other flags or another text has taken over this output; name another output."
_JOB = "job.json"
_PIECE = re.compile(r"piece-(\d+)\.json")
# Names in the folder, also of texts that pieces made, and of what a killed process was writing.
_OWN = re.compile(r"(job\.json|piece-\d+\.json|\d{5,}\.txt)(\.tmp-.*)?")


class Closed(InputError):
    """The notes of a job are gone: another process has finished it, or makes another job's."""


class FinishedPieces:
    """The results of finished pieces, in a folder, so that a killed job resumes where it was. Texts
    that pieces make may be there too, named as 00000.txt. Raises InputError if the folder holds
    files that no job wrote.

    Args:
        folder: created if it does not exist; removed by `close`.
        fingerprint: JSON value of all that the results depend on.
        begin: called where the job begins afresh, before anything is written, with the fingerprint
            of another job that is found there, or None; the notes of that job are then removed.
        is_same: function of a fingerprint that is found there: whether it belongs to this job.
    """

    def __init__(self, folder: str, fingerprint: Any, begin: Callable[[Any], None] | None,
                 is_same: Callable[[Any], bool] | None = None) -> None:
        self._folder = folder
        job = os.path.join(folder, _JOB)
        earlier = _read(job)
        self.goes_on = bool(earlier) and (
            is_same(earlier) if is_same else earlier == as_json(fingerprint))
        names = [""] * files.is_taken(folder)       # of a file in the folder's place
        if files.is_folder(folder):
            names = sorted(files.list_folder(folder))
        for name in names:
            if not _OWN.fullmatch(name):
                raise InputError(f"{os.path.join(folder, name)} is in the folder where a job keeps "
                                 "its finished pieces; move the file away, or name another output.")
        if not self.goes_on:
            if begin:
                begin(earlier)
            if lost := self.noted():
                print(f"{folder} kept {counted(len(lost), 'finished piece')} of a job with other "
                      "flags or another text; all pieces are made again.", flush=True)
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


class _Worker:
    """A process that does one piece at a time.

    The only thing that it shares with this process is a pipe. So the death of a worker, at whatever
    moment, closes its pipe and can't leave anyone waiting for a lock. Nothing large is given to
    `Process` itself, which waits without end if the process dies before it has read all of it.
    ProcessPoolExecutor is no replacement: Python 3.11.2's waits without end if a worker dies while
    a large piece is handed over.
    """

    def __init__(self):
        context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
        self.pipe, other_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(other_end,), daemon=True)
        resource_tracker.ensure_running()       # it changes which signals are held
        with signals.held(), _named_death():
            self.process.start()
        other_end.close()

    def send(self, work):
        """Hands over what does the pieces, then (index, piece) of one at a time."""
        with _named_death():
            self.pipe.send(work)

    def finish(self):
        """(index, result) of the piece that was handed over, or None if it isn't finished yet."""
        with _named_death():
            if not self.pipe.poll():
                if self.process.exitcode is None:
                    return None
                raise EOFError
            answer, error, trace = self.pipe.recv()
        if error is not None:
            raise error from (None if isinstance(error, InputError) else RuntimeError(trace))
        return answer

    def end(self, seconds):
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        self.pipe.close()


@contextlib.contextmanager
def _named_death():
    try:
        yield
    except _BROKEN as error:
        raise InputError("a worker process was killed, perhaps because memory ran out; run the "
                         "same command again with fewer --num_workers to resume: finished pieces "
                         "are kept.") from error


def _serve(pipe):
    is_asked_to_end = signals.obey_parent()
    parent = multiprocessing.parent_process()

    def end_with_parent():      # whose successor writes into the same folder
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        with contextlib.suppress(*_BROKEN):     # the parent is gone
            work = pipe.recv()
            while not is_asked_to_end():
                index, piece = pipe.recv()
                try:
                    answer = (index, work(index, piece)), None, ""
                except Exception as error:      # handed to the parent, whatever it is
                    answer = None, _portable(error), traceback.format_exc()
                pipe.send(answer)
    except SystemExit as error:     # asked to end; `finally` blocks have run
        # Python's own end would print a library's warnings of waiting requests to a store.
        os._exit(int(error.code or 0))


def _portable(error):
    """The error, or one that can be sent through a pipe in its place."""
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:       # errors may refuse in any way
        return RuntimeError(f"{type(error).__name__}: {error}")


class Share(NamedTuple):
    """Every `of`-th piece from `number` on, of the shares that several processes make."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


# A function that has others do all pieces: takes a function that does a piece by its number, and
# the number of pieces.
Engine = Callable[[Callable[[int], Any], int], None]
Runner = Share | Engine


def _do_and_note(work, progress, index, piece):
    try:
        with checked(progress.check):
            result = work(index, piece)
    except OSError as error:
        raise InputError(f"piece {index + 1} can't be made ({error}); if a disk is full, make room "
                         "and run the command again: finished pieces are kept.") from error
    progress.save(index, result)
    return result


class _Report:
    """The results of pieces by index, and lines on how many of `count`, None if that is unknown,
    are finished."""

    def __init__(self, results, count=None):
        self.results, self._count = results, count
        self._before, self._start = len(results), time.monotonic()
        if results:
            of_count = f" of {count}" if count else ""
            print(f"pieces finished before: {len(results)}{of_count}", flush=True)

    def add(self, index, result):
        self.results[index] = result
        finished = len(self.results)
        if self._count is None:
            if finished < 100 or finished % 100 == 0:   # each small file is a piece
                print(f"{counted(finished, 'piece')} finished", flush=True)
        elif self._count > 1:       # of one piece the caller reports the result
            seconds = (time.monotonic() - self._start) / (finished - self._before)
            left = f", about {seconds * (self._count - finished):.0f} s left"
            print(f"{finished} of {self._count} pieces are finished"
                  + left * (finished < self._count), flush=True)


def run_pieces(pieces: Iterable, count: int | None, work: Callable[[int, Any], Any],
               progress: FinishedPieces, num_workers: int, is_intact: Callable[[Any], bool],
               runner: Runner | None = None) -> list:
    """Does `work(index, piece)` for each piece without a result; returns the results by index. At
    most num_workers + 1 pieces are in memory at a time. Raises InputError if a worker process died,
    or a piece was lost.

    Args:
        count: number of pieces; None: it is not known until the last one.
        work: picklable callable; returns a JSON value. Each process gets one copy, which it keeps.
        num_workers: processes, 0 for one per core; with 1, or one piece, this one does the work.
        is_intact: function of an earlier result; if it returns False, the piece is done again.
        runner: a share of the pieces, the only pieces that then have results; or an `Engine`, which
            has others do all pieces; None: this machine does all.
    """
    share = runner if isinstance(runner, Share) else Share(0, 1)
    if runner and runner is not share:
        return _run_elsewhere(pieces, count, work, progress, is_intact, runner)
    results = {index: result for index in progress.noted() if index % share.of == share.number
               and (result := progress.result(index, is_intact)) is not None}
    todo = (item for item in itertools.islice(enumerate(pieces), share.number, None, share.of)
            if item[0] not in results)
    most, own = num_workers or usable_cores(), None
    if count is None:
        first = list(itertools.islice(todo, 2))
        todo = itertools.chain(first, todo)
        if len(first) < 2:
            most = 1
    else:
        own = len(range(share.number, count, share.of))
        most = min(most, own - len(results))
    _run(todo, most, work, progress, _Report(results, own))
    return [results.get(index) for index in range(count or len(results))]


def _run_elsewhere(pieces, count, work, progress, is_intact, runner):
    if not isinstance(pieces, Sequence):
        pieces = list(pieces)
    runner(functools.partial(_do_unless_done, work, progress, is_intact, pieces), count)
    results = [progress.result(index) for index in range(count)]
    lost = [index for index, result in enumerate(results) if result is None]
    if lost:
        raise InputError(f"{len(lost)} of {count} pieces were lost, such as piece {lost[0]}; run "
                         "the same command again to resume: finished pieces are kept.")
    return results


def _do_unless_done(work, progress, is_intact, pieces, index):
    if progress.result(index, is_intact) is None:
        _do_and_note(work, progress, index, pieces[index])
    return index


def _run(todo, num_workers, work, progress, report):
    """Does all pieces, in worker processes if there is more than one; `todo` yields (index,
    piece)."""
    work = functools.partial(_do_and_note, work, progress)
    if num_workers < 2:
        for index, piece in todo:
            report.add(index, work(index, piece))
        return
    workers: list[_Worker] = []
    try:
        for _ in range(num_workers):
            workers.append(_Worker())
        for worker in workers:      # all of them are starting meanwhile
            worker.send(work)
        busy: list[_Worker] = []
        following = next(todo, None)
        while following or busy:
            while following and len(busy) < num_workers:
                worker = next(w for w in workers if w not in busy)
                worker.send(following)
                busy.append(worker)
                following = next(todo, None)    # read while the workers are at work
            # For a result, or the end of a process.
            connection.wait([event for worker in busy
                             for event in (worker.pipe, worker.process.sentinel)])
            for worker in list(busy):
                if finished := worker.finish():
                    busy.remove(worker)
                    report.add(*finished)
    finally:
        for worker in workers:
            worker.process.terminate()      # it removes its temporary files
        deadline = time.monotonic() + _SECONDS_TO_END
        for worker in workers:
            worker.end(max(deadline - time.monotonic(), 0))


def usable_cores():
    """Returns how many cores this process may use, where the system reports it, else all."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count()
