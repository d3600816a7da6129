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


@pytest.fixture(name="hub", scope="module")
def fixture_hub():
    with hub_server.serve() as (hub, address):
        files = {"README.md": b"# A corpus\n", "train.jsonl": rows(30), "test.jsonl": rows(5)}
        hub.models |= {"datasets/own/corpus": files, "datasets/own/files": files}
        hub.address = address
        yield hub


# Of each line of its input, [a data set, where its text goes, or its rows if that is null].
CODE = """
import contextlib, io, json, sys
from bert_tf.errors import InputError
from bert_tf.tasks.libraries import official_rows
from run_scripts import commands
for line in sys.stdin:
    name, output = json.loads(line)
    found, said = None, io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            if output is None:
                found = list(official_rows(name))
            else:
                main, settings = commands.parse(["bert-extract-text", "--num_workers=1",
                                                 f"--input_file={name}", f"--output_file={output}"])
                main(*settings)
        except InputError as error:
            found = str(error)
    print(json.dumps([found, said.getvalue()]), flush=True)
"""


@pytest.fixture(name="extract", scope="module")
def fixture_extract(hub, tmp_path_factory):
    """function(name, output): what a process whose Hub is the server found, an error as a string,
    and what it said. One does all, since the library's import takes longer than the work."""
    home = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path_factory.mktemp("home"))}
    with subprocess.Popen([sys.executable, "-c", CODE], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, env={**os.environ, **home}) as process:
        def run(name, output=None):
            hub.asked.clear()
            print(json.dumps([name, output and str(output)]), file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())
        yield run


WANTED = "\n".join(f"Row {number} is here.\nIt ends.\n" for number in range(30))


def test_files_of_a_data_set(hub, extract, tmp_path):
    error, _ = extract("hf://datasets/own/files/tr*.jsonl", tmp_path / "out")
    assert not error and (tmp_path / "out").read_text() == WANTED
    assert hub.asked and not [each for each in hub.asked if "test.jsonl" in each]


def test_a_data_set_by_its_library(hub, extract, tmp_path):
    pytest.importorskip("datasets")
    error, said = extract("hf://datasets/own/corpus", tmp_path / "out")
    assert not error and (tmp_path / "out").read_text() == WANTED
    assert f"hf://datasets/own/corpus@{COMMIT}, licence apache-2.0" in said
    # Content is asked for at the commit, not at a branch that may move.
    assert not [each for each in hub.asked if "/resolve/" in each and COMMIT not in each]
    extract(f"hf://datasets/own/corpus@{COMMIT}:test", tmp_path / "out")
    assert (tmp_path / "out").read_text().count("Row") == 5


def test_a_data_set_that_is_a_script(hub, extract, tmp_path):
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
    found, said = extract("hf://datasets/own/tasks/boolq:train")
    assert found == [{"passage": "a «b»", "question": "c", "label": "True"}]
    assert f"hf://datasets/own/tasks@{CONVERTED}" in said


@pytest.mark.parametrize("name, message", [
    ("hf://datasets/own/none", "hf://datasets/own/none is not a data set of the Hub"),
    ("hf://datasets/own/corpus/a/b", "own/corpus/a/b: write data sets of the Hub as"),
])
def test_refusals(extract, tmp_path, name, message):
    error, _ = extract(name, tmp_path / "out")
    assert message in error and not (tmp_path / "out").exists()
