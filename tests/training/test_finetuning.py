"""Trials: each runs once, a killed one ends as if it had not been, and the best one is kept."""

import dataclasses
import functools
import itertools
import json
import math
import os
import statistics

import fsspec
import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import config as tf_config

from bert_tf import checkpoints, networks
from bert_tf.data.batches.example_set import ExampleSet
from bert_tf.data.records.features import FINETUNING
from bert_tf.data.records.tfrecord import write_shard
from bert_tf.errors import InputError
from bert_tf.objectives.classification import Classification
from bert_tf.objectives.tagging import Tagging
from bert_tf.tasks.task import Defaults
from bert_tf.training import batches, trials
from bert_tf.training.batches import predict
from bert_tf.training.distribution import open_strategy
from bert_tf.training.finetuning import FineTuning
from bert_tf.training.optimizers import WarmupLinearDecay
from bert_tf.training.optimizers.table import SCHEDULES
from bert_tf.training.reporting import read_metrics
from bert_tf.training.settings import FineTuneSettings
from bert_tf.training.train import Run
from tests.programs import refused
from tests.rounding import assert_same
from tests.training import tiny

ONE = tf.distribute.get_strategy()
CONFIG = tiny.config(0.1, num_hidden_layers=1)
STILL = tiny.config(num_hidden_layers=1)
DEFAULTS = Defaults(train_batch_size=8, learning_rate=1e-2, num_train_epochs=2.0)
# What differs from run to run.
CLOCK = ("seconds",)


