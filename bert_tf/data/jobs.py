"""Work over numbered pieces: several processes, the same result, nothing finished done twice."""

import concurrent.futures
import json
import multiprocessing
import os
import shutil
import threading
import time

from bert_tf.errors import InputError
from bert_tf.files import write_json

_work = None    # in a worker process: what `run_pieces` was given


def _start_worker(work):
    global _work    # pylint: disable=global-statement
    _work = work
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    """A killed job must not leave workers that write into the folder of its successor."""
    multiprocessing.parent_process().join()
    os._exit(1)     # pylint: disable=W0212


def _do(index, piece):
    return _work(index, piece)


class Progress:
    """The results of finished pieces, in a folder, so that a killed job goes on where it was.

    Args:
        folder: made if it does not exist; removed by `close`.
        fingerprint: JSON value of all that the results depend on.
        discard: called with the fingerprint of another job found there, which is then forgotten.
    """

    def __init__(self, folder, fingerprint, discard):
        self._folder = folder
        job = os.path.join(folder, "job.json")
        earlier = self._read(job)
        if earlier and earlier != fingerprint:
            discard(earlier)
        if earlier != fingerprint:
            shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, exist_ok=True)
        write_json(job, fingerprint)

    @staticmethod
    def _read(path):
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def _path(self, index):
        return os.path.join(self._folder, f"piece-{index:05d}.json")

    def result(self, index):
        """What `save` was given for this piece, or None."""
        return self._read(self._path(index))

    def save(self, index, result):
        """Notes that a piece is finished; its files must have their final names by now."""
        write_json(self._path(index), result)

    def close(self):
        """Forgets everything: the job is finished."""
        shutil.rmtree(self._folder)


def run_pieces(pieces, count, work, progress, num_workers, is_intact):
    """Does `work(index, piece)` for every piece that has no result yet.

    At most num_workers + 1 pieces are in memory at a time.

    Args:
        pieces: iterable of the `count` pieces.
        count: how many there are.
        work: picklable callable; returns a JSON value. Each process gets one copy, which it keeps.
        progress: `Progress`.
        num_workers: number of processes, 0 for one a core; with 1, or one piece, all is done in
            this one.
        is_intact: function of an earlier result; False makes the piece be done again.

    Returns:
        list of the results, by index.

    Raises:
        InputError: a worker process died.
    """
    results = [progress.result(index) for index in range(count)]
    results = [r if r is not None and is_intact(r) else None for r in results]
    waiting = results.count(None)
    if waiting < count:
        print(f"{count - waiting} of {count} pieces were finished before", flush=True)
    start, finished = time.monotonic(), 0

    def note(index, result):
        nonlocal finished
        progress.save(index, result)
        results[index] = result
        finished += 1
        left = (time.monotonic() - start) / finished * (waiting - finished)
        print(f"piece {index + 1}/{count} finished, {waiting - finished} to go"
              + (f", about {left:.0f} s left" if left else ""), flush=True)

    num_workers = num_workers or _cores()
    todo = ((i, piece) for i, piece in enumerate(pieces) if results[i] is None)
    if num_workers == 1 or waiting <= 1:
        for index, piece in todo:
            note(index, work(index, piece))
        return results

    # "spawn": a fork of a process that has started threads (TensorFlow's, say) may hang.
    with concurrent.futures.ProcessPoolExecutor(
            min(num_workers, waiting), multiprocessing.get_context("spawn"),
            _start_worker, (work,)) as pool:
        running = {}
        try:
            for index, piece in todo:
                running[pool.submit(_do, index, piece)] = index
                if len(running) > num_workers:
                    _collect(running, note)
            while running:
                _collect(running, note)
        except concurrent.futures.process.BrokenProcessPool as error:
            raise InputError("a worker process was killed, perhaps for want of memory: start the "
                             "same command again, with fewer --num_workers; finished pieces are "
                             "kept.") from error
    return results


def _cores():
    """The cores that this process may use, where the system tells, else all."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count()


def _collect(running, note):
    done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
    for future in sorted(done, key=lambda future: future.exception() is not None):
        note(running.pop(future), future.result())
