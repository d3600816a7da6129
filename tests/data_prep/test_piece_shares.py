"""Shares of the pieces that several processes make: the files of one process, after any stop."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bert_tf.data.records import jobs, shards
from bert_tf.errors import InputError
from data_prep import text_job
from data_prep.runner_flags import RunnerFlags
from tests.data_prep.test_pieces import content, raise_


@pytest.fixture
def text(random_text):
    return random_text(1, documents=40, sentences=6)


@pytest.fixture
def share(prepare, tmp_path, text):
    """Function (share, flags): makes a share in out/; all of the pieces without one."""
    def make(share="", **flags):
        return prepare(text, runner=RunnerFlags(piece_share=share),
                       **{"piece_bytes": 2000, **flags})
    return make


@pytest.fixture
def whole(share, tmp_path):
    share(output_file=[str(tmp_path / "whole/r.tfrecord")])
    return content(tmp_path / "whole")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 1, 2)])
def test_the_last_share_ends_the_job(share, tmp_path, whole, order, capsys):
    for number in order[:-1]:
        share(f"{number}/3")
        assert f"share {number}/3 is finished" in capsys.readouterr().out
        assert not (tmp_path / "out/r.manifest.json").exists()
    share(f"{order[-1]}/3")
    assert content(tmp_path / "out") == whole
    assert (tmp_path / "out/r.tokenizer/vocab.txt").exists()
    share("0/3")
    assert "are there already" in capsys.readouterr().out


def test_the_plain_command_makes_what_is_missing(share, tmp_path, whole, monkeypatch):
    share("1/2")
    do, found = text_job.TextJob.__call__, []
    monkeypatch.setattr(text_job.TextJob, "__call__", lambda self, index, piece: (
        found.append(index) or do(self, index, piece)))
    share()
    assert content(tmp_path / "out") == whole
    assert found == list(range(0, (len(whole) - 1), 2))


def test_a_stopped_share_goes_on(share, tmp_path, whole, monkeypatch, capsys):
    save = jobs.Progress.save
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(jobs.Progress, "save", lambda self, index, result: (
            save(self, index, result), index > 1 and raise_(KeyboardInterrupt)))
        share("0/2")
    share("1/2")
    capsys.readouterr()
    share("0/2")
    assert "pieces were finished before" in capsys.readouterr().out
    assert content(tmp_path / "out") == whole


def test_a_shard_that_is_gone_is_said_by_the_last_share(share, tmp_path, whole, capsys):
    share("0/2")
    next((tmp_path / "out").glob("*-00002-of-*")).unlink()
    share("1/2")
    assert "share 1/2 is finished; other shares" in capsys.readouterr().out
    share()
    assert content(tmp_path / "out") == whole


def test_a_job_that_another_process_ends_meanwhile(share, tmp_path, whole, monkeypatch, capsys):
    do = text_job.TextJob.__call__

    def finish(self, index, piece):
        monkeypatch.setattr(text_job.TextJob, "__call__", do)
        share()
        return do(self, index, piece)
    monkeypatch.setattr(text_job.TextJob, "__call__", finish)
    share("0/2")
    assert "are there already" in capsys.readouterr().out
    assert content(tmp_path / "out") == whole


@pytest.mark.parametrize("given", ["1", "2/2", "-1/2", "a/b", "0/0", "1/2/3"])
def test_odd_shares_are_refused(share, given):
    with pytest.raises(InputError, match=f"--piece_share is {given}; it must be K/N"):
        share(given)


def test_a_share_waits_a_while_for_its_turn(share, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(shards, "_TURN_SECONDS", 0.0)
    code = ("import sys; from bert_tf import files\n"
            "with files.locked(sys.argv[1], 'test'): print(flush=True); sys.stdin.read()")
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "out/r.manifest.json")],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(InputError, match=f"records: process {other.pid} on .* is at work on"):
            share("0/2")
        other.stdin.close()


def test_shares_at_once_and_one_killed(share, tmp_path, whole, vocab_file):
    out = tmp_path / "out"

    def start(number):
        return subprocess.Popen(
            [sys.executable, "-m", "data_prep.create_pretraining_data", "--num_workers=1",
             f"--input_file={tmp_path}/text0.txt", f"--output_file={out}/r.tfrecord",
             f"--vocab_file={vocab_file}", "--piece_bytes=2000", f"--piece_share={number}/2"],
            stdout=subprocess.DEVNULL)
    running = [start(number) for number in (0, 1)]
    while not list(out.glob("r.tfrecord-?????-of-?????")):
        assert running[0].poll() is None or running[1].poll() is None
        time.sleep(0.002)
    os.kill(running[0].pid, signal.SIGKILL)
    assert running[1].wait() == 0 and running[0].wait() in (-9, 0)
    again = start(0)
    assert again.wait() == 0
    assert content(out) == whole
    assert "piece_share" not in (out / "r.flags.txt").read_text()