def write_records(folder, count, seed, kind="classification"):
    """An `ExampleSet` of random texts; label 1 is that of a text with a token below 8."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, tiny.LENGTH + 1, (count, 1))
    mask = (np.arange(tiny.LENGTH) < lengths).astype(np.int64)
    tokens = rng.integers(5, tiny.VOCAB, mask.shape) * mask
    labels = ((tokens >= 5) & (tokens < 8)).astype(np.int64)
    features = {"input_ids": tokens, "input_mask": mask,
                "segment_ids": mask * (np.arange(tiny.LENGTH) > 6),
                "label_ids": labels.max(1, keepdims=True),
                "is_real_example": np.ones([count, 1], np.int64)}
    if kind == "tagging":
        features |= {"label_ids": labels, "label_weights": mask * (np.arange(tiny.LENGTH) % 2)}
    os.makedirs(folder)
    shard = write_shard(os.path.join(folder, "a.tfrecord"), folder, [features])
    path = os.path.join(folder, "a.manifest.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"options": {"max_seq_length": tiny.LENGTH}, "vocabulary": {}, "shards": [shard],
                   "fingerprint": [count, seed, kind],
                   "task": {"kind": kind, "num_choices": 1, "labels": ["no", "yes"],
                            "multi_label": False, "features": [
                                dataclasses.asdict(feature) for feature in FINETUNING[kind]]}},
                  file)
    return ExampleSet(path)


@pytest.fixture(name="examples", scope="module")
def fixture_examples(tmp_path_factory):
    return write_records(str(tmp_path_factory.mktemp("records") / "train"), 40, 1)


@pytest.fixture(name="dev", scope="module")
def fixture_dev(tmp_path_factory):
    return write_records(str(tmp_path_factory.mktemp("records") / "dev"), 21, 2)


def scores(examples, found, losses):
    """As the scripts make them, and a headline that is hardly ever equal."""
    labels = examples["label_ids"][:, 0]
    answers = found["logits"].argmax(1)
    return {"loss": losses["loss"], "dev/closeness": -losses["loss"],
            "dev/accuracy": float(np.mean(answers == labels)),
            "degenerate": float(len(set(answers)) == 1)}


@pytest.fixture(name="tune")
def fixture_tune(dev, tmp_path):
    """function(folder, config, evaluate, scored_on, **settings): a `FineTuning`."""
    def make(folder="out", config=CONFIG, evaluate=None, scored_on=None, **changes):
        def of_dev(predict_):
            return scores(dev, *predict_(dev))

        settings = FineTuneSettings(**{
            "output_dir": str(tmp_path / folder), "num_train_steps": 6, "random_seed": 1,
            "iterations_per_loop": 2, "save_checkpoints_steps": 2, "eval_batch_size": 32,
            **changes})
        dropout = config.hidden_dropout_prob
        return FineTuning(
            settings, ONE, config, lambda config, dtype: Classification(
                config, 2, dropout_rate=dropout, dtype=dtype),
            evaluate or of_dev, "dev/closeness", DEFAULTS, {"more": 1}, scored_on)
    return make


def weights(folder):
    kept = checkpoints.read(os.path.join(folder, "model.keras"))
    return {name: tensor.read() for name, tensor in kept.tensors.items()}


def plain(summary):
    """Results without what the clock says."""
    return {**summary, "trials": {name: {key: value for key, value in result.items()
                                         if key not in CLOCK}
                                  for name, result in summary["trials"].items()}}


# Settings

def test_a_grid_is_all_combinations():
    settings = FineTuneSettings(
        output_dir="out", grid=True, num_trials=2, random_seed=7,
        grid_train_batch_size=["8", "16"], grid_learning_rate=["1e-3", "0.00002", "5e-5"],
        grid_num_train_epochs=["1", "2.5"])
    trials = settings.trials()
    assert {(t.train_batch_size, t.learning_rate, t.num_train_epochs, t.random_seed)
            for t in trials.values()} == set(itertools.product(
                (8, 16), (1e-3, 2e-5, 5e-5), (1.0, 2.5), (7, 8)))
    assert len(trials) == 24 and "batch8-rate0.001-epochs2.5-seed8" in trials
    for name, trial in trials.items():
        assert trial.output_dir == os.path.join("out", "trials", name)
    for name, value in {"learning_rate": 1.0, "train_batch_size": 8, "num_train_epochs": 2,
                        "num_train_steps": 3}.items():
        with pytest.raises(InputError, match=f"^there is no --{name} with --grid.$"):
            dataclasses.replace(settings, **{name: value})
    for bad in (["x"], ["0"], ["-1"], ["8.5"], ["nan"]):
        with pytest.raises(InputError, match="--grid_train_batch_size"):
            FineTuneSettings(output_dir="out", grid=True, grid_train_batch_size=bad)


def test_a_tpu_is_named_where_it_is_used():
    used = FineTuneSettings(output_dir="out", tpu="x", use_tpu=True)
    assert (used.tpu, used.distribution_strategy) == ("x", "tpu")
    with pytest.raises(InputError, match="^--tpu names a TPU, which --distribution_strategy=mirr"):
        FineTuneSettings(output_dir="out", tpu="x", distribution_strategy="mirrored")


@pytest.mark.parametrize("settings", [
    {"grid_learning_rate": ["1"], "grid": True}, {"layer_decay_top": 0, "layer_decay": 0.9},
    {"concrete_learning_rate": 0.1, "concrete_coef": 0.1}, {"adv_alpha": 2.0, "adv_train": "smart"},
    {"adv_steps": 2, "adv_train": "freelb"}, {"adv_init_mag": 1.0, "adv_train": "freelb"},
    {"average_decay": 0.9, "weight_average": "ema"}, {"average_start": 0, "weight_average": "swa"},
    {"poly_power": 2.0, "learning_rate_schedule": "exponential"},
    {"schedule_steps": 9, "learning_rate_schedule": "noam"},
    {"end_learning_rate": 1e-6, "learning_rate_schedule": "rsqrt"},
    {"warmup_init_lr": 1e-6, "learning_rate_schedule": "gpt"},
    {"num_decay_steps": 2, "learning_rate_schedule": "one_minus_sqrt", "num_train_steps": 9},
    {"weight_decay": 0.1, "optimizer": "adamax"},
    {"cluster_timeout": 5.0, "distribution_strategy": "multi_worker"},
    {"cluster_hosts": ["a"], "cluster": "indexed_job", "distribution_strategy": "multi_worker"}])
def test_settings_exist_with_those_that_use_them(settings):
    """tests/test_help.py finds that they are refused without."""
    FineTuneSettings(output_dir="out", **settings)


def test_schedules_without_an_end_are_equal_in_longer_runs():
    for name, row in SCHEDULES.items():
        shorter, longer = ([float(WarmupLinearDecay(1.0, steps, 2, name)(step)) for step in (3, 19)]
                           for steps in (20, 40))
        assert (shorter != longer) == row.ends, name


@pytest.mark.parametrize("changes, examples, expected", [
    ({}, 40, (8, 10, 1, 0)), ({"num_train_epochs": 0.5}, 40, (8, 2, 0, 0)),
    ({"num_train_epochs": 0.01}, 40, (8, 1, 0, 0)), ({"num_train_epochs": 0}, 40, (8, 0, 0, 0)),
    ({"train_batch_size": 16}, 41, (16, 5, 0, 0)),
    # One batch is an epoch where the examples are fewer.
    ({"train_batch_size": 64, "num_train_epochs": 7.0}, 40, (64, 7, 0, 0)),
    ({"num_train_steps": 100, "num_train_epochs": 9.0}, 40, (8, 100, 10, 0)),
    ({"num_train_steps": 100, "num_warmup_steps": 3}, 40, (8, 100, 3, 0)),
    ({"num_train_steps": 100, "num_warmup_steps": 0}, 40, (8, 100, 0, 0)),
    ({"early_stopping": 1, "num_train_epochs": 1.0}, 43, (8, 5, 0, 5)),
    ({"early_stopping": 1, "eval_steps": 3}, 40, (8, 10, 1, 3)),
    ({"early_stopping": 2, "train_batch_size": 64}, 40, (64, 2, 0, 1))])
def test_what_the_task_decides(changes, examples, expected):
    found = FineTuneSettings(output_dir="out", **changes).resolve(DEFAULTS, examples)
    assert (found.train_batch_size, found.num_train_steps, found.num_warmup_steps,
            found.eval_steps) == expected


def test_zero_is_a_rate_and_not_the_tasks_own():
    for rate, expected in ((None, 1e-2), (0.0, 0.0), (0.5, 0.5)):
        settings = FineTuneSettings(output_dir="out", learning_rate=rate)
        assert settings.resolve(DEFAULTS, 40).learning_rate == expected
    for name in ("learning_rate", "num_train_epochs"):
        for value, must in ((-1, "at least 0"), (math.inf, "a finite number")):
            with pytest.raises(InputError, match=f"--{name} is {value}; it must be {must}"):
                FineTuneSettings(output_dir="out", **{name: value})


def test_only_batches_that_are_needed_are_shared_out():
    settings = FineTuneSettings(output_dir="out", train_batch_size=32, eval_batch_size=9)
    settings.check_replicas(3, trains=False)
    settings.check_replicas(4, evaluates=False)
    for replicas, flag in ((3, "train"), (4, "eval")):
        with pytest.raises(InputError, match=f"--{flag}_batch_size"):
            settings.check_replicas(replicas)


# Trials

@pytest.fixture(name="counted")
def fixture_counted(monkeypatch):
    """A list of the folders of all trials that were trained."""
    trained, train = [], Run.train
    monkeypatch.setattr(Run, "train", lambda self: (
        trained.append(os.path.basename(self._settings.output_dir)), train(self)))
    return trained


def scripted(values):
    """An evaluation that gives one of the (value, degenerate) after the other."""
    values = iter(values)

    def evaluate(_):
        value, degenerate = next(values)
        return {"loss": 1 - value, "dev/closeness": value, "degenerate": float(degenerate)}
    return evaluate


def test_trials_run_once_and_the_best_is_kept(eagerly, tune, examples, counted, tmp_path, capsys):
    steps = {"num_train_steps": 1}
    values = [(0.25, 0), (0.75, 0), (0.9, 1)]
    summary = tune(num_trials=3, evaluate=scripted(values), **steps).train(examples)
    names = ["seed1", "seed2", "seed3"]
    assert counted == names and list(summary["trials"]) == names
    # A trial of one answer to all is not the best one, whatever its score.
    assert summary["best"] == "seed2" and summary["degenerate"] == ["seed3"]
    said = capsys.readouterr().out
    assert "seed3: dev/closeness 0.9000" in said and said.count("DEGENERATE") == 1
    # The remedy is told once, with the scores of the model that is kept.
    assert trials.REMEDY not in said
    for name, numbers in (("dev/closeness", [value for value, _ in values]),
                          ("loss", [1 - value for value, _ in values])):
        assert summary["metrics"][name] == pytest.approx({
            "mean": np.mean(numbers), "stdev": statistics.stdev(numbers),
            "median": np.median(numbers),
            "best": min(numbers) if name == "loss" else max(numbers)})
    kept = weights(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == summary
    # Nothing is left to do; the model is that of the best alone.
    assert plain(tune(num_trials=3, evaluate=scripted([]), **steps).train(examples)) == (
        plain(summary))
    assert counted == names
    assert_same(weights(tmp_path / "out"), kept)
    tune("alone", random_seed=2, evaluate=scripted([(0.1, 0)]), **steps).train(examples)
    assert_same(weights(tmp_path / "alone"), kept)
    # More trials, before and after those that are there.
    more = tune(num_trials=5, random_seed=0, evaluate=scripted([(0.75, 0), (0.6, 0)]),
                **steps).train(examples)
    assert counted[4:] == ["seed0", "seed4"] and more["best"] == "seed2"
    assert_same(weights(tmp_path / "out"), kept)
    # Fewer would not be those among which the model is the best.
    with pytest.raises(InputError, match="trials holds seed0, seed4 from other seeds"):
        tune(num_trials=3, **steps).check(examples)


def test_a_score_that_is_no_number_is_the_least_and_ends_no_search(eagerly, tune, examples):
    """As the loss where a model that diverged in its last step is scored."""
    values = [(math.nan, 0), (0.5, 0), (0.25, 0)]
    summary = tune(num_trials=3, num_train_steps=1, evaluate=scripted(values)).train(examples)
    assert summary["best"] == "seed2"
    for found in summary["metrics"].values():
        assert found["best"] == 0.5 and math.isnan(found["mean"]) and math.isnan(found["stdev"])
    for other in (math.nan, math.inf, -math.inf):
        assert math.isnan(trials.deviation([0.5, other]))


@pytest.fixture(name="spoil")
def fixture_spoil(monkeypatch):
    """A list of the trials whose training meets an infinite weight."""
    spoilt, train = [], Run.train

    def training(self):
        if os.path.basename(self._settings.output_dir) in spoilt:
            weight = self._trainer.learner.trainable_variables[0]
            weight.assign(np.full(weight.shape, np.inf))
        train(self)
    monkeypatch.setattr(Run, "train", training)
    return spoilt


def test_a_trial_that_diverges_ends_no_search(
        eagerly, tune, examples, spoil, counted, tmp_path, capsys):
    spoil.extend(["seed1", "seed3"])
    values = [(0.25, 1), (0.5, 1)]
    options = {"num_train_steps": 1, "save_checkpoints_steps": 1}
    summary = tune(num_trials=4, evaluate=scripted(values), **options).train(examples)
    said = capsys.readouterr().out
    assert "seed1: DIVERGED: not finite in step 1, in" in said
    assert "diverged, and not counted: seed1, seed3" in said
    # Even one that gives all examples one answer is better.
    assert summary["best"] == "seed4" and summary["diverged"] == ["seed1", "seed3"]
    assert summary["metrics"]["dev/closeness"]["mean"] == 0.375
    assert not list(tmp_path.rglob("*.safetensors"))
    kept = weights(tmp_path / "out")
    # It is not trained again, and need not be among the trials that follow.
    assert plain(tune(num_trials=4, evaluate=scripted([]), **options).train(examples)) == (
        plain(summary))
    fewer = tune(num_trials=1, random_seed=2, **options)
    with pytest.raises(InputError, match="trials holds seed4 from other seeds"):
        fewer.check(examples)
    more = tune(num_trials=4, random_seed=2, evaluate=scripted([(0.4, 1)]), **options)
    assert counted == ["seed1", "seed2", "seed3", "seed4"]
    more = more.train(examples)
    assert counted[4:] == ["seed5"] and more["best"] == "seed4" and more["diverged"] == ["seed3"]
    assert [result["number"] for result in more["trials"].values()] == [1, 2, 3, 4]
    assert_same(weights(tmp_path / "out"), kept)


def test_nothing_but_trials_that_diverge_is_an_error(
        eagerly, tune, examples, spoil, counted, tmp_path):
    spoil.extend(["seed1", "seed2"])
    for _ in range(2):
        with pytest.raises(InputError, match="all 2 trials diverged: lower .* name another"):
            tune(num_trials=2, num_train_steps=1).train(examples)
    assert counted == ["seed1", "seed2"] and not (tmp_path / "out" / "results.json").exists()
    for _ in range(2):      # a lone one has no result
        with pytest.raises(InputError, match="step 1 is not a finite number.* start again. No"):
            tune("alone", num_train_steps=1).train(examples)
    assert counted[2:] == ["seed1", "seed1"]
    # One that has not ended may be removed.
    with pytest.raises(InputError, match="holds seed1 from .*remove its folder"):
        tune("alone", random_seed=2, num_train_steps=1).check(examples)


@pytest.mark.parametrize("values, is_read", [([0.2, 0.9], False), ([0.9, 0.2], True)])
def test_the_best_trial_is_read_again_unless_it_was_the_last(
        eagerly, tune, examples, dev, tmp_path, monkeypatch, values, is_read):
    """The answers are those of the file; the model that was just trained gives them once."""
    tuning = tune(num_train_steps=1, num_trials=len(values), evaluate=scripted(
        [(value, 0) for value in values]))
    tuning.train(examples)
    path = str(tmp_path / "out" / "model.keras")
    counts = []
    monkeypatch.setattr(batches, "predict", lambda *args: counts.append(1) or predict(*args))
    answers = [tuning.predict(tuning.load(path), dev)[0]["logits"] for _ in range(2)]
    assert len(counts) == 1 + is_read and np.array_equal(*answers)
    tuning.last.best = None
    assert np.allclose(tuning.predict(tuning.load(path), dev)[0]["logits"], answers[0], atol=1e-6)


def test_a_folder_is_that_of_one_run(eagerly, tune, examples, dev, tmp_path):
    one = {"num_train_steps": 1, "scored_on": [0]}
    tune(**one).train(examples)
    path = tmp_path / "out" / "trials" / "seed1"
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    for changes, names in (
            ({"learning_rate": 1e-3}, ["learning_rate"]), ({"dtype": "bfloat16"}, ["dtype"]),
            ({"train_batch_size": 4}, ["train_batch_size"]),
            ({"layer_decay": 0.9}, ["layer_decay"]), ({"config": STILL}, ["bert_config_file"]),
            ({"num_train_steps": 4, "optimizer": "lamb"}, ["num_train_steps", "optimizer"])):
        with refused(path, *(f"--{name}" for name in names)):
            tune(**one | changes).train(examples)
    with pytest.raises(InputError, match="seed1 holds a run with another --train_file"):
        tune(**one).train(dev)
    with pytest.raises(InputError, match="seed1 holds a run that was scored on other examples"):
        tune(**one | {"scored_on": [1]}).train(examples)
    # What changes no number may be another.
    tune(**one, eval_batch_size=4, iterations_per_loop=7).train(examples)
    (tmp_path / "out" / "model.keras").unlink()
    with pytest.raises(InputError, match="model.keras is missing"):
        tune(**one).train(examples)
    assert {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()} == before


def test_all_trials_begin_with_the_same_weights(eagerly, tune, examples, tmp_path):
    path = tmp_path / "first" / "model.keras"

    def begin(seed, trials, **changes):
        keras.utils.set_random_seed(seed)
        path.parent.mkdir(exist_ok=True)
        networks.build(CONFIG).save(path)
        return dataclasses.replace(tune(num_trials=trials, num_train_steps=1, **changes),
                                   init_checkpoint=str(path)).train(examples)

    first = begin(1, 1)
    with pytest.raises(InputError, match="model.keras has other weights than when an earlier tri"):
        begin(2, 2)
    assert plain(begin(1, 2))["trials"]["seed1"] == plain(first)["trials"]["seed1"]
    for settings in (tmp_path / "out" / "trials").glob("*/trial.json"):
        assert json.loads(settings.read_text())["settings"]["digest_of_first_weights"]


def test_evaluations_that_end_no_training_may_differ(eagerly, tune, examples):
    tune(num_train_steps=1, eval_steps=7).train(examples)
    tune(num_train_steps=1).train(examples)
    with pytest.raises(InputError, match=r"another --layer_decay \(1.0, now 0.9\); name"):
        tune(num_train_steps=1, layer_decay=0.9).train(examples)


@pytest.mark.parametrize("changes", [{}, {"early_stopping": 1}, {"evaluate": False}])
def test_no_epoch_leaves_the_model_as_it_is(eagerly, tune, examples, tmp_path, changes):
    tuning = tune(num_train_steps=0, num_train_epochs=0, **changes | {"evaluate": None})
    if changes.get("evaluate") is False:
        tuning.evaluate = None
    summary = tuning.train(examples)
    assert summary["trials"]["seed1"]["step"] == 0 and summary["best"] == "seed1"
    assert bool(summary["metrics"]) == (tuning.evaluate is not None)
    begun = tuning.make_trainer(tuning.settings.resolve(DEFAULTS, examples.size)).learner
    found = tuning.load(str(tmp_path / "out" / "model.keras")).learner
    assert_same(found.get_weights(), begun.get_weights())


def test_two_runs_in_one_folder_are_refused(tune, hold, examples, tmp_path):
    (tmp_path / "out").mkdir()
    holder = hold(tmp_path / "out")
    with pytest.raises(InputError, match=f"--output_dir: process {holder.pid} on .* is at work"):
        tune().train(examples)
    holder.communicate()
    assert not os.listdir(tmp_path / "out")


@pytest.mark.parametrize("changes, part", [
    ({"num_warmup_steps": 9}, r"--num_warmup_steps \(9\)"),
    ({"gradient_accumulation_steps": 3}, r"--train_batch_size \(8\)"),
    ({"frozen_layers": 2}, "--frozen_layers is 2"), ({"layer_decay": 0}, "--layer_decay is 0"),
    ({"reinit_layers": 2}, "--reinit_layers is 2"),
    ({"concrete_coef": 0.1, "concrete_learning_rate": 0.1, "learning_rate": 0.0},
     "--learning_rate, which is 0"),
    ({"num_train_steps": 0, "grid": True, "grid_train_batch_size": ["8", "9"],
      "gradient_accumulation_steps": 2}, r"--train_batch_size \(9\)")])
def test_all_trials_must_fit_before_the_first_runs(tune, examples, tmp_path, changes, part):
    with pytest.raises(InputError, match=part):
        tune(**changes).train(examples)
    assert not (tmp_path / "out").exists()


# Going on

class Killed(BaseException):
    """What no one catches."""


def killed_at(number, monkeypatch, work):
    """Does `work` until so many files have got their final names; returns what it does at its end.
    """
    left, replace = iter(range(number)), os.replace

    def counting(*args):
        if next(left, None) is None:
            raise Killed
        replace(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", counting)
        try:
            return work()
        except Killed:
            return None


def evaluations(folder):
    return [(line["step"], line["loss"]) for line in read_metrics(str(folder), "eval")]


@pytest.mark.parametrize("options", [
    {"num_trials": 2, "num_train_steps": 2},
    {"early_stopping": 1, "eval_steps": 1, "num_train_steps": 6, "learning_rate": 0.05}])
def test_killed_anywhere_it_ends_the_same(
        eagerly, tune, examples, tmp_path, monkeypatch, written, options):
    options = {**options, "iterations_per_loop": 1, "save_checkpoints_steps": 1}
    expected = plain(tune("whole", **options).train(examples))
    points, kept = (1, 2 * len(written) // 3), weights(tmp_path / "whole")
    expected_lines = evaluations(tmp_path / "whole")
    for first in points:
        folder = tmp_path / str(first)
        train = functools.partial(tune(folder.name, **options).train, examples)
        assert killed_at(first, monkeypatch, train) is None
        # Killed again as it goes on.
        summary = killed_at(17, monkeypatch, train) or train()
        assert plain(summary) == expected
        assert_same(weights(folder), kept)
        assert evaluations(folder) == expected_lines
        assert not list(folder.rglob("*.safetensors"))


def test_a_run_that_ends_early_may_be_stopped_and_leaves_its_curves_in_a_store(
        eagerly, tune, examples, tmp_path, monkeypatch, capsys):
    options = {"early_stopping": 1, "eval_steps": 2, "num_train_steps": 12, "learning_rate": 0.05,
               "save_checkpoints_steps": 100}
    expected = plain(tune("whole", **options).train(examples))
    ended = expected["trials"]["seed1"]["step"] + 2
    for step in (3, ended):       # at which the next evaluation ends it
        found = tune("stopped", **options, stop_at_step=step).train(examples)
        if step < ended:
            assert f"stopped at --stop_at_step={step}; to resume" in capsys.readouterr().out
            assert found is None and not (tmp_path / "stopped" / "model.keras").exists()
    assert plain(found) == expected
    assert_same(weights(tmp_path / "stopped"), weights(tmp_path / "whole"))
    monkeypatch.setenv("BERT_TF_STAGE_FOLDER", str(tmp_path / "staged"))
    try:        # it ends between two checkpoints
        tune(output_dir="memory://early/run", **options).train(examples)
        assert evaluations(tmp_path / "whole") == evaluations("memory://early/run")
    finally:
        fsspec.filesystem("memory").rm("/early", recursive=True)


def test_damaged_and_missing_best_weights_are_told(eagerly, tune, examples, tmp_path):
    options = {"early_stopping": 1, "eval_steps": 2, "num_train_steps": 12}
    tune("stopped", **options, stop_at_step=3).train(examples)
    (path,) = tmp_path.rglob("best.safetensors")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="best.* is damaged.* the best weights so far. Remove "):
        tune("stopped", **options).train(examples)
    path.unlink()
    with pytest.raises(InputError, match="best.safetensors is not there, .* Put the file back"):
        tune("stopped", **options).train(examples)


def test_what_a_kill_at_the_end_of_a_trial_left_is_removed(eagerly, tune, examples, tmp_path):
    options = {"num_train_steps": 2, "early_stopping": 1, "eval_steps": 2}
    expected = tune(**options).train(examples)
    trial = tmp_path / "out" / "trials" / "seed1"
    names = sorted(os.listdir(trial))
    for name in ("best.safetensors", "checkpoint-000000002.safetensors"):
        (trial / name).write_bytes(b"left")
    assert tune(**options).train(examples) == expected and sorted(os.listdir(trial)) == names


def test_a_resumed_trial_adds_its_seconds_up(eagerly, tune, examples, monkeypatch, capsys):
    now, train = [0.0], Run.train
    monkeypatch.setattr("bert_tf.training.train.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Run, "train", lambda self: (now.__setitem__(0, now[0] + 100), train(self)))
    steps = {"num_train_steps": 3}
    tune(**steps, stop_at_step=1).train(examples)
    now[0] = 5000.0
    (result,) = tune(**steps).train(examples)["trials"].values()
    assert result["seconds"] == 200.0
    said = capsys.readouterr().out
    assert ", in 3 min 20 s" in said and "seed1: dev/closeness" in said


@pytest.mark.parametrize("way", [
    {"adv_train": "smart", "adv_noise_var": 0.01, "weight_average": "swa", "optimizer": "radam"},
    {"adv_train": "freelb", "weight_average": "ema", "adv_steps": 2}])
def test_stopped_in_adversarial_training_it_goes_on(eagerly, tune, examples, tmp_path, capsys, way):
    way = {**way, "num_train_steps": 2, "learning_rate": 0.05}
    expected = plain(tune("whole", **way).train(examples))
    assert f"adversarial training ({way['adv_train']}): each step takes" in capsys.readouterr().out
    assert tune("stopped", **way, stop_at_step=1).train(examples) is None
    assert plain(tune("stopped", **way).train(examples)) == expected
    assert_same(weights(tmp_path / "stopped"), weights(tmp_path / "whole"))
    with pytest.raises(InputError, match=r"--adv_train \("):
        tune("whole", num_train_steps=2, learning_rate=0.05).train(examples)


# Early stopping

def goodness(line):
    """By which evaluations are compared; those of one answer to all are never better."""
    return not line["degenerate"], line["dev/closeness"]


@pytest.mark.parametrize("patience, steps", [(2, 40), (9, 5)])
def test_early_stopping_keeps_the_best_evaluation(
        eagerly, tune, examples, tmp_path, patience, steps):
    tuning = tune(early_stopping=patience, eval_steps=2, num_train_steps=steps,
                  learning_rate=0.02, save_checkpoints_steps=7)
    (result,) = tuning.train(examples)["trials"].values()
    lines = read_metrics(str(tmp_path / "out"), "eval")
    best = max(lines, key=goodness)
    assert result["step"] == best["step"]
    assert result["metrics"]["loss"] == best["loss"]
    due = [*range(2, steps + 1, 2), *([steps] if steps % 2 else [])]
    last = best["step"] + 2 * patience
    assert [line["step"] for line in lines] == [step for step in due if step <= last]
    for count, line in enumerate(lines):     # it waited no longer than it should
        before = lines[max(count - patience, 0):count]
        if len(before) == patience and line is not lines[-1]:
            assert max(lines[:count + 1], key=goodness) in (*before[1:], line)
    trainer = tuning.load(str(tmp_path / "out" / "model.keras"))
    assert tuning.measure(trainer)["loss"] == pytest.approx(best["loss"], rel=1e-6)


@pytest.mark.parametrize("values, steps, best", [
    ([(0.2, 0), (0.9, 1), (0.8, 1)], [1, 2, 3], 1),     # one answer to all is no better model
    ([(0.9, 1), (0.2, 0), (0.1, 0), (0.8, 1)], [1, 2, 3, 4], 2),
    ([(0.5, 1), (0.6, 1), (0.4, 1), (0.6, 1)], [1, 2, 3, 4], 2),
    ([(float("nan"), 0), (0.2, 0), (0.1, 0), (0.1, 0)], [1, 2, 3, 4], 2)])
def test_a_degenerate_evaluation_is_never_the_best(
        eagerly, tune, examples, tmp_path, values, steps, best):
    tuning = tune(early_stopping=2, eval_steps=1, num_train_steps=20, evaluate=scripted(values))
    (result,) = tuning.train(examples)["trials"].values()
    assert [line["step"] for line in read_metrics(str(tmp_path / "out"), "eval")] == steps
    assert result["step"] == best


# Prediction and devices

def one_by_one(trainer, examples):
    """The logits of each example alone, without padding."""
    (objective,) = trainer.learner.objectives
    for row in range(examples.size):
        batch = examples.batch(np.array([row]), examples.lengths[row])
        yield trainer.learner({n: tf.constant(v) for n, v in batch.items()})[objective.name][0]


def test_prediction_is_that_of_each_example_alone(mirrored, tmp_path):
    examples = write_records(str(tmp_path / "records"), 15, 3, "tagging")
    tuning = FineTuning(FineTuneSettings(output_dir=str(tmp_path)), mirrored, CONFIG,
                        lambda config, dtype: Tagging(config, 2, dtype=dtype), None, "", DEFAULTS)
    trainer = tuning.make_trainer(FineTuneSettings(
        output_dir=str(tmp_path), num_train_steps=1, learning_rate=1.0, random_seed=3))
    expected = [np.asarray(logits) for logits in one_by_one(trainer, examples)]
    for batch_size in (6, 64):
        found, losses = predict(trainer, examples, batch_size)
        for row, logits in enumerate(expected):
            length = examples.lengths[row]
            assert found["logits"][row][:length] == pytest.approx(logits, rel=1e-5, abs=1e-5)
        labels, weight = (examples[name] for name in ("label_ids", "label_weights"))
        given = np.maximum(found["probabilities"], 1e-30).reshape(len(labels), -1, 2)
        losses_of = -np.log(np.take_along_axis(given, labels[..., None], -1)[..., 0])
        assert losses["loss"] == pytest.approx(
            np.sum(np.where(weight, losses_of, 0)) / weight.sum(), rel=1e-4)
    # One trace for all evaluations of a batch size.
    traces = trainer._predict_step.experimental_get_tracing_count()
    for _ in range(3):
        predict(trainer, examples, 64)
    assert trainer._predict_step.experimental_get_tracing_count() == traces


def test_the_log_is_quiet_about_tracing(caplog):
    open_strategy(FineTuneSettings(output_dir="out", train_batch_size=8, deterministic=False))
    for _ in range(12):
        tf.function(lambda x: x)(tf.constant(1))
    assert "retracing" not in caplog.text


@pytest.fixture(autouse=True, scope="module")
def fixture_determinism():
    yield
    tf_config.disable_op_determinism()
