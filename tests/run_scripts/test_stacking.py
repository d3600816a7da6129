"""Progressive stacking: the original's copies, rates and refusals, and runs that were killed."""

import dataclasses
import os
import shutil
import zipfile

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.bert.objective import MaskedLM
from bert_tf.checkpoints import checksummed
from bert_tf.config import EncoderConfig, UniversalConfig
from bert_tf.errors import InputError
from bert_tf.models.electra.learner import Electra
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training import Learner, Trainer, growth, make_optimizer, resume
from bert_tf.training.growth import StackSettings
from bert_tf.training.optimizers.adam import WarmupLinearDecay
from bert_tf.training.settings import TrainSettings
from run_scripts import run_pretraining
from run_scripts.pretraining.flags import PretrainingFlags
from tests.rounding import assert_same
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("all_eagerly")
STACK = StackSettings(stack_layers=["1", "2", "4"], stack_steps=["2", "2"],
                         stack_learning_rates=["1e-2", "8e-3", "5e-3", "0"],
                         stack_warmup_steps=["1", "1", "0"])
# A run of two stages, and the folders of these.
SHORT = dataclasses.replace(STACK, stack_layers=["1", "2"], stack_steps=["2"],
                            stack_learning_rates=["1e-2", "5e-3", "0"],
                            stack_warmup_steps=["1", "0"])
STAGES = ("stage_1_of_1_layers", ".")


# The copies

def adam(values, name, number):
    """The moments of a weight of torch."""
    return {f"optimizer/{name}_{moment}": values[f"{number}/{key}"]
            for moment, key in (("momentum", "exp_avg"), ("velocity", "exp_avg_sq"))}


def fairseq(golden, prefix, layers):
    """The tensors of the original's checkpoint: weights, and moments by their numbers."""
    def under(part):
        start = f"{prefix}/{part}/"
        return {name.removeprefix(start): golden[name] for name in golden.files
                if name.startswith(start)}

    weights = {name.replace("encoder.layers.", "learner/encoder/layer_", 1).replace(".", "/"): value
               for name, value in under("model").items()}
    moments, found = under("adam"), {}
    numbers = sorted({int(name.split("/")[0]) for name in moments})
    for number in numbers:
        layer, part = divmod(number - 2, 8)
        inside = 0 <= layer < layers
        name = (f"encoder/layer_{layer}/{part}" if inside else
                f"other_{number if number < 2 else number - 8 * layers}")
        found |= adam(moments, name, number)
    return {**weights, **found}


@pytest.mark.parametrize("case", ["double", "quadruple", "double_optimizer"])
def test_copies_are_the_originals(case, test_data):
    golden = np.load(test_data / "golden" / "stacking" / "stacked_seed1.npz")
    before, after = (fairseq(golden, f"{case}/{side}", int(golden[f"{case}/{side}/layers"]))
                     for side in ("before", "after"))
    if case != "double_optimizer":      # the original leaves the old optimizer in the file
        before, after = ({name: value for name, value in side.items() if "optimizer" not in name}
                         for side in (before, after))
    origin = growth.sources(after, before)
    assert origin.keys() == after.keys()
    assert all(np.array_equal(after[name], before[source]) for name, source in origin.items())


def test_both_networks_of_electra_are_copied():
    held = [f"learner/{network}/encoder/layer_{i}/w" for network, depth in (
        ("bert", 2), ("generator", 1)) for i in range(depth)] + ["learner/dense/w"]
    wanted = [f"learner/{network}/encoder/layer_{i}/w" for network, depth in (
        ("bert", 4), ("generator", 2)) for i in range(depth)] + ["learner/dense/w", "learner/new"]
    origin = growth.sources(wanted, held)
    assert list(origin.values()) == [*held[:2], *held[:2], held[2], held[2], "learner/dense/w"]


