"""Data sets of the Hugging Face Hub by name, from a small server of its protocol."""

import json
import os
import subprocess
import sys

import pytest

from tests import hub_server
from tests.hub_server import COMMIT, CONVERTED


def rows(count):
    return "".join(json.dumps({"text": f"Row {number} is here. It ends.", "label": 1}) + "\n"
                   for number in range(count)).encode()


@pytest.fixture(name="hub")
def fixture_hub():
    with hub_server.serve() as (hub, address):
        hub.models["datasets/own/corpus"] = {"README.md": b"# A corpus\n", "train.jsonl": rows(30),
                                             "test.jsonl": rows(5)}
        hub.address = address
        yield hub


def extract(hub, folder, name):
    """Runs the command in a process whose Hub is the server."""
    home = {"HF_ENDPOINT": hub.address, "HF_HOME": str(folder / "home")}
    return subprocess.run(
        [sys.executable, "-m", "data_prep.extract_text", f"--input_file={name}",
         f"--output_file={folder / 'out'}", "--num_workers=1"], capture_output=True, text=True,
        check=False, env={**os.environ, **home})


WANTED = "\n".join(f"Row {number} is here.\nIt ends.\n" for number in range(30))


def test_files_of_a_data_set(hub, tmp_path):
    done = extract(hub, tmp_path, "hf://datasets/own/corpus/tr*.jsonl")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text() == WANTED
    assert not [each for each in hub.asked if "test.jsonl" in each]


def test_a_data_set_by_its_library(hub, tmp_path):
    pytest.importorskip("datasets")
    done = extract(hub, tmp_path, "hf://datasets/own/corpus")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text() == WANTED
    assert f"hf://datasets/own/corpus@{COMMIT}, licence apache-2.0" in done.stderr
    # Content is asked for at the commit, not at a branch that may move.
    assert not [each for each in hub.asked if "/resolve/" in each and COMMIT not in each]
    done = extract(hub, tmp_path, f"hf://datasets/own/corpus@{COMMIT}:test")
    assert (tmp_path / "out").read_text().count("Row") == 5, done.stderr


def test_a_data_set_that_is_a_script(hub, tmp_path):
    """The library runs no scripts; the Hub has their rows in a branch of its own."""
    datasets = pytest.importorskip("datasets")
    label = datasets.ClassLabel(names=["False", "True"])
    path = tmp_path / "0000.parquet"
    datasets.Dataset.from_list(
        [{"passage": "a «b»", "question": "c", "label": 1}],
        datasets.Features({"passage": datasets.Value("string"), "question": datasets.Value(
            "string"), "label": label})).to_parquet(str(path))
    hub.models["datasets/own/tasks"] = {"tasks.py": b"raise ValueError"}
    hub.converted["datasets/own/tasks"] = {"boolq/train/0000.parquet": path.read_bytes()}
    code = ("from bert_tf.tasks.libraries import official_rows\n"
            "print(list(official_rows('hf://datasets/own/tasks/boolq:train')))")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home")})
    wanted = [{"passage": "a «b»", "question": "c", "label": "True"}]
    assert str(wanted) in done.stdout, done.stderr
    assert f"hf://datasets/own/tasks@{CONVERTED}" in done.stderr


@pytest.mark.parametrize("name, message", [
    ("hf://datasets/own/none", "hf://datasets/own/none is not a data set of the Hub"),
    ("hf://datasets/own/corpus/a/b", "own/corpus/a/b: write data sets of the Hub as"),
])
def test_refusals(hub, tmp_path, name, message):
    done = extract(hub, tmp_path, name)
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
