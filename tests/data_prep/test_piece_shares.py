"""Shares of the pieces that several processes make: the files of one process, after any stop."""

import contextvars
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from bert_tf import files
from bert_tf.data.records import jobs, shards
from bert_tf.errors import InputError
from bert_tf.files import writing
from data_prep import text_job
from data_prep.runners import RunnerFlags
from tests.data_prep.conftest import start_dying
from tests.data_prep.test_pieces import content, raise_


@pytest.fixture
def text(random_text):
    return random_text(1, documents=40, sentences=6)


@pytest.fixture
def share(prepare, tmp_path, text):
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
    save = jobs.FinishedPieces.save
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(jobs.FinishedPieces, "save", lambda self, index, result: (
            save(self, index, result), index > 1 and raise_(KeyboardInterrupt)))
        share("0/2")
    share("1/2")
    capsys.readouterr()
    share("0/2")
    assert "pieces finished before: " in capsys.readouterr().out
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
        contextvars.Context().run(share)    # as in another process
        return do(self, index, piece)
    monkeypatch.setattr(text_job.TextJob, "__call__", finish)
    share("0/2")
    assert "are there already" in capsys.readouterr().out
    assert content(tmp_path / "out") == whole


def test_a_note_that_follows_the_end_is_removed(share, tmp_path, whole, monkeypatch):
    """In a store a note needs no folder, so that one may be written after the job's end."""
    write = jobs.write_json

    def write_late(path, value):
        if "piece-" in path:
            patch.setattr(jobs, "write_json", write)
            contextvars.Context().run(share)
            os.makedirs(os.path.dirname(path))
        write(path, value)
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "write_json", write_late)
        share("0/6")
    assert content(tmp_path / "out") == whole


def test_pieces_that_moved_are_made_again(prepare, tmp_path):
    """A file before them became shorter, and there are as many pieces as before."""
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    documents = [f"the {letter} house\n" * 20 + "\n" for letter in "abcdefghijklmnopqrstuvwxyzABC"]
    paths[0].write_text("".join(documents[:9]), encoding="utf-8")
    paths[1].write_text("".join(documents[9:]), encoding="utf-8")
    given = {"input_file": list(map(str, paths)), "piece_bytes": 6 * len(documents[0])}
    prepare(None, runner=RunnerFlags(piece_share="1/2"), **given)
    paths[0].write_text("".join(documents[1:9]), encoding="utf-8")
    prepare(None, **given)
    prepare(None, **given, output_file=[str(tmp_path / "whole/r.tfrecord")])
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize("other", ["", "1/2"])
def test_a_share_leaves_the_shards_of_a_job_with_other_flags(share, prepare, tmp_path, monkeypatch,
                                                             other):
    """That job began while the share was at work, and has ended or not."""
    do = text_job.TextJob.__call__

    def begin_other(self, index, piece):
        patch.setattr(text_job.TextJob, "__call__", do)
        contextvars.Context().run(prepare, None, runner=RunnerFlags(piece_share=other),
                                  piece_bytes=2000, random_seed=2)
        return do(self, index, piece)
    with monkeypatch.context() as patch:
        patch.setattr(text_job.TextJob, "__call__", begin_other)
        with pytest.raises(InputError, match=r"r\.(manifest.json|progress): a job with"):
            share("0/2", random_seed=1)
    found = {name: data for name, data in content(tmp_path / "out").items()
             if "progress" not in name}
    share(random_seed=2, output_file=[str(tmp_path / "other/r.tfrecord")])
    whole = content(tmp_path / "other")
    assert found == {name: whole.get(name) for name in found}
    share("0/2", random_seed=2)
    assert content(tmp_path / "out") == whole


