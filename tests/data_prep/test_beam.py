"""Records made by Apache Beam: the files of this machine's own workers, after any stop."""

import subprocess
import sys
import time

import pytest

from bert_tf.data.records import jobs
from bert_tf.errors import InputError
from data_prep import create_finetuning_data, text_job
from data_prep.runners import RunnerFlags
from tests import stores
from tests.data_prep.test_pieces import content, raise_


@pytest.fixture
def text(random_text):
    return random_text(1, documents=40, sentences=6)


@pytest.fixture
def by_beam(prepare, text):
    """Function (options, flags): makes the records in out/ with Beam."""
    pytest.importorskip("apache_beam")

    def make(options="", **flags):
        return prepare(text, runner=RunnerFlags("beam", options), **{"piece_bytes": 2000, **flags})
    return make


@pytest.fixture
def whole(prepare, text, tmp_path):
    prepare(text, piece_bytes=2000, output_file=[str(tmp_path / "whole/r.tfrecord")])
    return content(tmp_path / "whole")


@pytest.mark.parametrize("options", ["", "--runner=DirectRunner"])
def test_the_files_are_those_of_local_workers(by_beam, whole, tmp_path, options, capsys):
    by_beam(options)
    assert content(tmp_path / "out") == whole and len(whole) > 4
    by_beam(options)
    assert "are there already" in capsys.readouterr().out


def test_a_piece_that_fails_is_named_and_the_others_are_kept(by_beam, whole, tmp_path, text,
                                                            monkeypatch):
    pieces = [path.name for path in sorted((tmp_path / "whole").glob("*-of-*"))]
    data = text.encode()
    (tmp_path / "bad.txt").write_bytes(data[:2500] + b"\xff" + data[2500:])
    with pytest.raises(InputError, match="bad.txt, line .*, byte .* is not UTF-8"):
        by_beam(input_file=[str(tmp_path / "bad.txt")])
    assert not (tmp_path / "out/r.manifest.json").exists()
    do, found = text_job.TextJob.__call__, []
    with monkeypatch.context() as patch, pytest.raises(InputError, match="the Beam pipeline fail"):
        patch.setattr(text_job.TextJob, "__call__", lambda self, index, piece: (
            do(self, index, piece) if index < 3 else raise_(RuntimeError("broken"))))
        by_beam()
    monkeypatch.setattr(text_job.TextJob, "__call__", lambda self, index, piece: (
        found.append(index) or do(self, index, piece)))
    by_beam()
    assert content(tmp_path / "out") == whole and 0 < len(found) <= len(pieces)


def test_a_lost_note_is_an_error_that_the_same_command_mends(by_beam, whole, tmp_path, monkeypatch):
    save = jobs.FinishedPieces.save
    with monkeypatch.context() as patch, pytest.raises(InputError, match="1 of . pieces were lost"):
        patch.setattr(jobs.FinishedPieces, "save", lambda self, index, result: (
            index == 2 or save(self, index, result)))
        by_beam()
    by_beam()
    assert content(tmp_path / "out") == whole


def test_a_killed_driver(by_beam, whole, tmp_path, vocab_file):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "data_prep.create_pretraining_data", "--runner=beam",
               f"--input_file={tmp_path}/text0.txt", f"--output_file={out}/r.tfrecord",
               f"--vocab_file={vocab_file}", "--piece_bytes=2000"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as job:
        while job.poll() is None and not list(out.glob("r.tfrecord-?????-of-?????")):
            time.sleep(0.002)
        job.kill()
    assert list(out.glob("r.tfrecord-?????-of-?????"))
    by_beam()
    assert content(out) == whole


@pytest.fixture
def bucket(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_TF_STAGE_FOLDER", str(tmp_path / "copies"))
    for name, value in stores.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with stores.s3_server() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        type(stores.store()).clear_instance_cache()
        stores.store().mkdir("bucket")
        yield "s3://bucket"
    type(stores.store()).clear_instance_cache()


def test_into_a_store(by_beam, whole, tmp_path, bucket):
    by_beam(output_file=[f"{bucket}/out/r.tfrecord"])
    found = {name: data for name, data in stores.content(f"{bucket}/out").items()
             if "tokenizer" not in name}
    assert found == whole


def test_fine_tuning_records(tmp_path, vocab_file):
    pytest.importorskip("apache_beam")
    (tmp_path / "a.csv").write_text("text,label\n" + "the house,x\na tree,y\n" * 20)
    task = create_finetuning_data.TaskFlags(
        train_file=str(tmp_path / "a.csv"), text_a_column="text", label_column="label")
    for folder, runner in (("whole", None), ("out", RunnerFlags("beam"))):
        create_finetuning_data.main(task, create_finetuning_data.FinetuningDataFlags(
            str(tmp_path / folder), str(vocab_file), max_seq_length=8), runner)
    assert content(tmp_path / "out") == content(tmp_path / "whole") != {}


@pytest.mark.parametrize("options, message", [
    ("--direct_running_mode=multi_processing", "multi_processing hangs when a worker dies"),
    ("--direct_running_mode=multi_threading", "multi_threading hangs when a worker dies"),
    ("--direct_num_workers=many", "Beam rejects"), ("'", "Beam rejects")])
def test_options_that_can_not_work(options, message):
    pytest.importorskip("apache_beam")
    with pytest.raises(InputError, match=message):
        RunnerFlags("beam", options).open()


def test_beam_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam.options.pipeline_options", None)
    with pytest.raises(InputError, match=r"pip install 'bert_tf\[beam\]'"):
        RunnerFlags("beam").open()
