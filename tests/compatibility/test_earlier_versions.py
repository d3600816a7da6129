"""The files that earlier versions wrote are taken by this one (see README.md of this folder)."""

import importlib
import json
import os
import pathlib
import re
import shutil
import sys

import absl.flags
import numpy as np
import pytest
from absl import app
from safetensors.numpy import load_file

import bert_tf
from bert_tf import checkpoints
from tests import processes

FOLDER = pathlib.Path(__file__).parent / "version_0_1_0"
RECORDS = ["--input_file=text.txt", "--vocab_file=vocab.txt", "--max_seq_length=24",
           "--max_predictions_per_seq=4", "--num_workers=1", "--piece_bytes=1500",
           "--dupe_factor=2"]
PRETRAINING = [
    "--bert_config_file=bert_config.json", "--input_file=records/text.tfrecord-*", "--do_train",
    "--do_eval", "--max_seq_length=24", "--max_predictions_per_seq=4", "--train_batch_size=4",
    "--eval_batch_size=4", "--learning_rate=1e-2", "--num_train_steps=8", "--num_warmup_steps=2",
    "--save_checkpoints_steps=4", "--iterations_per_loop=1", "--keep_checkpoint_max=1"]
FINETUNING = [
    "--bert_config_file=bert_config.json", "--vocab_file=vocab.txt", "--do_train", "--do_eval",
    "--max_seq_length=16", "--num_workers=1", "--train_batch_size=8", "--learning_rate=1e-2",
    "--iterations_per_loop=1", "--save_checkpoints_steps=2"]
CLASSIFIER = [
    *FINETUNING, "--train_file=train.tsv", "--dev_file=dev.tsv", "--text_a_column=text",
    "--label_column=label", "--num_train_epochs=2", "--num_trials=2", "--random_seed=1"]
SCRIPTS = {
    "classifier": ("run_classifier", CLASSIFIER),
    "tagger": ("run_tagger", [
        *FINETUNING, "--train_file=train.words", "--dev_file=dev.words", "--num_train_epochs=1",
        "--feature_layers=weighted_sum_all", "--lstm_size=4", "--lstm_layers=1"]),
    "squad": ("run_squad", [
        *FINETUNING, "--train_file=squad_train.json", "--predict_file=squad_dev.json",
        "--version_2_with_negative", "--max_query_length=6", "--doc_stride=4",
        "--num_train_epochs=2"]),
    "multiple_choice": ("run_multiple_choice", [
        *FINETUNING, "--train_file=quiz_train.jsonl", "--dev_file=quiz_dev.jsonl",
        "--text_a_column=question", "--choice_columns=answer*", "--label_column=right",
        "--num_train_epochs=2"]),
}
EXAMPLES = {
    "classifier": ["the house sings .", "a bird walks ."],
    "tagger": ["the house near a river", "a small bird"],
    "squad": [("the house", "the house sings . a small bird walks near the river .")],
    "multiple_choice": [("the house", "a bird", "sings .", "the river")],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the files, which is the working folder of the test."""
    shutil.copytree(FOLDER, tmp_path / "files")
    monkeypatch.chdir(tmp_path / "files")
    return tmp_path / "files"


@pytest.fixture
def command(monkeypatch):
    """function(module, arguments): runs a command in this process, with flags of its own."""
    def run(module, *arguments):
        monkeypatch.setattr(absl.flags, "FLAGS", absl.flags.FlagValues())
        monkeypatch.setattr(sys, "argv", [module, *arguments])
        monkeypatch.setattr(app, "run", lambda main, flags_parser: main(flags_parser(sys.argv)))
        importlib.import_module(module).run()
    return run


def content(folder, kinds=("*",)):
    """The bytes and times of files, by name."""
    return {path.relative_to(folder): (path.read_bytes(), path.stat().st_mtime_ns)
            for kind in kinds for path in sorted(folder.rglob(kind)) if path.is_file()}


@pytest.mark.parametrize("name, flags", [
    ("text.tfrecord", []), ("words.tfrecord.gz", ["--do_whole_word_mask"])])
def test_finished_records_are_kept(folder, command, capsys, name, flags):
    before = content(folder / "records")
    command("data_prep.create_pretraining_data", *RECORDS, *flags,
            f"--output_file=records/{name}")
    after = content(folder / "records")
    assert {path: after[path] for path in before} == before
    # The tokenizer, which earlier versions did not keep, comes beside them.
    assert {str(path) for path in after.keys() - before.keys()} == {
        f"{name.partition('.')[0]}.tokenizer/{file}"
        for file in ("vocab.txt", "tokenizer_config.json")}
    assert "there already" in capsys.readouterr().out


@pytest.mark.parametrize("name, flags", [
    ("text.tfrecord", []), ("words.tfrecord.gz", ["--do_whole_word_mask"])])
def test_the_same_flags_still_give_the_same_bytes(folder, command, name, flags):
    command("data_prep.create_pretraining_data", *RECORDS, *flags, f"--output_file=new/{name}")
    shards = {path.name: path.read_bytes() for path in (folder / "new").glob("*tfrecord*")}
    assert len(shards) == 2
    assert shards == {name: (folder / "records" / name).read_bytes() for name in shards}


def test_an_unfinished_records_job_goes_on(folder, command, capsys):
    first = content(folder / "unfinished_records", ["*00000-of-00002"])
    command("data_prep.create_pretraining_data", *RECORDS,
            "--output_file=unfinished_records/text.tfrecord")
    assert "1 of 2 pieces" in capsys.readouterr().out
    assert content(folder / "unfinished_records", ["*00000-of-00002"]) == first
    for path in (folder / "records").glob("text.tfrecord-*"):
        assert (folder / "unfinished_records" / path.name).read_bytes() == path.read_bytes()


def test_records_are_verified(folder, command, capsys):
    command("data_prep.verify_records",
            "--input_file=records,classifier/records,squad/records,tagger/records,"
            "multiple_choice/records")
    assert "sound" in capsys.readouterr().out


def lines(path, kind):
    """The losses, accuracies and gradient norms of metrics.jsonl, by step."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["step"]: {name: value for name, value in line.items()
                           if name in ("loss", "grad_norm", "learning_rate") or "/" in name}
            for line in found if line["kind"] == kind}