def test_pieces_of_an_earlier_text_are_not_taken(share, prepare, tmp_path, text, capsys):
    """A share that read the text before it changed ends while another is at work."""
    share("0/2")
    shutil.move(tmp_path / "out", tmp_path / "earlier")
    changed, do = text.replace("house", "walks"), text_job.TextJob.__call__
    given = {"piece_bytes": 2000, "runner": RunnerFlags(piece_share="1/2")}

    def let_other_end(self, index, piece):
        shutil.copytree(tmp_path / "earlier", tmp_path / "out", dirs_exist_ok=True)
        return do(self, index, piece)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_job.TextJob, "__call__", let_other_end)
        prepare(changed, **given)
    assert "share 1/2 is finished; other shares" in capsys.readouterr().out
    prepare(changed, piece_bytes=2000)
    prepare(changed, piece_bytes=2000, output_file=[str(tmp_path / "new/r.tfrecord")])
    assert content(tmp_path / "out") == content(tmp_path / "new")


def test_a_share_whose_text_changed_says_so(share, tmp_path, text, monkeypatch):
    do = text_job.TextJob.__call__

    def change(self, index, piece):
        (tmp_path / "text0.txt").write_text(text.replace("house", "walks"), encoding="utf-8")
        os.utime(tmp_path / "text0.txt", (index, index))
        return do(self, index, piece)
    monkeypatch.setattr(text_job.TextJob, "__call__", change)
    with pytest.raises(InputError, match="text0.txt was changed while its records were made"):
        share("0/2")


def test_the_end_of_a_job_leaves_what_others_are_writing(share, tmp_path):
    share("0/2")
    start = tmp_path / f"out/r.tfrecord-00000-of-00006{files.ASIDE}"      # which is finished
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    own = writing._machine()
    for name in ((writes := f"{start}{os.getppid()}-{own}-12"), f"{start}{ended.pid}-{own}-12"):
        pathlib.Path(name).mkdir()
    share()
    assert (tmp_path / "out/r.manifest.json").exists()
    assert list(map(str, (tmp_path / "out").glob(f"*{files.ASIDE}*"))) == [writes]


@pytest.mark.parametrize("given", ["1", "2/2", "-1/2", "a/b", "0/0", "1/2/3"])
def test_odd_shares_are_refused(share, given):
    with pytest.raises(InputError, match=f"--piece_share is {given}; it must be K/N"):
        share(given)


def test_a_share_waits_a_while_for_its_turn(share, hold, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(shards, "_TURN_SECONDS", 0.0)
    other = hold(tmp_path / "out/r.manifest.json")
    with pytest.raises(InputError, match=f"records: process {other.pid} on .* is at work on"):
        share("0/2")


def test_a_share_waits_for_a_process_that_reads_long(share, hold, tmp_path, monkeypatch, capsys):
    (tmp_path / "out").mkdir()
    other = hold(tmp_path / "out/r.manifest.json")
    said = []

    def note_and_end(line, **_):
        said.append(line)
        threading.Timer(0.1, other.communicate).start()

    monkeypatch.setattr(shards, "print", note_and_end, raising=False)
    monkeypatch.setattr(shards, "_TURN_SECONDS", 60.0)
    locked = files.locked
    monkeypatch.setattr(files, "locked", lambda path, what, seconds=0.0: locked(
        path, what, seconds))
    share("0/2")
    assert len(said) == 1 and said[0].startswith(f"waiting: records: process {other.pid} on ")
    assert "share 0/2 is finished" in capsys.readouterr().out


def test_shares_at_once_and_one_killed(share, tmp_path, whole, vocab_file):
    out = tmp_path / "out"
    flags = {"num_workers": 1, "input_file": tmp_path / "text0.txt", "vocab_file": vocab_file,
             "output_file": out / "r.tfrecord", "piece_bytes": 2000}
    killed = start_dying(**flags, piece_share="0/2")
    command = [sys.executable, "-m", "data_prep.create_pretraining_data",
               *(f"--{name}={value}" for name, value in flags.items())]
    other = subprocess.run([*command, "--piece_share=1/2"], stdout=subprocess.DEVNULL)
    assert killed.wait() == -signal.SIGKILL and other.returncode == 0
    assert not (out / "r.manifest.json").exists()
    subprocess.run([*command, "--piece_share=0/2"], stdout=subprocess.DEVNULL, check=True)
    assert content(out) == whole
    assert "piece_share" not in (out / "r.flags.txt").read_text()
