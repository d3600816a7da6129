"""BERT-of-Theseus computes and learns as JetRunner/BERT-of-Theseus does (golden/theseus of
$BERT_TF_TEST_DATA)."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from bert_tf import checkpoints, networks
from bert_tf.compression.replacing import Replacing
from bert_tf.compression.theseus import Theseus, read_predecessor, replacing_rate
from bert_tf.config import EncoderConfig
from bert_tf.config.quantisation import Quantisation
from bert_tf.errors import InputError
from bert_tf.objectives import Classification
from bert_tf.tasks.named import find_task
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.training import Learner, WarmupLinearDecay, make_optimizer, resume
from bert_tf.training.optimizers import OPTIMIZERS
from bert_tf.training.settings import FineTuneSettings
from bert_tf.training.train import save_model
from bert_tf.training.trainer import Trainer, join_options
from run_scripts import run_theseus
from tests.goldens import part
from tests.rounding import ROUNDED, off
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")
SCC = "bert.encoder.scc_layer."


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return np.load(test_data / "golden" / "theseus" / "theseus_seed1.npz")


@pytest.fixture(name="load", scope="module")
def fixture_load(golden, tmp_path_factory):
    if "config" not in golden.files:
        pytest.skip("the file at hand has the rates alone")
    sizes = json.loads(str(golden["config"]))
    for key in ("successor_layers", "labels"):
        del sizes[key]

    def load(weights, layers, name="bert"):
        folder = tmp_path_factory.mktemp("theseus")
        save_file({key: np.ascontiguousarray(value) for key, value in weights.items()},
                  folder / "model.safetensors")
        config = EncoderConfig(**{**sizes, "num_hidden_layers": layers, "hidden_dropout_prob": 0,
                                  "attention_probs_dropout_prob": 0})
        (folder / "config.json").write_text(json.dumps({
            **config.to_dict(), "model_type": "bert", "hidden_act": "gelu",
            "architectures": ["BertForSequenceClassification"]}))
        learner = Learner(networks.build(config, name=name),
                          [Classification(config, 3, dropout_rate=0)])
        assert not checkpoints.load(folder, learner).missing
        return learner
    return load


@pytest.fixture(name="make", scope="module")
def fixture_make(golden, load):
    """A `Theseus` of the reference file; its successor's layers are `scc`, by name, or copies."""
    weights = part(golden, "w/")
    del weights["note"]

    def make(scc=None, **options):
        layers = scc or {}
        for name, value in weights.items():
            start, _, rest = name.partition("encoder.layer.")
            if scc is None and rest and int(rest[0]) < 3:
                layers[rest] = value
        common = {name: value for name, value in weights.items() if "encoder.layer" not in name}
        successor = load({**common, **{f"bert.encoder.layer.{name}": value
                                       for name, value in layers.items()}}, 3)
        predecessor = load(weights, 6, "predecessor")
        return Theseus(successor.encoder, successor.objectives, predecessor.encoder, **options)
    return make


def features(arrays):
    return {name: tf.constant(arrays[name]) for name in (
        "input_ids", "input_mask", "segment_ids", "label_ids") if name in arrays}


def close(found, wanted, most=ROUNDED):
    assert off(np.array(found), wanted) < most


def test_every_pattern_of_coins_computes_what_the_original_does(golden, make):
    learner = make(part(golden, "forward_scc/"))
    batch = features(part(golden, "forward/"))
    for name in sorted({name.split("/")[1] for name in golden.files if "/coins_" in name}):
        coins = [int(coin) for coin in name.removeprefix("coins_")]
        given = {**batch, "coins": tf.constant(coins)}
        wanted = part(golden, f"forward/{name}/")
        found = learner.run_network(given, training=True)
        close(found["sequence_output"], wanted["sequence_output"])
        close(learner(given, training=True)["classification"], wanted["logits"])
    close(learner(batch)["classification"], golden["forward/inference/logits"])
    # What is saved is the network that is evaluated.
    alone = learner.parts()["model"]
    assert type(alone) is Learner
    assert np.array_equal(alone(batch)["classification"], learner(batch)["classification"])


