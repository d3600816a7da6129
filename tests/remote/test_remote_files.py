"""Files in stores: what local files promise, tried on a server of S3 and in memory."""

import errno
import gzip
import os
import socket
import subprocess
import sys

import fsspec
import pytest

from bert_tf import files
from bert_tf.errors import InputError, explained
from bert_tf.files import places
from bert_tf.flags.parsing import expand_flagfiles
from bert_tf.tasks.task_flags import TaskFlags
from tests import stores


def write(path, data):
    with files.write_aside(path, "wb") as file:
        file.write(data)


def test_names_are_asked_for_as_on_disk(place):
    path = f"{place}/run/part/a.txt"
    write(path, b"12345")
    write(f"{place}/run/.hidden", b"")
    assert files.is_file(path) and files.exists(path) and not files.is_folder(path)
    assert files.is_folder(f"{place}/run") and files.exists(f"{place}/run/part")
    assert not files.exists(f"{place}/ru") and not files.is_folder(f"{place}/absent")
    assert files.file_size(path) == 5
    assert sorted(files.list_folder(f"{place}/run")) == [".hidden", "part"]
    assert files.is_file(f"{place}/other/../run//part/a.txt")
    assert files.find_files(f"{place}/run", "input") == [path]
    assert files.find_files([f"{place}/*/part/?.txt", path], "input") == [path, path]
    assert files.match_names(f"{place}/run/part", "*.txt") == [path]
    assert files.match_names(place, "**/*.txt") == [path]
    with pytest.raises(InputError, match="--input: no file matches"):
        files.find_files(f"{place}/b*", "input")
    with pytest.raises(FileNotFoundError):
        files.remove_file(f"{place}/absent")
    files.remove_file(path)
    files.remove_folder(f"{place}/run")
    files.remove_folder(f"{place}/run")
    assert not files.exists(f"{place}/run")


def test_a_folder_whose_last_file_goes_is_empty(place, monkeypatch):
    """Another process tries whether it may write there."""
    monkeypatch.setattr(places, "is_folder", lambda path: True)
    assert files.match_names(f"{place}/absent", "*.txt") == []


def test_patterns_find_files_that_are_not_hidden(place, tmp_path):
    for name in (".a.tfrecord.lock", "a.tfrecord", "a.tfrecord.tokenizer/vocab.txt", ".deep/b"):
        for folder in (f"{place}/r", str(tmp_path / "r")):
            path = os.path.join(folder, name)
            files.make_folders(os.path.dirname(path))
            write(path, b"")
    for pattern in ("*", ".*", "*/*", ".deep/*", "**/b", "a*"):
        found = []
        for folder in (f"{place}/r", str(tmp_path / "r")):
            try:
                found.append([files.relative(each, folder) for each in files.find_files(
                    f"{folder}/{pattern}", "input")])
            except InputError:
                found.append([])
        assert found[0] == found[1], pattern


def test_lists_are_never_those_of_before(s3):
    """Another process writes between two looks."""
    write(f"{s3}/a/1", b"")
    assert files.list_folder(f"{s3}/a") == ["1"]
    fsspec.filesystem("s3", skip_instance_cache=True).pipe_file(f"{s3}/a/2", b"")
    assert sorted(files.list_folder(f"{s3}/a")) == ["1", "2"] and files.exists(f"{s3}/a/2")


def test_relative_names_lead_back():
    for path, folder, expected in (
            ("s3://b/x/a", "s3://b/x", "a"), ("s3://b/a", "s3://b/x/y", "../../a"),
            ("s3://c/a", "s3://b/x", "../../c/a"), ("gs://b/a", "s3://b/x", "gs://b/a"),
            ("s3://b/a", "/tmp", "s3://b/a"), ("/tmp/a", "s3://b", "/tmp/a"),
            ("/tmp/x/../a", "/tmp", "a")):
        assert files.relative(path, folder) == expected
        assert files.real_path(files.join_path(folder, expected)) == files.real_path(path)


def test_a_file_in_a_store_is_in_no_other_folder(tmp_path, memory):
    """As a file with its whole name on disk is."""
    for path in (f"{memory}/a.csv", str(tmp_path / "b.csv")):
        with files.write_aside(path) as file:
            file.write("a,y\ngood,x\nbad,z\n")
    for folder, name in ((str(tmp_path), f"{memory}/a.csv"), (memory, str(tmp_path / "b.csv")),
                         (memory, f"{memory}/a.csv"), (memory, "a.csv")):
        own = TaskFlags(data_dir=folder, train_file=name, dev_file=name, text_a_column="a",
                        label_column="y")
        train, dev = own.find_sources(own.read_task(), [])
        assert train.path == (name if "/" in name else f"{folder}/{name}")
        assert [example.texts for example in dev.examples()] == [["good"], ["bad"]]


