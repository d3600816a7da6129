"""The programs that measure: systems beside each other, operations, sizes."""

import json
import re
import sys

import pytest

from benchmarks import all as speed
from benchmarks import sizes, tokenization
from benchmarks.flops import PUBLISHED_FLOPS, FlopsFlags, count, main
from benchmarks.peers import running
from benchmarks.runtimes import RuntimesFlags
from benchmarks.sizes import SizesFlags
from bert_tf import flags
from bert_tf.errors import InputError
from tests.training import tiny

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
    folder = tmp_path / "root" / "benchmarks" / "peers"
    folder.mkdir(parents=True)
    with open(f"{running.FOLDER}/worker.py", encoding="utf-8") as file:
        (folder / "worker.py").write_text(file.read())
    (folder / "made_system.py").write_text(SYSTEM)
    monkeypatch.setattr(running, "FOLDER", str(folder))


def test_systems_take_steps_in_turns(systems, tmp_path):
    job = {"kind": "train", "threads": 1, "takes": 0.01}
    found = running.in_turns({"made": sys.executable}, job, 3, 0.03, str(tmp_path))["made"]
    assert found["version"] == "1.0" and len(found["seconds"]) == 3
    assert all(0.01 <= one < 1 for one in found["seconds"]) and found["peak"] > 1e6
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
        return {name: {"version": "1", "seconds": costs[name], "peak": 5e8} for name in names}

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
    assert summary["systems"]["bert_tf"]["sequences_per_second"] == 16
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


# Operations

PRINTED = {
    "elmo": 3.4114394716164127e+18, "xlnet": 3.856582065028608e+21, "gpt": 3.968752230785352e+19,
    "bert_small": 1.4187399146496e+18, "bert_base": 6.428335104e+19,
    "bert_large": 1.91720905883648e+20, "electra_small": 1.293743798272e+18,
    "electra_base": 6.424541834277683e+19, "electra_400k": 7.117606040895488e+20,
    "electra_1.75M": 3.113952642891776e+21, "roberta": 3.187221435776e+21,
    "albert": 3.113923955392512e+22, "t5_11b": 4.581900124212429e+22}


def test_all_models_that_electra_lists():
    assert PUBLISHED_FLOPS == pytest.approx(PRINTED, rel=1e-14)


@pytest.mark.parametrize("model, length, batch, steps, published", [
    ("bert:base", 512, 256, 1_000_000, "bert_base"),
    ("bert:large", 512, 256, 1_000_000, "bert_large"),
    ("electra:small", 128, 128, 1_000_000, "electra_small")])
def test_networks_of_recipes(model, length, batch, steps, published):
    job = FlopsFlags([model], max_seq_length=length, train_batch_size=batch, num_train_steps=steps)
    assert count(job, model) == pytest.approx(PRINTED[published], rel=1e-14)


def test_the_command_prints_both(capsys):
    main(FlopsFlags(["bert:tiny"], max_seq_length=16, train_batch_size=2, num_train_steps=3))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("these      bert:tiny ") and len(lines) == 14
    with pytest.raises(InputError, match="a XLNetConfig is not counted"):
        count(FlopsFlags(["xlnet:base"]), "xlnet:base")


# Sizes

def test_weights_and_time_of_a_network(tmp_path, capsys):
    config = tiny.config(num_hidden_groups=1, embedding_size=8, num_hidden_layers=2)
    path = str(tmp_path / "c.json")
    config.to_json_file(path)
    sizes.main(SizesFlags([path], max_seq_length=8, max_predictions_per_seq=2, train_batch_size=2,
                          num_train_steps=1, output_dir=str(tmp_path)))
    found = re.fullmatch(rf"{re.escape(path)} +([\d,]+) weights, +([\d,]+) with the heads +[\d.]+ "
                         r"CPU s a step\n", capsys.readouterr().out)
    encoder, everything = (int(number.replace(",", "")) for number in found.groups())
    kept = json.loads((tmp_path / "metrics.json").read_text())["metrics"]
    assert (kept["weights"], kept["weights_with_heads"]) == (encoder, everything)
    assert kept["cpu_seconds"] > 0
    # The masked LM's dense layer and norm of the embeddings' width, its bias, and the sentences'.
    assert everything - encoder == (32 * 8 + 8) + 2 * 8 + tiny.VOCAB + (32 * 2 + 2)


@pytest.mark.parametrize("values, message", [
    ({"models": ["bert:giant"]}, "--models=bert:giant: there is no size 'giant'"),
    ({"models": ["bart:base"]}, "'bart'"), ({"models": ["absent.json"]}, "absent.json"),
    ({"train_batch_size": 0}, "--train_batch_size is 0"),
    ({"max_seq_length": 0}, "--max_seq_length is 0"),
    ({"models": ["bert:tiny", "bert:mini"], "output_dir": "out"},
     "--output_dir: metrics.json holds one network")])
def test_networks_that_cannot_be_measured(values, message):
    with pytest.raises(InputError, match=message):
        sizes.main(SizesFlags(**{"models": ["bert:tiny"], **values}))


def test_numbers_of_other_benchmarks():
    with pytest.raises(InputError, match="--rounds is 0"):
        tokenization.main(tokenization.TokenizationBenchmarkFlags([], "", rounds=0))
    with pytest.raises(InputError, match="examples is -1"):
        flags.check(RuntimesFlags(init_checkpoint="", output_dir="", examples=-1))