@pytest.fixture(name="shallow", scope="module")
def fixture_shallow(tmp_path_factory):
    """A trainer of two layers whose state is all random, and the folder of its checkpoint."""
    trainer, rng = tiny.trainer(layers=2), np.random.default_rng(0)
    for name, variable in resume.variables(trainer).items():
        if name.startswith(("learner/", "optimizer/")) and len(variable.shape):
            variable.assign(rng.normal("gamma" in name, 0.3, variable.shape))
    trainer.step.assign(5)
    trainer.optimizer.iterations.assign(5)
    folder = str(tmp_path_factory.mktemp("shallow"))
    tiny.save_checkpoint(folder, trainer, {}, 5)
    return trainer, folder


def outputs(trainer):
    batch = {"input_ids": np.arange(1, 13).reshape(2, 6), "input_mask": np.ones((2, 6), int)}
    return trainer.learner.encoder(batch)["sequence_output"].numpy()


@pytest.fixture(name="fresh", scope="module")
def fixture_fresh():
    """A trainer of four layers, and its first state."""
    trainer = tiny.trainer(layers=4)
    return trainer, {name: v.numpy() for name, v in resume.variables(trainer).items()}


@pytest.mark.parametrize("kind", ["copied", "identity", "random"])
@pytest.mark.parametrize("optimizer", ["reset", "copied"])
def test_a_deeper_network_begins_with_the_layers_below(kind, optimizer, shallow, fresh):
    (small, folder), (deep, first) = shallow, fresh
    old, new = (resume.variables(trainer) for trainer in (small, deep))
    for name, variable in new.items():
        variable.assign(first[name])
    said = growth.grow(folder, deep, dataclasses.replace(
        STACK, stack_new_layers=kind, stack_optimizer=optimizer))
    assert kind in said and folder in said
    for name, variable in new.items():
        has_moved = kind == "identity" and "output/LayerNorm" in name
        if not name.startswith("learner/") or has_moved:
            continue
        layer = int(name.split("layer_")[1].split("/")[0]) if "layer_" in name else -1
        source = name.replace(f"layer_{layer}/", f"layer_{layer % 2}/") if layer > 1 else name
        if layer < 2 or kind == "copied":
            wanted = old[source].numpy()
        elif kind == "identity" and "/output/dense" in name:
            wanted = np.zeros(variable.shape)
        else:
            wanted = first[name]
        assert np.array_equal(variable, wanted), name
    assert int(deep.step) == int(deep.optimizer.iterations.numpy()) == 0
    lower = {v.path: v.numpy() for v in small.optimizer.variables}
    for variable in deep.optimizer._momentums + deep.optimizer._velocities:
        layer = int(variable.path.split("layer_")[1][0]) if "layer_" in variable.path else 0
        source = variable.path.replace(f"layer_{layer}_", f"layer_{layer % 2}_")
        is_copied = optimizer == "copied" and (layer < 2 or kind == "copied")
        assert np.array_equal(variable, lower[source]) if is_copied else not np.any(variable)
    difference = np.abs(outputs(deep) - outputs(small)).max()
    assert difference < 1e-5 if kind == "identity" else difference > 1e-3


def test_another_model_is_refused(shallow):
    sizes = tiny.config(hidden_size=16, num_hidden_layers=1)
    wider = Trainer(Learner(BertEncoder(sizes), [MaskedLM(sizes)]), make_optimizer("adamw", 1e-2),
                    tf.distribute.get_strategy())
    with pytest.raises(InputError, match="has no weights for learner/bert/"):
        growth.grow(shallow[1], wider, STACK)


# The rates

def rates(settings, stack, config):
    """Functions of a stage's step."""
    return [WarmupLinearDecay(its.learning_rate, its.num_train_steps, its.num_warmup_steps,
                              its.learning_rate_schedule, its.poly_power, its.start_warmup_step,
                              its.warmup_init_lr, its.end_learning_rate)
            for its in (stage.settings for stage in growth.plan(settings, stack, config))]


