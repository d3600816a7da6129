"""Files that are whole or absent, and folders that one process works on."""

import contextlib
import errno
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from bert_tf import checkpoints, files
from bert_tf.errors import InputError
from bert_tf.files import writing
from tests import programs
from tests.processes import HOLD, full_disk


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


@pytest.mark.filterwarnings("ignore:flock not supported")
def test_a_disk_without_locks_names_what_a_kill_on_another_machine_left(tmp_path, monkeypatch):
    """Lustre, unless it is mounted with flock, says that the function is not implemented."""
    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with files.locked(str(tmp_path), "--output_dir"):
        own, _, *rest = (tmp_path / ".lock").read_text().split("\n")
    assert not os.listdir(tmp_path)
    (tmp_path / ".lock").write_text("\n".join([own, "node-7", *rest]))
    with pytest.raises(InputError) as error, files.locked(str(tmp_path), "--output_dir", 0):
        pytest.fail("two processes hold one lock")
    assert str(error.value) == (
        f"--output_dir: process {own} on node-7 is at work on {str(tmp_path)!r}; wait until it "
        f"ends, or name another; if it was killed, remove {tmp_path}/.lock, since this disk locks "
        "no files.")


def test_a_copy_that_is_killed_leaves_the_file_before(tmp_path, monkeypatch):
    def half(source, target):
        pathlib.Path(target).write_text("ne")
        raise KeyboardInterrupt

    (tmp_path / "source").write_text("new")
    (tmp_path / "target").write_text("old")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "copyfile", half)
        files.copy_file(str(tmp_path / "source"), str(tmp_path / "target"))
    assert (tmp_path / "target").read_text() == "old"
    files.copy_file(str(tmp_path / "source"), str(tmp_path / "target"))
    assert (tmp_path / "target").read_text() == "new" and len(os.listdir(tmp_path)) == 2


def test_a_disk_that_takes_no_folder_is_named_by_the_file(tmp_path, monkeypatch):
    def refuse(folder):
        raise OSError(errno.ENOSPC, "full", folder)

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(OSError, match=f"full: '{tmp_path}/a.txt'$"):
        files.write_json(str(tmp_path / "a.txt"), {})


def test_a_full_disk_is_named_by_the_file_that_it_takes_no_more_of(tmp_path):
    with full_disk():
        with pytest.raises(OSError) as error, files.write_aside(tmp_path / "a.txt") as file:
            file.write("x" * 20_000)
        with pytest.raises(OSError) as of_folder, files.folder_aside(tmp_path / "b") as folder:
            pathlib.Path(folder, "plain.txt").write_text("y")
            with files.write_aside(os.path.join(folder, "a.txt")) as file:
                file.write("x" * 20_000)
    assert str(error.value) == f"[Errno 27] File too large: '{tmp_path}/a.txt'"
    assert str(of_folder.value) == f"[Errno 27] File too large: '{tmp_path}/b/a.txt'"
    assert not os.listdir(tmp_path)


def test_no_file_takes_the_place_of_a_device_or_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink(os.devnull, tmp_path / "null")
    for name in ("pipe", "null"):
        path = str(tmp_path / name)
        with pytest.raises(InputError, match=f"{name} is a device or a pipe"):
            files.write_json(path, {})
        with pytest.raises(InputError, match=f"--output_file: .*{name} is a device or a pipe"):
            files.check_file(path, "output_file")
        assert not os.path.isfile(path)
    assert sorted(os.listdir(tmp_path)) == ["null", "pipe"]
    with open(tmp_path / "out.txt", "w") as file:       # as a shell redirects /dev/stdout
        os.symlink(f"/proc/self/fd/{file.fileno()}", tmp_path / "stdout")
        for path in (tmp_path / "stdout", f"/dev/fd/{file.fileno()}"):
            with pytest.raises(InputError, match=f"{path} is a device or a pipe"):
                files.write_json(path, {})


