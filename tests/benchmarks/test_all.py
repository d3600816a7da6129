"""Speed beside peers: which jobs there are, ratios, what is kept, and how systems are told to work.
"""

import json
import sys

import pytest

from benchmarks import all as speed
from benchmarks.peers import running
from bert_tf.errors import InputError

# A system whose step takes as long as its job says.
SYSTEM = '''
import time


def version():
    return "1.0"


def train(job):
    def steps(count):
        print("the system prints this")
        for _ in range(count):
            begin = time.process_time()
            while time.process_time() - begin < job["takes"]:
                pass
    return steps


def predict(job):
    raise RuntimeError("it can't do this")
'''


@pytest.fixture(name="systems")
def fixture_systems(tmp_path, monkeypatch):
    """A folder with worker.py and a system of its own."""
    folder = tmp_path / "root" / "benchmarks" / "peers"
    folder.mkdir(parents=True)
    with open(f"{running.FOLDER}/worker.py", encoding="utf-8") as file:
        (folder / "worker.py").write_text(file.read())
    (folder / "made_system.py").write_text(SYSTEM)
    monkeypatch.setattr(running, "FOLDER", str(folder))


def test_systems_take_steps_in_turns(systems, tmp_path):
    job = {"kind": "train", "threads": 1, "takes": 0.01}
    found = running.in_turns({"made": sys.executable}, job, 3, 0.03, str(tmp_path))["made"]
    assert found["version"] == "1.0" and len(found["cpu_seconds"]) == 3
    assert all(0.01 <= one < 0.05 for one in found["cpu_seconds"]) and found["peak"] > 1e6
    assert "the system prints this" in (tmp_path / "made.log").read_text()


def test_a_system_that_fails_is_named(systems, tmp_path):
    with pytest.raises(InputError, match="(?s)made failed, see .*made.log.*it can't do this"):
        running.in_turns({"made": sys.executable}, {"kind": "predict", "threads": 1}, 1, 1.0,
                         str(tmp_path))


def test_the_arithmetic_of_a_step():
    """Against a count matrix by matrix."""
    job = {"kind": "predict", "model": "bert", "hidden_size": 128, "layers": 2, "length": 64,
           "batch_size": 3, "vocab_size": 1000}
    width, length = 128, 64
    matrices = ([(length, width, width)] * 4                    # query, key, value, output
                + [(length, width, 4 * width), (length, 4 * width, width)]
                + [(length, width, length), (length, length, width)])      # scores and sums
    forward = 2 * sum(2 * a * b * c for a, b, c in matrices) + 2 * width * width
    assert speed.operations(job) == 3 * forward
    slots = 10
    head = 2 * slots * width * width + 2 * slots * width * 1000
    assert speed.operations({**job, "kind": "train"}) == 3 * 3 * (forward + head)


def job_of(folder, **changes):
    return speed.AllFlags(**{"output_dir": str(folder), "jobs": ["train"], "sizes": ["tiny"],
                             "lengths": ["32"], "dtypes": ["float32"], "train_tokens": 512,
                             "vocab_size": 2000, **changes})


def test_jobs_are_kept_and_ratios_are_medians(tmp_path, monkeypatch, capsys):
    costs, asked = {"bert_tf": [1.0, 1.0, 4.0], "transformers": [2.0, 3.0, 4.0],
                    "keras_hub": [1.0, 0.5, 2.0]}, []

    def in_turns(pythons, settings, rounds, seconds, logs):
        asked.append(settings["kind"])
        names = pythons if settings["kind"] == "train" else ["bert_tf"]
        return {name: {"version": "1", "cpu_seconds": costs[name], "peak": 5e8} for name in names}

    monkeypatch.setattr(running, "in_turns", in_turns)
    monkeypatch.setattr(running, "has_system", lambda python, system: system in costs)
    speed.main(job_of(tmp_path))
    assert asked == ["multiply", "train"]
    speed.main(job_of(tmp_path))
    assert asked == ["multiply", "train"]       # everything was kept
    said = capsys.readouterr().out
    assert "left out, as they are not installed: model_garden" in said
    # The medians of (2, 3, 1) and of (1, 0.5, 0.5); the best peer is the second one.
    assert "keras_hub 0.50 (memory 500); transformers 2.00 (memory 500)" in said
    assert "train: 0.50 times the best peer's rate, the geometric mean over 1 jobs" in said
    results = json.loads((tmp_path / "results.json").read_text())
    (summary,) = results["summary"].values()
    assert summary["systems"]["bert_tf"]["sequences_per_cpu_second"] == 16
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert "keras_hub 0.50" in (tmp_path / "speed.md").read_text()


def test_batches_have_the_same_number_of_tokens(tmp_path):
    jobs = speed.list_jobs(job_of(tmp_path, jobs=["train", "predict"], sizes=["tiny", "base"],
                                  lengths=["128", "512"], train_tokens=4096))
    sizes = {(one["layers"], one["length"]): one["batch_size"] for one in jobs.values()
             if one["kind"] == "train"}
    assert sizes == {(2, 128): 32, (2, 512): 8, (12, 128): 8, (12, 512): 2}
    assert len(jobs) == 4 + 4 * 3
    depths = [one["layers"] for changes in ({}, {"num_layers": 3}) for one in speed.list_jobs(
        job_of(tmp_path, model="modernbert", sizes=["tiny", "base"], **changes)).values()]
    assert depths == [2, 22, 3, 3]


@pytest.mark.parametrize("value, message", [
    ("transformers", "must be NAME=PATH"), ("torch=/bin/python", "a name of bert_tf, "),
    ("transformers=/nowhere/python", "/nowhere/python can't import transformers, torch")])
def test_interpreters_are_checked(value, message, tmp_path):
    with pytest.raises(InputError, match=message):
        speed.main(job_of(tmp_path, peer_python=[value]))