def test_the_rates_of_stacking_bert():
    """3 layers for 50,000 steps, 6 for 70,000, 12 towards 800,000; stopped after 400,000 in all."""
    settings = TrainSettings("x", num_train_steps=920_000, stop_at_step=400_000,
                             warmup_init_lr=1e-7, learning_rate_schedule="roberta")
    stack = StackSettings(["3", "6", "12"], ["50000", "70000"],
                             ["8e-4", "5.5e-4", "3e-4", "0"], ["10000", "1", "1"])
    config = EncoderConfig.preset("base")
    assert [stage.settings.last_step for stage in growth.plan(settings, stack, config)] == [
        50_000, 70_000, 280_000]

    def line(step, warmup, steps, peak, end):
        if step < warmup:
            return 1e-7 + (peak - 1e-7) * step / warmup
        return peak + (end - peak) * (step - warmup) / (steps - warmup)

    for found, wanted in zip(rates(settings, stack, config), [
            (10_000, 50_000, 8e-4, 5.5e-4), (1, 70_000, 5.5e-4, 3e-4), (1, 800_000, 3e-4, 0)]):
        for step in (0, 1, 2, 777, 10_000, 33_333, 49_999):
            assert float(found(step)) == pytest.approx(line(step, *wanted), rel=1e-5)


def test_the_rates_of_the_model_garden():
    """A constant rate but in the last stage, with a warm-up in each."""
    settings = TrainSettings("x", num_train_steps=675_000, num_warmup_steps=10_000,
                             learning_rate=1e-4, learning_rate_schedule="model_garden")
    found = rates(settings, StackSettings(["3", "6", "12"], ["112500"] * 2),
                  EncoderConfig.preset("base"))

    def last(step):
        return 1e-4 * (1 - step / 450_000)

    for step in (0, 1, 9_999, 10_000, 100_000):
        warm = min(1, step / 10_000)
        for rate, wanted in zip(found, (1e-4 * warm, 1e-4 * warm, last(
                10_000) * warm if step < 10_000 else last(step))):
            assert float(rate(step)) == pytest.approx(wanted, rel=1e-5)


# Runs

@pytest.fixture(name="train", scope="module")
def fixture_train(tmp_path_factory):
    """Function that trains in a folder, and returns the tensors of its last checkpoint."""
    folder = tmp_path_factory.mktemp("data")
    tiny.write_records(folder / "r.tfrecord", 40)
    tiny.config(0.1, num_hidden_layers=2).to_json_file(folder / "config.json")

    def run(output, stack=SHORT, **changes):
        run_pretraining.main(
            PretrainingFlags([str(folder / "r.tfrecord")], str(folder / "config.json"),
                             do_train=True, max_seq_length=tiny.LENGTH,
                             max_predictions_per_seq=tiny.PREDICTIONS),
            TrainSettings(**{
                "output_dir": str(output), "num_train_steps": 4, "num_warmup_steps": 1,
                "save_checkpoints_steps": 1, "train_batch_size": 8, **changes}), stack)
        return checksummed.read(resume.checkpoints(str(output))[-1])[0]
    return run


