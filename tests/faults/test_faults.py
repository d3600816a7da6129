"""The tool of faults: what counts as a defect, and a few of its cells."""

import random
import signal
import types

import pytest

from tests.faults import __main__ as faults
from tests.faults import kinds, processes
from tests.faults.cell import Cell
from tests.faults.commands import COMMANDS
from tests.faults.places import comparable, differences


@pytest.mark.parametrize("status, said, kind", [
    (0, "done\n", "done"), (-signal.SIGKILL, "", "killed"), (143, "terminated\n", "signal"),
    (130, "interrupted\n", "signal"), (1, "error: --x: give another.\n", "sentence"),
    (1, "", "traceback"), (1, "error: a\nerror: b\n", "traceback"), (-11, "", "traceback"),
    (1, "Traceback (most recent call last):\n  ...\nerror: a\n", "traceback")])
def test_ends(status, said, kind):
    assert processes.judge(status, said).kind == kind


def test_files_are_compared():
    assert differences({"a": b"1", "b": b"2", "c": b"3"}, {"a": b"1", "b": b"3", "d": b"4"}) == [
        "b", "c", "d"]
    files = {"checkpoint-2.safetensors": b"1", "checkpoint-4.safetensors": b"2",
             "metrics.jsonl": b""}
    assert comparable(files) == {"checkpoint-4.safetensors": b"2"}
    times = [comparable({"r.json": b'{"seconds": %d, "loss": 2}' % at}) for at in (1, 23)]
    assert times[0] == times[1]


@pytest.mark.parametrize("damage", [kinds._cut, kinds._flip, kinds._empty])
def test_damage_is_another_content(damage):
    for seed in range(50):
        assert damage(b"some content", random.Random(seed)) != b"some content"


def run(folder, *flags):
    return faults.main(faults.parse([f"--output_dir={folder}", "--places=disk", "--trials=1",
                                     "--commands=create_finetuning_data", *flags]))


def test_a_few_cells(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(faults, "count", lambda *_: 1)
    # A random moment may come after the end, if this process waits long for a core.
    monkeypatch.setattr(Cell, "moment", lambda *_: lambda: True)
    chosen = ["kill -9 of the parent", "shard cut", "checkpoint cut"]
    assert run(tmp_path, f"--faults={','.join(chosen)}") == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in said[:2]] == [
        f"disk: create_finetuning_data: {name}: 0: equal" for name in chosen[:2]]
    assert said[2].startswith("2 trials, 1 of them killed") and said[2].endswith(": 2 equal")
    assert run(tmp_path, f"--faults={','.join(chosen)}") == 0
    assert capsys.readouterr().out.splitlines() == said[2:]       # nothing is tried again


def test_defects_are_found(tmp_path, monkeypatch, capsys):
    """A command that says nothing of a missing shard."""
    monkeypatch.setattr(Cell, "measure", lambda self: self.expected.update(a=b"1") or (
        processes.End("done")))
    monkeypatch.setattr(Cell, "try_fault", lambda self, fault, drawing: {
        "outcome": "silent", "met": True, "ends": [["done", ""]]})
    assert run(tmp_path, "--faults=shard missing") == 1
    assert capsys.readouterr().out.endswith("1 silent\n")


class Disturbed(Cell):
    """A cell whose command ends as it is told, with the files that it is told."""

    def __init__(self, endings, files):
        self.command, self.limit, self.expected = COMMANDS["conversion"], 1.0, {"a": b"1"}
        self._endings, self.place = endings, types.SimpleNamespace(read=lambda folder: files)

    def fill(self):
        pass

    def start(self, **_):
        return []

    def ends(self, _):
        return [processes.End(self._endings.pop(0))]


@pytest.mark.parametrize("endings, files, outcome", [
    (["killed", "done"], {"a": b"1"}, "equal"), (["killed", "done"], {"a": b"2"}, "different"),
    (["killed", "done"], {"a": b"1", "left.tmp": b""}, "different"),
    (["sentence", "sentence"], {}, "sentence"), (["traceback", "done"], {"a": b"1"}, "traceback"),
    (["hang", "done"], {"a": b"1"}, "hang"), (["done", "killed"], {"a": b"1"}, "killed")])
def test_outcomes(endings, files, outcome):
    one = Disturbed(endings, files).try_fault(faults.FAULTS["nothing"], random.Random(1))
    assert one["outcome"] == outcome
