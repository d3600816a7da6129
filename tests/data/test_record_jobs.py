"""Pieces done by one or many processes, once each, also after a stop."""

import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

from bert_tf.data.records import jobs
from bert_tf.data.records.jobs import FinishedPieces, run_pieces
from bert_tf.errors import InputError
from tests.data.work import (
    Deadly,
    LargeWork,
    die,
    double,
    end_where_nobody_hears,
    fail_at_two,
    fail_oddly,
    measure,
)


def run(folder, work=double, num_workers=1):
    progress = FinishedPieces(str(folder / "progress"), {"it": "job"}, lambda earlier: None)
    return run_pieces(iter(range(10, 15)), 5, work, progress, num_workers, bool)


@pytest.mark.parametrize("num_workers", [0, 1, 2, 9])
def test_results_by_index(tmp_path, num_workers):
    assert run(tmp_path, num_workers=num_workers) == [double(i, 10 + i) for i in range(5)]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_stopped_job_goes_on(tmp_path, num_workers):
    with pytest.raises(InputError, match="piece 2 is bad"):
        run(tmp_path, fail_at_two, num_workers)
    finished = {path.name for path in (tmp_path / "progress").glob("piece-*")}
    assert "piece-00002.json" not in finished
    assert num_workers > 1 or finished == {"piece-00000.json", "piece-00001.json"}
    assert run(tmp_path) == [double(i, 10 + i) for i in range(5)]
    assert run(tmp_path, die) == [double(i, 10 + i) for i in range(5)]      # nothing is left to do


def test_another_job_starts_afresh_and_says_what_is_lost(tmp_path, capsys):
    folder = str(tmp_path / "progress")
    FinishedPieces(folder, {"it": 1}, None).save(0, "old")
    discarded = []
    progress = FinishedPieces(folder, {"it": 2}, discarded.append)
    assert discarded == [{"it": 1}] and progress.result(0) is None
    assert capsys.readouterr().out == (f"{folder} kept 1 finished piece of a job with other flags "
                                       "or another text; all pieces are made again.\n")
    progress.close()
    assert os.listdir(tmp_path) == []


def test_a_job_of_one_piece_prints_no_progress(tmp_path, capsys):
    run_pieces(iter([10]), 1, double, FinishedPieces(str(tmp_path / "p"), 1, None), 1, bool)
    assert not capsys.readouterr().out
    run(tmp_path)
    assert "5 of 5 pieces are finished" in capsys.readouterr().out
    progress = FinishedPieces(str(tmp_path / "q"), 1, None)
    run_pieces(iter(range(250)), None, double, progress, 1, bool)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 101 and lines[98:] == [f"{n} pieces finished" for n in (99, 100, 200)]


@pytest.mark.parametrize("content", [None, "", "[1, "])
def test_a_folder_without_a_readable_job_is_emptied(tmp_path, content):
    folder = tmp_path / "progress"
    folder.mkdir()
    (folder / "piece-00000.json").write_text('"old"')
    if content is not None:
        (folder / "job.json").write_text(content)
    assert FinishedPieces(str(folder), {"it": 1}, None).result(0) is None


def test_a_dead_worker_is_said(tmp_path):
    with pytest.raises(InputError, match="a worker process was killed"):
        run(tmp_path, die, num_workers=2)


@pytest.mark.parametrize("work, pieces", [
    (Deadly(), "abc"),                                      # dies while it starts
    (measure, [b"x" * (1 << 22), Deadly(), b"", b""]),      # dies while it takes a piece
    (die, [b"x" * (1 << 22)] * 9),                      # dies at work, before the next large one
])
def test_no_death_of_a_worker_leaves_the_job_waiting(tmp_path, work, pieces):
    progress = FinishedPieces(str(tmp_path / "progress"), 1, None)
    with pytest.raises(InputError, match="a worker process was killed"):
        run_pieces(iter(pieces), len(pieces), work, progress, 2, bool)
    assert not multiprocessing.active_children()


def test_a_worker_that_dies_while_it_starts(tmp_path, monkeypatch):
    """Before it has read what it is to do, which is more than a pipe holds."""
    send = jobs._Worker.send

    def send_after_death(self, work):
        os.kill(self.process.pid, signal.SIGKILL)
        send(self, work)

    monkeypatch.setattr(jobs._Worker, "send", send_after_death)
    with pytest.raises(InputError, match="a worker process was killed"):
        run_pieces(iter("abc"), 3, LargeWork(), FinishedPieces(str(tmp_path / "p"), 1, None), 2,
                   bool)
    assert not multiprocessing.active_children()