@pytest.mark.parametrize("kind, replacing", (
    ("linear", Replacing("linear", 0.3, 0.2)), ("constant", Replacing("constant", 0.5, 0.0, 2))))
def test_steps_are_the_originals(kind, replacing, golden, make):
    learner = make(replacing=replacing, clips_all=True)
    before = {v.path: np.array(v) for v in learner.trainable_variables}
    trainer = Trainer(learner, make_optimizer(
        "huggingface_adamw", WarmupLinearDecay(1e-3, 20, form="roberta"), weight_decay=0.0,
        **learner.optimizer_options), tf.distribute.get_strategy())
    steps = sum(name.startswith(kind) and name.endswith("/loss") for name in golden.files)
    for step in range(steps):
        wanted = part(golden, f"{kind}/step{step}/")
        close(replacing_rate(replacing, step), wanted["rate"], 1e-6)
        close(trainer.optimizer.learning_rate, wanted["learning_rate"], 1e-9)
        if (kind, step) == ("constant", 1):     # made after the other run, whose gradients were
            for count in trainer.optimizer._counts:     # left as zeros, by the same model
                count.assign(1.0)
        metrics = trainer.train(iter([{**features(wanted),
                                       "coins": tf.constant(wanted["coins"])}]), 1)
        close(metrics["loss"], wanted["loss"])
        np.testing.assert_allclose(metrics["grad_norm"], wanted["norm_of_all_gradients"], 1e-5)
    after = part(golden, f"{kind}/after{steps}/{SCC}")
    named = {v.path: v for v in learner.encoder.weights}
    for name, value in after.items():
        path = name.replace(".", "/").replace("LayerNorm/weight", "LayerNorm/gamma").replace(
            "LayerNorm/bias", "LayerNorm/beta").replace("weight", "kernel")
        found = np.array(named[f"bert/encoder/layer_{path}"])
        close(found.T if "kernel" in path else found, value)
    # The successor's layers alone have moved.
    moved = {path for path, value in before.items() if not np.array_equal(
        value, next(v for v in learner.trainable_variables if v.path == path))}
    assert moved and all(path.startswith("bert/encoder/layer_") for path in moved)


def test_rates_are_the_originals(golden):
    for name, replacing in (("linear_b0.3_k0.0006", Replacing("linear", 0.3, 0.0006)),
                            ("linear_b0.5_k0.0001", Replacing("linear", 0.5, 0.0001)),
                            ("constant_b0.5_steps2500", Replacing("constant", 0.5, 0, 2500)),
                            ("constant_b0.5_steps0", Replacing("constant", 0.5)),
                            ("constant_b0.7_steps1", Replacing("constant", 0.7, 0, 1))):
        wanted = golden[f"rates/{name}"]
        close(replacing_rate(replacing, np.arange(len(wanted))), wanted, 1e-6)
    first = np.array(replacing_rate(Replacing(), np.arange(2000)))
    assert np.flatnonzero(first == 1)[0] == 1167
    close(replacing_rate(Replacing("none", 0.4), np.arange(9)), 0.4, 1e-6)


def tiny_trainer():
    """A small Theseus with dropout, with the same weights at every call."""
    keras.utils.set_random_seed(5)
    sizes = EncoderConfig(vocab_size=20, hidden_size=8, num_hidden_layers=4, num_attention_heads=2,
                          intermediate_size=8, max_position_embeddings=8, type_vocab_size=2)
    small = EncoderConfig(**{**sizes.to_dict(), "num_hidden_layers": 2})
    learner = Theseus(networks.build(small), [Classification(small, 2)],
                      networks.build(sizes, name="predecessor"), Replacing("linear", 0.3, 0.2))
    return Trainer(learner, make_optimizer("huggingface_adamw", 1e-2),
                   tf.distribute.get_strategy(), seed=3)