def test_files_are_read_as_local_ones(place, tmp_path):
    text = "größer\nlines\n" * 100
    for name, data in (("a.txt", text.encode()), ("a.gz", gzip.compress(text.encode()))):
        write(f"{place}/{name}", data)
        with files.open_unpacked(f"{place}/{name}") as file:
            assert file.read() == text.encode()
        write(tmp_path / name, data)
        assert files.digest(f"{place}/{name}") == files.digest(str(tmp_path / name))
    with files.open_file(f"{place}/a.txt") as one, files.open_file(f"{place}/a.txt") as two:
        assert one.readline() == two.readline() == "größer\n"
        assert one.read() == text.partition("\n")[2]
    with files.open_file(f"{place}/a.txt", "rb") as file:
        file.seek(-6, os.SEEK_END)
        assert file.read() == b"lines\n"
    with pytest.raises(FileNotFoundError) as error:
        files.open_file(f"{place}/absent", "rb").read()
    assert error.value.strerror


@pytest.mark.parametrize("size", [1, 12 << 20])
def test_a_writer_that_raises_leaves_what_was_there(s3, size, own_copies):
    """One byte, and more than a store takes in one request."""
    write(f"{s3}/a", b"before")
    for name in "ab":
        with pytest.raises(ZeroDivisionError), files.write_aside(f"{s3}/{name}", "wb") as file:
            file.write(b"x" * size)
            raise ZeroDivisionError
    assert stores.content(s3) == {"a": b"before"} and not stores.uploads()
    assert not os.listdir(own_copies)


_WRITE = """
import sys
from bert_tf import files
with files.write_aside(sys.argv[1], "wb") as file:
    file.write(bytes(12 << 20))
    print("written", flush=True)
    sys.stdin.read()
"""