def test_errors_of_workers_arrive(tmp_path):
    with pytest.raises(RuntimeError, match="Local: can't be pickled") as error:
        run(tmp_path, fail_oddly, num_workers=2)
    assert "fail_oddly" in str(error.value.__cause__)


TWIN = """
import sys
from bert_tf.data.records.jobs import FinishedPieces
from bert_tf.files import open_file, write_aside

progress, shard = FinishedPieces({folder!r} + "/p", 1, None), {folder!r} + "/shard"
print("ready", flush=True)
sys.stdin.readline()
for turn in range(100):
    with write_aside(shard, "wb") as file:
        for block in range(3):
            file.write(b"the same" * 5000)
    progress.save(turn % 3, {{"shards": [shard]}})
    with open_file(shard, "rb") as file:
        assert file.read() == b"the same" * 15000
    assert progress.result(turn % 3) == {{"shards": [shard]}}
"""


def test_two_that_do_the_same_piece_end_equal(tmp_path):
    FinishedPieces(str(tmp_path / "p"), 1, None)
    twins = [subprocess.Popen([sys.executable, "-c", TWIN.format(folder=str(tmp_path))],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for twin in twins:
        twin.stdout.readline()
    for twin in twins:
        twin.stdin.write(b"\n")
        twin.stdin.flush()
    assert [twin.communicate() and twin.returncode for twin in twins] == [0, 0]
    assert sorted(os.listdir(tmp_path)) == ["p", "shard"] and len(os.listdir(tmp_path / "p")) == 4


def test_nothing_is_noted_of_a_job_that_another_process_finished(tmp_path):
    progress = FinishedPieces(str(tmp_path / "p"), 1, None)
    progress.close()
    progress.save(0, "late")
    assert os.listdir(tmp_path) == []


SCRIPT = """
import signal
from bert_tf.data.records.jobs import run_pieces
from bert_tf.data.records.jobs import FinishedPieces

def wait(index, piece):
    print("started", flush=True)
    signal.pause()

if __name__ == "__main__":
    run_pieces(iter("ab"), 2, wait, FinishedPieces({folder!r} + "/p", 1, None), 2, None)
"""


def test_workers_end_with_a_killed_job(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(SCRIPT.format(folder=str(tmp_path)))
    job = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    for _ in range(2):
        job.stdout.readline()
    os.kill(job.pid, signal.SIGKILL)
    job.communicate(timeout=600)    # the pipe ends only when all that hold it have ended


ENDED = """
import sys, time
from bert_tf import signals
from bert_tf.data.records import jobs
from bert_tf.data.records.jobs import run_pieces
from bert_tf.data.records.jobs import FinishedPieces
from bert_tf.files import write_aside

def wait(index, piece):
    with write_aside({folder!r} + f"/shard{{index}}") as file:
        file.write("half")
        file.flush()
        print("started", flush=True)
        time.sleep(600)

if __name__ == "__main__":
    jobs._SECONDS_TO_END = 600      # however busy the machine is
    with signals.ending():
        run_pieces(iter("ab"), 2, wait, FinishedPieces({folder!r} + "/p", 1, None), {workers}, None)
"""


@pytest.mark.parametrize("number, word", [(signal.SIGINT, "interrupted"),
                                          (signal.SIGTERM, "terminated")])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_ends_a_job_in_one_line(tmp_path, workers, number, word):
    script = tmp_path / "job.py"
    script.write_text(ENDED.format(folder=str(tmp_path), workers=workers))
    job = subprocess.Popen([sys.executable, str(script)], text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, start_new_session=True)
    for _ in range(workers):
        job.stdout.readline()
    os.killpg(job.pid, number)      # as a terminal does
    _, errors = job.communicate(timeout=600)
    assert errors == f"{word}\n" and job.returncode == {"interrupted": 130, "terminated": 143}[word]
    assert sorted(os.listdir(tmp_path)) == ["job.py", "p"]


def test_a_worker_ends_though_the_exception_of_its_end_was_dropped():
    worker = jobs._Worker()
    worker.send(end_where_nobody_hears)
    worker.send((0, None))
    worker.end(600)
    assert worker.process.exitcode == 0