def assert_near(found, expected):
    """Both are dicts of dicts of numbers."""
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        known = {name: found[key][name] for name in values}     # later versions report more
        assert known == pytest.approx(values, rel=1e-6, abs=1e-6), key


def assert_same_checkpoint(path, expected):
    """All weights and moments are equal but for rounding."""
    found, wanted = load_file(path), load_file(expected)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_short_run_has_the_same_numbers(folder, command):
    command("run_scripts.run_pretraining", *PRETRAINING, "--output_dir=new")
    for kind in ("train", "eval"):
        assert_near(lines(folder / "new/metrics.jsonl", kind),
                    lines(folder / "pretrained/metrics.jsonl", kind))
    assert_same_checkpoint("new/checkpoint-000000008.safetensors",
                           "pretrained/checkpoint-000000008.safetensors")


def test_a_stopped_pretraining_goes_on(eagerly, folder, command, capsys):
    command("run_scripts.run_pretraining", *PRETRAINING, "--output_dir=unfinished_pretraining")
    assert "step 4" in capsys.readouterr().out
    # With its place in the records: else the last steps would see other ones.
    assert_near(lines(folder / "unfinished_pretraining/metrics.jsonl", "train"),
                lines(folder / "pretrained/metrics.jsonl", "train"))
    assert_same_checkpoint("unfinished_pretraining/checkpoint-000000008.safetensors",
                           "pretrained/checkpoint-000000008.safetensors")


def test_stopped_trials_go_on(eagerly, folder, command):
    before = content(folder / "unfinished_classifier/records")
    command("run_scripts.run_classifier", *CLASSIFIER, "--output_dir=unfinished_classifier")
    assert content(folder / "unfinished_classifier/records") == before
    for trial in ("seed1", "seed2"):
        assert_near(*(lines(folder / run / "trials" / trial / "metrics.jsonl", "train")
                      for run in ("unfinished_classifier", "classifier")))
        results = [json.loads((folder / run / "trials" / trial / "result.json").read_text())
                   for run in ("unfinished_classifier", "classifier")]
        assert results[0]["metrics"] == pytest.approx(results[1]["metrics"], rel=1e-6)


@pytest.mark.parametrize("name", SCRIPTS)
def test_finished_trials_are_not_run_again(folder, command, name):
    """Even with records made again: a trial knows its records by a hash of how they were made."""
    script, flags = SCRIPTS[name]
    kept = ("model.keras", "result.json", "settings.json", "metrics.jsonl")
    before = content(folder / name, kept)
    records = {path.name: path.read_bytes() for path in (folder / name).rglob("*.tfrecord")}
    shutil.rmtree(folder / name / "records")
    scores = json.loads((folder / name / "metrics.json").read_text())
    command(f"run_scripts.{script}", *flags, f"--output_dir={name}")
    assert content(folder / name, kept) == before
    assert records == {path.name: path.read_bytes() for path in (folder / name).rglob("*.tfrecord")}
    found = flatten(json.loads((folder / name / "metrics.json").read_text()))
    assert found.keys() == flatten(scores).keys()
    for path, value in flatten(scores).items():
        wanted = pytest.approx(value, rel=1e-5) if isinstance(value, float) else value
        assert found[path] == wanted, path


def flatten(value, at=""):
    """The leaves of nested dicts and lists, by path."""
    pairs = value.items() if isinstance(value, dict) else (
        enumerate(value) if isinstance(value, list) else None)
    if pairs is None:
        return {at: value}
    return {path: leaf for key, part in pairs
            for path, leaf in flatten(part, f"{at}/{key}").items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_models_answer_as_before(folder, name):
    expected = flatten(json.loads((folder / "predictions.json").read_text())[name])
    found = flatten(bert_tf.Predictor(folder / name)(EXAMPLES[name]))
    assert found.keys() == expected.keys()
    for at, value in expected.items():
        is_close = isinstance(value, float)
        assert found[at] == (pytest.approx(value, rel=2e-6, abs=2e-6) if is_close else value), at


def test_models_are_loaded_by_keras_and_by_us(folder):
    names = ["pretrained", *SCRIPTS]
    code = ("import sys, bert_tf, keras\n"
            "for path in sys.argv[1:]: print(keras.models.load_model(path).count_params())")
    paths = [os.path.join(name, "model.keras") for name in names]
    said = processes.Process(code, paths).finish()
    counts = [int(line) for line in re.findall("^[0-9]+$", said, re.M)]
    for path, count in zip(paths, counts, strict=True):
        weights = checkpoints.read(path)
        assert sum(np.prod(t.shape, dtype=int) for t in weights.tensors.values()) == count