def test_a_name_that_can_get_no_ending_is_too_long(tmp_path):
    for name in ("x" * 180, "\u00e9" * 90):
        files.check_file(str(tmp_path / name), "output_file")
        files.write_json(tmp_path / f"{name}.flags.txt", {})
        with pytest.raises(InputError, match="^--output_file: .*x' has a name of more than 180 by"):
            files.check_file(str(tmp_path / f"{name}x"), "output_file")


def test_a_link_to_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "disk").mkdir()
    os.symlink(tmp_path / "disk", tmp_path / "link")
    with files.folder_aside(str(tmp_path / "link")) as folder:
        pathlib.Path(folder, "a.txt").write_text("a")
    assert os.path.islink(tmp_path / "link") and os.listdir(tmp_path / "disk") == ["a.txt"]
    assert sorted(os.listdir(tmp_path)) == ["disk", "link"]


def test_what_a_living_process_writes_is_left_to_it(tmp_path):
    """Only files of processes that have ended, on this machine, are removed."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    path, folder = tmp_path / "a.txt", tmp_path / "out"
    own = writing._machine()
    names = [f"{name}{files.ASIDE}{owner}" for owner in (
        f"{ended.pid}-{own}-12", f"{os.getpid()}-{own}-34", f"{os.getppid()}-{own}-56",
        f"{ended.pid}-abc-12", f"{os.getpid()}-{own}-{writing._START}ff")
             for name in ("a.txt", "out")]
    for name in names:
        (tmp_path / name).mkdir()
    with files.write_aside(path) as file, files.folder_aside(str(folder)):
        file.write("whole")
    assert sorted(os.listdir(tmp_path)) == sorted(["a.txt", "out", *names[4:]])


def test_what_a_library_leaves_next_to_an_unfinished_file_goes_with_it(tmp_path):
    """As safetensors' .tmpXXXXXX, which it renames when it is whole."""
    with pytest.raises(ZeroDivisionError), files.replace_aside(tmp_path / "a") as aside:
        pathlib.Path(aside).with_name(".tmp5lTlpH").write_text("half")
        raise ZeroDivisionError
    assert not os.listdir(tmp_path)


def test_a_process_that_nobody_waits_for_is_dead(tmp_path):
    """As in a container whose first process does not wait for those that have lost their parent."""
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    (tmp_path / f"a.txt{files.ASIDE}{zombie.pid}-{writing._machine()}-12").mkdir()
    files.remove_leftovers(str(tmp_path / "a.txt"))
    assert not os.listdir(tmp_path)
    zombie.wait()


def test_a_folder_that_appears_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(InputError, match="written by another process meanwhile"), (
            files.folder_aside(str(path))):
        (path / "1").mkdir(parents=True)
    assert os.listdir(tmp_path) == ["out"] and os.listdir(path) == ["1"]


def test_what_a_machine_that_is_gone_left_is_removed_after_a_day(tmp_path):
    now = time.time()
    for name, hours in (("1-abc-1", 25), ("2-abc-2", 23)):
        ending = files.ASIDE + name
        for path in (tmp_path / f"a.txt{ending}/a.txt", tmp_path / f"out{ending}/x"):
            path.parent.mkdir(exist_ok=True)
            path.write_text("half")
            os.utime(path, (now - 3600 * hours,) * 2)
    for name in ("1-abc-1", "2-abc-2"):     # a file in the second is being written
        for stem in ("a.txt", "out"):
            os.utime(tmp_path / f"{stem}{files.ASIDE}{name}", (now - 360000,) * 2)
    with files.write_aside(tmp_path / "a.txt"), files.folder_aside(str(tmp_path / "out")):
        pass
    assert sorted(os.listdir(tmp_path)) == [
        "a.txt", f"a.txt{files.ASIDE}2-abc-2", "out", f"out{files.ASIDE}2-abc-2"]


