"""Files that are whole or absent, and folders that one process works on."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from bert_tf import files
from bert_tf.errors import InputError

_HOLD = """
import sys
from bert_tf.files import locked
with locked(sys.argv[1], "--output_dir"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(name="hold")
def fixture_hold():
    """function(path): a process that holds the lock of a path until its stdin ends."""
    started = []

    def hold(path):
        started.append(subprocess.Popen([sys.executable, "-c", _HOLD, str(path)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == "held\n"
        return started[-1]
    yield hold
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name, lock", [("", ".lock"), ("a.manifest.json", ".a.manifest.json.lock"),
                                        ("ä b", ".ä b.lock")])
def test_a_lock_names_its_holder_and_disappears(tmp_path, hold, name, lock):
    path = tmp_path / name
    holder = hold(path)
    assert os.listdir(tmp_path) == [lock]
    with pytest.raises(InputError) as error, files.locked(str(path), "--output_dir"):
        pytest.fail("two processes hold one lock")
    assert str(error.value) == (
        f"--output_dir: process {holder.pid} on {socket.gethostname()} is at work on "
        f"{str(path)!r}; wait until it ends, or name another.")
    holder.communicate()
    assert holder.returncode == 0 and not os.listdir(tmp_path)
    with files.locked(str(path), "--output_dir"):
        assert os.listdir(tmp_path) == [lock]
    assert not os.listdir(tmp_path)


def test_other_names_of_a_folder_are_free(tmp_path, hold):
    hold(tmp_path / "a")
    with files.locked(str(tmp_path / "b"), "one"), files.locked(str(tmp_path), "all"):
        assert len(os.listdir(tmp_path)) == 3


def test_the_lock_of_a_dead_process_is_free(tmp_path, hold):
    holder = hold(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert os.listdir(tmp_path) == [".lock"]
    with files.locked(str(tmp_path), "--output_dir"):
        pass
    assert not os.listdir(tmp_path)


def test_blocks_may_be_nested(tmp_path):
    path = os.path.join(os.path.dirname(tmp_path), ".", tmp_path.name)
    with files.locked(path, "all"):
        with files.locked(str(tmp_path), "part"):
            pass
        assert os.listdir(tmp_path) == [".lock"]
        refused = subprocess.run([sys.executable, "-c", _HOLD, path], text=True, input="",
                                 capture_output=True, check=False)
        assert f"process {os.getpid()} on" in refused.stderr and not refused.stdout
    assert not os.listdir(tmp_path)


def test_an_error_releases_the_lock(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyError), files.locked(str(tmp_path), "--output_dir"):
            raise KeyError
    assert not os.listdir(tmp_path)


def test_bytes_that_are_not_utf_8_in_a_name(tmp_path):
    odd = os.fsdecode(bytes(tmp_path / "a") + b"\xff.txt")
    files.write_json(tmp_path / "x.json", {"name": odd})
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"name": odd}
    with open(odd, "w", encoding="utf-8"):
        pass
    with pytest.raises(InputError, match="--input_file: .* holds bytes that are not UTF-8"):
        files.find_files(str(tmp_path / "*.txt"), "input_file")