def test_a_writer_that_is_killed_leaves_no_name(s3, own_copies):
    process = subprocess.Popen([sys.executable, "-c", _WRITE, f"{s3}/a"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "written\n"
    process.kill()
    process.communicate()
    assert not stores.content(s3) and not stores.uploads()
    assert len(files.leftovers(f"{s3}/a")) == 1
    write(f"{s3}/a", b"whole")
    assert stores.content(s3) == {"a": b"whole"} and not os.listdir(own_copies)


def test_a_folder_ends_with_its_marker(place, monkeypatch):
    sent = []
    send = files.writing.send
    monkeypatch.setattr(files.writing, "send", lambda source, target: (
        sent.append(target), send(source, target)))
    with files.folder_aside(f"{place}/model", "config.json") as folder:
        for name in ("a_config.json", "weights", "deep/z"):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write(path, name.encode())
        assert not stores.content(place)
    assert stores.content(place) == {f"model/{name}": name.encode()
                                     for name in ("a_config.json", "weights", "deep/z")}
    assert sent[-1] == f"{place}/model/a_config.json"
    with pytest.raises(InputError, match="is there already"):
        files.folder_aside(f"{place}/model").__enter__()


def test_a_folder_that_was_not_finished_is_written_again(place, monkeypatch):
    send = files.writing.send

    def fill(*names):
        with files.folder_aside(f"{place}/model", "config.json") as folder:
            for name in names:
                write(os.path.join(folder, name), b"new")

    def refuse(source, target):
        if target.endswith("/config.json"):
            raise InputError("refused")
        send(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(files.writing, "send", refuse)
        with pytest.raises(InputError, match="refused"):
            fill("weights", "config.json", "tokenizer_config.json")
    assert stores.content(place) == {"model/weights": b"new", "model/tokenizer_config.json": b"new"}
    with pytest.raises(InputError, match="is there already"):   # the weights are not its own
        fill("others", "config.json")
    fill("weights", "tokenizer_config.json", "config.json")
    assert len(stores.content(place)) == 3
    with pytest.raises(InputError, match="is there already"):
        fill("weights", "vocab", "config.json")


def test_copies_are_of_the_newest_version_and_within_their_room(s3, own_copies, monkeypatch):
    write(f"{s3}/m/a.bin", b"1")
    first = files.staged(f"{s3}/m/a.bin")
    requests = []
    get = stores.store().get_file
    monkeypatch.setattr(stores.store(), "get_file", lambda *args, **options: (
        requests.append(args[0]), get(*args, **options))[1])
    assert files.staged(f"{s3}/m/a.bin") == first and not requests
    write(f"{s3}/m/a.bin", b"22")
    copy = files.staged(f"{s3}/m/a.bin")
    with open(copy, "rb") as file:
        assert file.read() == b"22" and os.path.basename(copy) == "a.bin" and len(requests) == 1
    os.utime(first, (0, 0))     # used long ago
    monkeypatch.setenv("BERT_TF_STAGE_BYTES", "4")
    write(f"{s3}/m/c", b"333")
    files.staged(f"{s3}/m/c")
    assert not os.path.exists(first) and os.path.exists(copy)
    monkeypatch.setenv("BERT_TF_STAGE_BYTES", "many")
    with pytest.raises(InputError, match="BERT_TF_STAGE_BYTES is 'many'"):
        write(f"{s3}/m/d", b"")
        files.staged(f"{s3}/m/d")


@pytest.mark.parametrize("use", [
    lambda path: files.make_folder(path, "output_dir"), files.exists, files.is_folder,
    lambda path: files.write_json(path, {}), lambda path: files.find_files(path, "input_file")])
def test_without_credentials_one_sentence(s3, use, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(type(stores.store()), "_cache", {})
    with pytest.raises(InputError, match="s3://bucket/a.* can't be reached .*credentials") as error:
        use(f"{s3}/a")
    assert "\n" not in str(error.value)


def test_without_a_bucket_rights_or_package_one_sentence(s3, monkeypatch):
    with pytest.raises(InputError, match="--output_dir: can't write to 's3://nowhere/a'.*bucket"):
        files.make_folder("s3://nowhere/a", "output_dir")
    assert not files.exists("s3://nowhere/a") and not stores.store().exists("nowhere")
    with pytest.raises(InputError, match="s3://nowhere/a can't be written .*bucket"):
        files.folder_aside("s3://nowhere/a").__enter__()    # before there is work for nothing
    with pytest.raises(InputError, match="no file matches"):
        files.find_files("s3://nowhere/a", "input_file")

    def refuse(*args, **options):
        raise PermissionError("Access Denied")
    monkeypatch.setattr(stores.store(), "pipe_file", refuse)
    with pytest.raises(InputError, match=r"can't write to 's3://bucket/a' \(Access Denied\)"):
        files.make_folder(f"{s3}/a", "output_dir")
    monkeypatch.setitem(sys.modules, "adlfs", None)
    with pytest.raises(InputError, match="abfs://a/b: abfs:// needs a package .*pip install"):
        files.exists("abfs://a/b")


def test_a_silent_store_is_given_up(s3, monkeypatch):
    """Its client alone would wait for 25 minutes."""
    monkeypatch.setattr(places, "SILENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(type(stores.store()), "_cache", {})
        for _ in range(2):
            monkeypatch.setattr(places, "_answered", set())
            with pytest.raises(InputError, match="bucket/a: the store has not answered for 0.2 s"):
                files.exists(f"{s3}/a")


def test_a_flagfile_is_read_from_a_store(memory, monkeypatch):
    """A run writes its own there."""
    with files.write_aside(f"{memory}/flags.txt") as file:
        file.write("--number=8\n")
    with files.write_aside(f"{memory}/more.txt") as file:
        file.write(f"# more\n--kind=x\n--flagfile={memory}/flags.txt\n")
    for given in ([f"--flagfile={memory}/more.txt"], ["-flagfile", f"{memory}/more.txt"]):
        assert expand_flagfiles(["program", *given, "--other=memory://a"]) == [
            "program", "--kind=x", "--number=8", "--other=memory://a"]
    with pytest.raises(InputError, match="--flagfile: there is no file memory://a"):
        expand_flagfiles(["program", "--flagfile=memory://a"])

    def refuse(*args, **options):
        raise PermissionError("Access Denied")
    monkeypatch.setattr(stores.store("memory"), "cat_file", refuse)
    with pytest.raises(InputError, match=r"--flagfile: memory://a can't be read \(Access Denied\)"):
        expand_flagfiles(["program", "--flagfile=memory://a"])


def test_a_store_has_no_locks(memory):
    with files.locked(f"{memory}/run", "one"), files.locked(f"{memory}/run", "other"):
        assert not stores.content(memory)


def test_a_log_grows_in_a_store_too(s3, tmp_path):
    for path in (f"{s3}/log.txt", str(tmp_path / "log.txt")):
        with files.open_log(path) as log:
            log.write("one\n")
        with pytest.raises(RuntimeError), files.open_log(path) as log:
            log.write("two\n")
            raise RuntimeError
        with files.open_file(path) as file:
            assert file.read() == "one\ntwo\n"


def test_an_error_of_a_store_in_the_middle_of_the_work_is_one_sentence(tmp_path):
    denied = PermissionError(errno.EACCES, "Access Denied", "s3://bucket/out/r.progress")
    assert str(explained(denied)).startswith(
        "s3://bucket/out/r.progress: Access Denied; check that you may read and write there")
    assert explained(PermissionError(errno.EACCES, "no", str(tmp_path))) is None
    assert explained(OSError("closed")) is None