@pytest.mark.parametrize("path", ["no://bucket/run", "file:///tmp/x"])
def test_unknown_stores_are_refused_and_no_folder_is_made_of_them(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for use in (lambda: files.make_folder(path, "output_dir"),
                lambda: files.write_json(path, {}),
                lambda: files.folder_aside(path).__enter__(),
                lambda: files.find_files(path, "input_file"),
                lambda: checkpoints.read_config(path)):
        with pytest.raises(InputError, match=f"{path}: (no://|write local)"):
            use()
    assert not os.listdir(tmp_path)


# String flags that name no file: labels and columns may begin like an address.
_NO_PATHS = """attention_mask_heads best_of bits choice_columns choose_split chunk_tag class_weights
cluster_hosts columns concrete_stretch depths dupe_factors gcp_project grid_learning_rate
grid_num_train_epochs grid_train_batch_size headline label_column labels layers leave_out lengths
mask mask_shares master model_size models neighbours orders packages patience_layers piece_share
pos_tagger predict_batch_sizes pretraining_steps prune_heads prune_percent rows runner_options
sizes split splits stack_layers stack_learning_rates stack_steps stack_warmup_steps
student_layers tags task task_schedule tasks teacher_layers terms text text_a_column text_b_column
text_column tfds_name tpu tpu_zone train_fractions train_majority weight_bits
words""".split()


def test_every_flag_is_known_to_name_a_file_or_not():
    found = {field.name for command in programs.names()
             for field in programs.fields(command).values()
             if "str" in str(field.type) and not field.metadata["choices"]}
    assert "output_dir" in found
    assert sorted(name for name in found if not files.PATH_FLAGS.fullmatch(name)) == _NO_PATHS


def test_other_names_of_a_folder_are_free(tmp_path, hold):
    hold(tmp_path / "a")
    with files.locked(str(tmp_path / "b"), "one"), files.locked(str(tmp_path), "all"):
        assert len(os.listdir(tmp_path)) == 3


def test_a_folder_in_which_others_write_is_removed(tmp_path):
    def write(number):
        with contextlib.suppress(FileNotFoundError):
            for count in range(100):
                path = tmp_path / f"folder/{number}-{count}"
                path.write_text("x")
                path.rename(path.with_suffix(".json"))

    for _ in range(20):
        (tmp_path / "folder").mkdir()
        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for writer in writers:
            writer.start()
        files.remove_folder(tmp_path / "folder")
        for writer in writers:
            writer.join()
        assert not (tmp_path / "folder").exists()


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
        refused = subprocess.run([sys.executable, "-c", HOLD, path], text=True, input="",
                                 capture_output=True, check=False)
        assert f"process {os.getpid()} on" in refused.stderr and not refused.stdout
    assert not os.listdir(tmp_path)


def test_a_full_disk_asks_for_room(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with full_disk(0), files.locked(str(tmp_path), "--output_dir"):
        assert os.path.getsize(tmp_path / ".lock") == 0     # not even the holder's name
    assert not os.listdir(tmp_path)
    monkeypatch.setattr(os, "makedirs", refuse)
    for use in (lambda: files.make_folder(str(tmp_path / "a"), "output_dir"),
                lambda: files.folder_aside(str(tmp_path / "a")).__enter__()):
        with pytest.raises(InputError, match="left on device.; make room, or name a folder on"):
            use()


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
    with pytest.raises(InputError, match="--input_file: .* is not UTF-8"):
        files.find_files(str(tmp_path / "*.txt"), "input_file")


def test_flagfiles_of_jobs_are_no_input(tmp_path):
    for name in ("a.txt", "flags.txt", "a.txt.flags.txt", "myflags.txt"):
        (tmp_path / name).write_text("x")
    for pattern in (str(tmp_path), str(tmp_path / "*.txt")):
        assert [os.path.basename(path) for path in files.find_files(pattern, "input_file")] == [
            "a.txt", "myflags.txt"]
    named = str(tmp_path / "flags.txt")
    assert files.find_files(named, "input_file") == [named]


def test_a_file_that_is_missing_is_not_called_damaged(tmp_path):
    with pytest.raises(InputError, match=r"^there is no file .*/text\.txt; check the name\.$"), \
            files.open_unpacked(f"{tmp_path}/text.txt"):
        pass
    with pytest.raises(InputError, match="is a folder; name a file in it"), \
            files.open_unpacked(str(tmp_path)):
        pass
    with pytest.raises(InputError, match=r"--input_file: .* is a folder; name a file in it"):
        files.check_input(str(tmp_path), "input_file")
