"""Runs whose records and folder are in a store: the files of local runs, after a kill too."""

import functools
import os
import threading

import pytest

from bert_tf.files import reading, writing
from bert_tf.training.reporting import read_metrics
from tests import stores
from tests.run_scripts import test_run_pretraining as local_runs
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("all_eagerly")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretraining")
    local_runs.config_of(0.1).to_json_file(folder / "config.json")
    for number in range(2):
        tiny.write_records(folder / f"short{number}.tfrecord", 20, seed=number)
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    """The files of a run on disk, by relative name."""
    local_runs.main(flags_of(folder, folder, folder / "out", do_train=True))
    return {name: (folder / "out" / name).read_bytes() for name in os.listdir(folder / "out")
            if (folder / "out" / name).is_file()}


def flags_of(folder, records, output_dir, **changes):
    return local_runs.flags_of(folder, output_dir, **{
        "input_file": [f"{records}/short*.tfrecord"], "num_train_steps": 4,
        "save_checkpoints_steps": 1, "iterations_per_loop": 1, **changes})


@pytest.fixture
def flags(folder, place):
    store = stores.store(place.partition(":")[0])
    for name in os.listdir(folder):
        if (folder / name).is_file():
            store.pipe_file(f"{place}/in/{name}", (folder / name).read_bytes())
    return functools.partial(flags_of, folder, f"{place}/in", f"{place}/run",
                             bert_config_file=f"{place}/in/config.json")


def check(place, expected):
    """Checks that a store holds the files of the local run; metrics have times, and a card has the
    name of its folder."""
    found = stores.content(f"{place}/run")
    assert {name for name in found if not name.startswith("tensorboard/")} == {*expected}
    for name in {*expected} - {"metrics.jsonl", "README.md"}:
        assert name.endswith(".keras") or found[name] == expected[name], name
    assert any(name.startswith("tensorboard/train/events") for name in found)
    assert [line["step"] for line in read_metrics(f"{place}/run", "train")] == [1, 2, 3, 4]


@pytest.mark.parametrize("place", ["memory"], indirect=True)
def test_a_run_that_stopped_goes_on(flags, place, expected, monkeypatch):
    local_runs.main(flags(do_train=True, stop_at_step=2))
    monkeypatch.setenv("BERT_TF_STAGE_FOLDER", os.environ["BERT_TF_STAGE_FOLDER"] + "-of-another")
    local_runs.main(flags(do_train=True))
    check(place, expected)


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_an_upload_that_is_cut_leaves_the_checkpoint_before(flags, place, expected, monkeypatch):
    """What a process leaves that is killed while it sends a checkpoint."""
    send = reading.send

    def cut(source, target):
        if target.endswith("checkpoint-000000003.safetensors"):
            raise KeyboardInterrupt
        send(source, target)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        for module in (reading, writing):
            patch.setattr(module, "send", cut)
        local_runs.main(flags(do_train=True))
    found = stores.content(f"{place}/run")
    assert "checkpoint-000000002.safetensors" in found
    assert "checkpoint-000000003.safetensors" not in found and "model.keras" not in found
    local_runs.main(flags(do_train=True))
    check(place, expected)


@pytest.mark.parametrize("place", ["memory"], indirect=True)
def test_steps_wait_for_nothing_that_is_sent(flags, place, expected, monkeypatch):
    """Curves and checkpoints are sent by the thread that saves; the curves come first."""
    send, sent = reading.send, []

    def note(source, target):
        sent.append((target.rpartition("/")[2], threading.current_thread()))
        send(source, target)
    for module in (reading, writing):
        monkeypatch.setattr(module, "send", note)
    local_runs.main(flags(do_train=True))
    check(place, expected)
    threads = dict(sent)
    assert threads["metrics.jsonl"] is threads["checkpoint-000000004.safetensors"]
    assert threads["metrics.jsonl"] is not threading.main_thread()
    names = [name for name, _ in sent if name.startswith(("metrics", "checkpoint-"))]
    assert names == [name for step in (1, 2, 3, 4) for name in (
        "metrics.jsonl", f"checkpoint-{step:09d}.safetensors")]
