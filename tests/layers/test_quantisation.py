"""Numbers of a few bits, beside the outputs of nlp-architect and ZeroQ (golden/quantisation of
$BERT_TF_TEST_DATA)."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints
from bert_tf.checkpoints import keras_file
from bert_tf.config import EncoderConfig
from bert_tf.config.quantisation import Quantisation
from bert_tf.errors import InputError
from bert_tf.layers.quantisation import (
    QuantisedDense,
    fake_weights,
    straight_through,
    symmetric,
)
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.classification import Classification
from bert_tf.training import resume
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import make_optimizer
from bert_tf.training.trainer import Trainer
from tests.rounding import HALF_ULP, ROUNDED, off
from tests.training import tiny

QUANTISED = {"head_start_step": 1, "ema_decay": 0.9}


@pytest.fixture(scope="module")
def q8bert(test_data):
    return np.load(test_data / "golden/quantisation/q8bert_seed1.npz")


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("kind", ["dynamic", "clipped"])
def test_rounded_tensors_and_gradients_equal_the_originals(eagerly, q8bert, kind, bits):
    name, x = f"fake_{kind}_{bits}", tf.constant(q8bert["x"])
    threshold = tf.reduce_max(tf.abs(x)) if kind == "dynamic" else tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        integers, scale = symmetric(x, threshold, bits)
        y = straight_through(x, integers / scale)
    gradient = tape.gradient(y, x, tf.constant(q8bert["upstream"]))
    for value, key in ((integers, "integers"), (scale, "scale"), (y, "y"), (gradient, "gradient")):
        np.testing.assert_array_equal(value, q8bert[f"{name}/{key}"])


@pytest.mark.parametrize("name", ["linear_ema_out_start0", "linear_ema_noout_start2",
                                  "linear_dynamic_out_start0"])
def test_a_layer_trains_and_infers_as_the_original(eagerly, q8bert, name):
    values = {key.removeprefix(f"{name}/"): value for key, value in q8bert.items()
              if key.startswith(name)}
    how = Quantisation(activations=name.split("_")[1], ema_decay=float(values["ema_decay"]))
    layer = QuantisedDense(5, how=how, bits=8, start_step=int(name[-1]),
                           requantises="noout" not in name)
    layer.build((None, 6))
    layer.kernel.assign(values["kernel"])
    layer.bias.assign(values["bias"])
    for step in range(4):
        x = tf.constant(values[f"step{step}/x"])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
        found = tape.gradient(y, [x, layer.kernel.value, layer.bias.value],
                              tf.constant(values[f"step{step}/upstream"]))
        found = dict(zip(("y", "dx", "dkernel", "dbias"), [y, *found])) | {
            key: getattr(layer.ranges, key) for key in ("input_threshold", "output_threshold")}
        for key, value in found.items():
            assert off(value, values[f"step{step}/{key}"]) < ROUNDED, key
    assert off(layer(values["inference/x"]), values["inference/y"]) < ROUNDED


def test_rows_of_a_table_equal_the_originals(eagerly, q8bert):
    table = tf.constant(q8bert["embedding/table"])
    with tf.GradientTape() as tape:
        tape.watch(table)
        y = fake_weights(tf.gather(table, q8bert["embedding/ids"]), table, 8, Quantisation())
    gradient = tape.gradient(y, table, tf.constant(q8bert["embedding/upstream"]))
    np.testing.assert_array_equal(y, q8bert["embedding/y"])
    np.testing.assert_array_equal(y, q8bert["embedding/inference"])
    np.testing.assert_array_equal(tf.convert_to_tensor(gradient), q8bert["embedding/gradient"])


def test_groups_of_columns_equal_the_originals(eagerly, test_data):
    values = np.load(test_data / "golden/quantisation/groupwise_seed1.npz")
    kernel = tf.constant(values["kernel"])
    for bits in (8, 4, 3, 2):
        for groups in (1, 4, 24, 48):
            how = Quantisation("groupwise", groups=groups)
            assert off(fake_weights(kernel, kernel, bits, how),
                       values[f"zeroq_bits{bits}_groups{groups}"]) < 4 * HALF_ULP


def test_nothing_is_divided_by_zero(eagerly):
    layer = QuantisedDense(3, how=Quantisation(), bits=8, kernel_initializer="zeros")
    layer.build((None, 2))
    x = tf.constant([[1.0, -2.0]])
    np.testing.assert_array_equal(layer(x), [[0, 0, 0]])        # without a range
    layer(tf.zeros_like(x), training=True)
    np.testing.assert_array_equal(layer(x), [[0, 0, 0]])


def learner(layers=2, **quantisation):
    sizes = tiny.config(num_hidden_layers=layers, quantisation={**QUANTISED, **quantisation})
    return Learner(BertEncoder(sizes), [Classification(sizes, 3, dropout_rate=0.0)])


def batch(rows=4, seed=0):
    rng = np.random.default_rng(seed)
    return {"input_ids": tf.constant(rng.integers(1, tiny.VOCAB, (rows, 8)), tf.int32),
            "input_mask": tf.ones((rows, 8), tf.int32),
            "label_ids": tf.constant(rng.integers(0, 3, rows), tf.int32)}


def make_trainer(strategy):
    keras.utils.set_random_seed(3)
    with strategy.scope():
        return Trainer(learner(layers=1), make_optimizer("adamw", 1e-2), strategy)


def take(trainer, steps):
    for step in steps:
        dataset = trainer.strategy.experimental_distribute_dataset(
            tf.data.Dataset.from_tensors(batch(seed=step)).unbatch().batch(4))
        trainer.train(iter(dataset), 1)


@functools.cache
def train(strategy):
    trainer = make_trainer(strategy)
    take(trainer, range(2))
    return weights_of(trainer)


def weights_of(trainer):
    return {v.path: v.numpy() for v in trainer.learner.weights if "seed" not in v.path}


def test_two_replicas_find_the_ranges_of_one(eagerly, mirrored):
    one, two = train(tf.distribute.get_strategy()), train(mirrored)
    assert any("ranges/input_threshold" in name and value > 0 for name, value in one.items())
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("activations", ["none", "ema"])
def test_parts_of_a_batch_come_one_after_the_other(eagerly, activations):
    """Each moves the ranges and counts as a step of them, as in the original; without ranges the
    parts are the whole batch."""
    def make(**options):
        keras.utils.set_random_seed(3)
        return Trainer(learner(layers=1, activations=activations, head_start_step=0),
                       make_optimizer("adamw", 1e-2), tf.distribute.get_strategy(), **options)

    trainer, expected = make(accumulation=2), make()
    take(trainer, [0])
    if activations == "none":
        take(expected, [0])
    else:
        counts, sums = expected.learner.counts(batch()), None
        for part in (slice(0, 2), slice(2, 4)):
            half = {name: value[part] for name, value in batch().items()}
            with tf.GradientTape() as tape:
                loss = expected.learner.total_loss(
                    expected.learner.measure(half, True, np.array([1, 2])), counts)
            grads = tape.gradient(loss, [v.value for v in expected.learner.trainable_variables],
                                  unconnected_gradients="zero")
            grads = [tf.convert_to_tensor(g) for g in grads]
            sums = grads if sums is None else [a + b for a, b in zip(sums, grads)]
        expected.optimizer.apply(sums, expected.learner.trainable_variables)
    found = {v.path: v.numpy() for v in trainer.learner.weights if "seed" not in v.path}
    for variable in expected.learner.weights:
        if variable.path in found:
            np.testing.assert_allclose(found[variable.path], variable, rtol=1e-6, atol=1e-6,
                                       err_msg=variable.path)
    steps = {value for name, value in found.items() if name.endswith("ranges/steps")}
    assert steps == ({2.0} if activations == "ema" else set())


def test_training_goes_on_with_its_ranges(eagerly, tmp_path):
    whole = train(tf.distribute.get_strategy())
    first = make_trainer(tf.distribute.get_strategy())
    take(first, range(1))
    path = tiny.save_checkpoint(str(tmp_path), first, {}, 1)
    second = make_trainer(tf.distribute.get_strategy())
    resume.restore(path, second)
    take(second, [1])
    for name, value in weights_of(second).items():
        np.testing.assert_array_equal(value, whole[name], err_msg=name)


def test_a_model_is_saved_with_its_ranges(eagerly, tmp_path):
    model, features = learner(weight_bits=[4, 8]), batch()
    for _ in range(3):
        model(features, training=True)
    model.save(tmp_path / keras_file.NAME)
    expected = model(features)["classification"]
    assert np.ptp(expected) > 0
    loaded = keras.saving.load_model(tmp_path / keras_file.NAME)
    np.testing.assert_array_equal(loaded(features)["classification"], expected)
    other = learner(weight_bits=[4, 8])
    account = checkpoints.load(tmp_path, other)
    assert not account.missing
    np.testing.assert_array_equal(other(features)["classification"], expected)
    assert checkpoints.read_config(tmp_path).quantisation.weight_bits == (4, 8)
    checkpoints.convert(tmp_path, tmp_path / "again", "keras")
    np.testing.assert_array_equal(
        keras.saving.load_model(tmp_path / "again/model.keras")(features)["classification"],
        expected)
    with pytest.raises(InputError, match="quantisation is symmetric"):
        checkpoints.convert(tmp_path, tmp_path / "google", "google")
    # The float network of the same weights.
    plain = Learner(BertEncoder(tiny.config()), [Classification(tiny.config(), 3)])
    assert not checkpoints.load(tmp_path, plain).missing


def test_configurations_without_it_are_those_of_before():
    assert "quantisation" not in EncoderConfig.preset("tiny").to_dict()
    config = EncoderConfig.preset("tiny", quantisation={"weight_bits": [2, 4]})
    assert EncoderConfig.from_dict(config.to_dict()) == config and hash(config)


@pytest.mark.parametrize("wrong, message", [
    ({"weight_bits": 1}, "weight_bits must be from 2 to 8"),
    ({"weight_bits": [8]}, "2 layers"),
    ({"groups": 2}, "groups are only for the scheme groupwise"),
    ({"scheme": "groupwise", "groups": 7}, "must divide hidden_size .* such as 1 "),
    ({"bits": 8}, "unknown key 'bits'"),
    ("q8bert", "must be an object")])
def test_impossible_quantisations_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        EncoderConfig.preset("tiny", quantisation=wrong)