def test_a_run_that_was_stopped_throws_the_same_coins(tmp_path):
    ids = np.random.default_rng(1).integers(1, 20, (3, 4, 8)).astype("int32")
    batches = [{"input_ids": tf.constant(row), "label_ids": tf.constant([0, 1, 1, 0])}
               for row in ids]
    whole, first, second = tiny_trainer(), tiny_trainer(), tiny_trainer()
    whole.train(iter(batches), 3)
    first.train(iter(batches[:1]), 1)
    tiny.save_checkpoint(str(tmp_path), first, {}, 1)
    resume.restore(resume.checkpoints(str(tmp_path))[-1], second)
    second.train(iter(batches[1:]), 2)
    ours, theirs = resume.variables(whole), resume.variables(second)
    assert ours.keys() == theirs.keys() and not any("predecessor" in name for name in ours)
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_coins_are_a_function_of_seed_and_step_alone():
    sizes = EncoderConfig(vocab_size=20, hidden_size=8, num_hidden_layers=4, num_attention_heads=2,
                          intermediate_size=8, max_position_embeddings=8)
    small = EncoderConfig(**{**sizes.to_dict(), "num_hidden_layers": 2})
    learner = Theseus(networks.build(small), [Classification(small, 2)],
                      networks.build(sizes, name="predecessor"), Replacing("none", 0.3))
    seed = 12345 << 7
    thrown = np.array([learner.throw(np.array([seed, step], "int32"), step) for step in range(300)])
    assert abs(thrown.mean() - 0.3) < 0.05 and len(np.unique(thrown, axis=0)) == 4
    for replica in (1, 5):
        again = [learner.throw(np.array([seed + replica, step], "int32"), step)
                 for step in range(20)]
        assert np.array_equal(again, thrown[:20])
    # The layers alone learn, unless all gradients are to be in the norm.
    assert {v.path.split("/")[2] for v in learner.trainable_variables} == {"layer_0", "layer_1"}
    with pytest.raises(InputError, match="divides"):
        Theseus(networks.build(sizes), [], networks.build(small, name="predecessor"))
    for values, message in (({"replacing_rate": 0}, "above 0"), ({"scheduler_type": "x"}, "choose"),
                            ({"scheduler_type": "none", "scheduler_linear_k": 0.1}, "is for"),
                            ({"steps_for_replacing": 3}, "constant")):
        with pytest.raises(InputError, match=message):
            _ = run_theseus.TheseusFlags("folder", **values).replacing
    assert join_options({"a": (1,), "b": 2}, {"a": (3,), "c": 4}) == {"a": (1, 3), "b": 2, "c": 4}


def test_the_ranges_of_a_rounded_predecessor_stay(tmp_path):
    """A run that is resumed reads the predecessor again."""
    sizes = EncoderConfig(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                          intermediate_size=8, max_position_embeddings=8,
                          quantisation=Quantisation())
    small = dataclasses.replace(sizes, num_hidden_layers=1)
    whole = Learner(networks.build(sizes), [Classification(sizes, 2)])
    ids = np.arange(8).reshape(2, 4)
    whole({"input_ids": ids}, training=True)        # finds ranges
    save_model(str(tmp_path), whole)
    SavedTask(find_task("cola"), 8, True, {}).write(tmp_path)
    learner = Theseus(networks.build(small), [Classification(small, 2)],
                      read_predecessor(str(tmp_path)))
    before = learner.predecessor.get_weights()
    other = {"input_ids": ids + 9, "coins": np.zeros(1, int)}
    learner(other, training=True)
    assert all(map(np.array_equal, learner.predecessor.get_weights(), before))
    assert all(before[index].any() for index, weight in enumerate(learner.predecessor.weights)
               if weight.path.endswith("query/ranges/input_threshold"))


def test_the_command_knows_its_defaults():
    values = run_theseus._DEFAULTS
    assert values["optimizer"] in OPTIMIZERS
    assert FineTuneSettings(output_dir="x", **values).num_train_epochs == 15