@pytest.fixture(name="whole", scope="module")
def fixture_whole(train, tmp_path_factory):
    """The folder of a run that was never stopped, and its last tensors."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    return folder, train(folder)


def test_every_stage_leaves_its_model(whole):
    folder, tensors = whole
    for stage, depth in zip(STAGES, (1, 2)):
        assert EncoderConfig.from_json_file(
            folder / stage / "bert_config.json").num_hidden_layers == depth
        assert {"model.keras", "metrics.jsonl"} <= set(os.listdir(folder / stage))
        assert resume.checkpoints(str(folder / stage))[-1].endswith("000000002.safetensors")
        held = checksummed.read(resume.checkpoints(str(folder / stage))[0])[0]
        below = checksummed.read(resume.checkpoints(str(folder / STAGES[0]))[-1])[0]
        if depth > 1:       # as it began
            assert int(held["trainer/step"]) == int(held["optimizer/adamw/iteration"]) == 0
            assert all(np.array_equal(value, below[name.replace("layer_1/", "layer_0/")])
                       for name, value in held.items() if name.startswith("learner/"))
            assert not any(np.any(value) for name, value in held.items() if "momentum" in name)
    assert int(tensors["trainer/step"]) == 2
    assert "learner/bert/encoder/layer_1/output/dense/kernel" in tensors


# Checkpoints that are there when a run begins again, by stage; None: the folder itself is gone.
@pytest.mark.parametrize("kept", [((1,), ()), (None, (1,))])
def test_a_killed_run_ends_with_the_same_bits(kept, whole, train, tmp_path, capsys):
    output = tmp_path / "out"
    shutil.copytree(whole[0], output)
    for stage, steps in reversed([*zip(STAGES, kept)]):
        if steps is None:
            shutil.rmtree(output / stage)
            continue
        for path in resume.checkpoints(str(output / stage)):
            if int(path[-21:-12]) not in steps:
                os.remove(path)
    again = train(output)
    assert_same(again, whole[1])
    assert "resuming at step" in capsys.readouterr().out
    one, other = (zipfile.ZipFile(folder / "model.keras") for folder in (whole[0], output))
    assert all(one.read(name) == other.read(name) for name in ("config.json", "model.weights.h5"))


def test_a_run_stops_between_stages(train, tmp_path, capsys):
    with pytest.raises(IndexError):         # there is no checkpoint of the last stage yet
        train(tmp_path / "out", stop_at_step=1)
    printed = capsys.readouterr().out
    assert "stage 1 of 2: 1 layer, 2 steps\n" in printed
    assert "--stop_at_step=1 is before stage 2 of 2" in printed
    steps = [path[-21:-12] for path in resume.checkpoints(str(tmp_path / "out" / STAGES[0]))]
    assert steps == ["000000001"]
    with pytest.raises(InputError, match="another --stack_layers .stage_1_of_1_layers.; give"):
        train(tmp_path / "out", StackSettings())


def test_other_ways_to_stack_are_noticed(whole, train, tmp_path, capsys):
    shutil.copytree(whole[0], tmp_path / "out")
    train(tmp_path / "out", dataclasses.replace(SHORT, stack_new_layers="identity",
                                                stack_optimizer="copied"))
    said = capsys.readouterr().out
    assert "with another --stack_new_layers (copied, now identity), --stack_optimizer (" in said


# Refusals

@pytest.mark.parametrize("changes, message", [
    ({"stack_layers": ["3", "4"]}, "3,4: a network of 4 layers can't be made from whole copies"),
    ({"stack_layers": ["4", "4"]}, "whole copies"),
    ({"stack_layers": ["1", "2"]}, "ends with 2, but the configuration has 4 layers"),
    ({"stack_layers": ["a", "4"]}, "--stack_layers is a,4; each must be a whole number at least 1"),
    ({"stack_steps": []}, "--stack_steps is not given; give the steps of all 3 stages"),
    ({"stack_steps": ["5", "4"]}, "together fewer than --num_train_steps .9."),
    ({"stack_steps": ["3"]}, "--stack_steps is 3; .* give 2 numbers"),
    ({"stack_learning_rates": ["1", "nan", "1", "0"]}, "each must be a finite number"),
    ({"stack_warmup_steps": ["4", "1", "1"]}, "stage 1 has 2 steps .* warm-up of 4"),
])
def test_what_can_not_be_divided_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        growth.plan(TrainSettings("x", num_train_steps=9, num_warmup_steps=0),
                      dataclasses.replace(STACK, **changes), tiny.config(num_hidden_layers=4))


def test_networks_whose_layers_can_not_be_copied_are_refused():
    settings = TrainSettings("x", num_train_steps=9, num_warmup_steps=0)
    shared = tiny.config(num_hidden_layers=4, num_hidden_groups=1, model_type="albert")
    for config in (shared, UniversalConfig(9, num_hidden_layers=4)):
        with pytest.raises(InputError, match=f"share no weights, .*{config.model_type}"):
            growth.plan(settings, STACK, config)
    with pytest.raises(InputError, match="of 3 layers .* of 2 layers, which the generator"):
        growth.plan(
            settings, dataclasses.replace(STACK, stack_layers=["2", "4"], stack_steps=["3"],
                                          stack_learning_rates=[], stack_warmup_steps=[]),
            tiny.config(num_hidden_layers=4), lambda sizes: Electra.configs(
                sizes, GeneratorSettings(generator_layers=0.75)))
