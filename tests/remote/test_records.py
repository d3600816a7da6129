"""Records made in stores: the bytes of local ones, after a stop too."""

import concurrent.futures
import contextlib
import os
import pathlib

import pytest

from bert_tf import files
from bert_tf.errors import InputError
from data_prep import create_pretraining_data, text_job, verify_records
from data_prep.runners import RunnerFlags
from tests import stores

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", "the", "tree", ".", "house"]
TEXT = "\n".join("the tree a b house .\nc d e f g h .\nthe house .\n" * 3 for _ in range(12))


@pytest.fixture
def prepare(tmp_path):
    """Function (place, flags): makes records of text in a place, which may be remote."""
    def run(place, runner=None, **flags):
        with files.write_aside(os.path.join(place, "in/text.txt")) as file:
            file.write(TEXT)
        with files.write_aside(os.path.join(place, "in/vocab.txt")) as file:
            file.writelines(f"{token}\n" for token in TOKENS)
        flags = {"input_file": [os.path.join(place, "in/text.txt")], "num_workers": 1,
                 "vocab_file": os.path.join(place, "in/vocab.txt"), "piece_bytes": 500,
                 "output_file": [os.path.join(place, "out/r.tfrecord")], "dupe_factor": 1,
                 "max_seq_length": 16, "max_predictions_per_seq": 3, **flags}
        create_pretraining_data.main(create_pretraining_data.PretrainingDataFlags(**flags),
                                     runner=runner)
    return run


@pytest.fixture
def local(prepare, tmp_path, capsys):
    """The files of the job on disk, by relative name."""
    os.makedirs(tmp_path / "local/in")
    prepare(str(tmp_path / "local"))
    root = tmp_path / "local/out"
    capsys.readouterr()
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*")
            if path.is_file()}


def written(place, remote):
    """The files of a job in a store, in whose manifest the names of inputs are as on disk."""
    return {name: data.replace(f"{place}/in".encode(), remote.encode())
            for name, data in stores.content(f"{place}/out").items()}


def verify(path):
    with contextlib.suppress(InputError):
        verify_records.main(verify_records.VerifyRecordsFlags(input_file=[path]))


def test_records_equal_those_on_disk(prepare, local, place, tmp_path, capsys):
    prepare(place)
    assert len(local) > 5 and written(place, f"{tmp_path}/local/in") == local
    assert not [name for name in stores.content(place) if "progress" in name]
    capsys.readouterr()
    prepare(place)
    assert "are there already, made from this text with these flags" in capsys.readouterr().out
    verify(f"{place}/out/r.manifest.json")
    assert "files are sound" in capsys.readouterr().out
    shard = next(name for name in local if "tfrecord-" in name)
    stores.store(place.partition(":")[0]).pipe_file(
        f"{place}/out/{shard}", local[shard][:-1] + b"\x00")
    verify(f"{place}/out")
    assert f"{shard}: " in capsys.readouterr().out
    prepare(place)
    assert f"warning: {place}/out/{shard} is not as its manifest" in capsys.readouterr().out
    assert written(place, f"{tmp_path}/local/in") == local


def test_a_job_that_stops_goes_on(prepare, local, s3, tmp_path, monkeypatch, capsys):
    do = text_job.TextJob.__call__

    def stop(self, index, piece):
        if index == 2:
            raise KeyboardInterrupt
        return do(self, index, piece)
    monkeypatch.setattr(text_job.TextJob, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        prepare(s3)
    assert "out/r.manifest.json" not in stores.content(s3)
    monkeypatch.setattr(text_job.TextJob, "__call__", do)
    capsys.readouterr()
    prepare(s3)
    assert "2 of " in capsys.readouterr().out
    assert written(s3, f"{tmp_path}/local/in") == local


def test_worker_processes_write_into_a_store(prepare, local, s3, tmp_path):
    prepare(s3, num_workers=2)
    assert written(s3, f"{tmp_path}/local/in") == local


def test_worker_processes_can_not_share_memory(prepare, memory):
    with pytest.raises(InputError, match="--num_workers=1"):
        prepare(memory, num_workers=2)


def test_local_text_becomes_remote_records(local, prepare, s3, tmp_path):
    output = [f"{s3}/out/r.tfrecord"]
    prepare(str(tmp_path / "local"), output_file=output)
    assert stores.content(f"{s3}/out") == local
    assert pathlib.Path(tmp_path / "local/out/r.manifest.json").exists()


def test_shares_at_once_in_a_store_that_has_no_locks(prepare, local, s3, tmp_path):
    def make(share):
        with contextlib.suppress(InputError):   # the other one began or ended at this moment
            prepare(s3, runner=RunnerFlags(piece_share=share))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(make, ("0/2", "1/2")))
    make("0/2")
    make("1/2")
    assert written(s3, f"{tmp_path}/local/in") == local
