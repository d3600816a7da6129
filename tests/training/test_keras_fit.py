"""The optimizers in Keras's own `fit`: against Keras's AdamW, and under a strategy."""

import contextlib
import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.errors import InputError
from bert_tf.objectives.classification import Classification
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from bert_tf.training.optimizers.table import OPTIMIZERS, PROGRESSIVE
from tests.training.test_learner import CONFIG, make_batch

RATE, PARTS = 0.05, 4
# The first of each class, and other forms of Adam's correction.
NAMES = [*{row.kind: name for name, row in reversed(OPTIMIZERS.items()) if name != PROGRESSIVE
           }.values(), "bert_adamw", "gpt_adam"]
# With these, Keras's formula is that of AdamWeightDecay: its epsilon comes before the correction.
LIKE_KERAS = {"epsilon": 1e-7, "epsilon_hat": True, "not_decayed": ()}
SCHEDULE = {"peak": 0.1, "total_steps": 6, "warmup_steps": 2}


def variables():
    rng = np.random.default_rng(0)
    found = []
    for name, shape in (("kernel", (300, 4)), ("bias", (4,))):
        with keras.name_scope("dense"):
            found.append(keras.Variable(rng.normal(size=shape).astype("float32"), name=name))
    return found


def gradients(count, scale=1.0):
    """Gradients of `count` parts, whose norms are above 1."""
    rng = np.random.default_rng(1)
    return [[(scale * rng.normal(size=shape)).astype("float32") for shape in ((300, 4), (4,))]
            for _ in range(count)]


def means(parts, size):
    return [[sum(gradient) / np.float32(size) for gradient in zip(*parts[start:start + size])]
            for start in range(0, len(parts), size)]


def train(optimizer, steps):
    weights = variables()
    for step in steps:
        optimizer.apply([tf.constant(gradient) for gradient in step], weights)
    return [weight.numpy() for weight in weights]


@pytest.mark.parametrize("clip_norm", [0.0, 1.0])
def test_accumulated_gradients_are_those_of_keras(clip_norm):
    parts = gradients(2 * PARTS)
    options = {"weight_decay": 0.1, "gradient_accumulation_steps": PARTS}
    expected = train(keras.optimizers.AdamW(RATE, global_clipnorm=clip_norm or None, **options),
                     parts)
    found = train(bert_tf.AdamWeightDecay(RATE, clip_norm=clip_norm, **LIKE_KERAS, **options),
                  parts)
    for one, other in zip(found, expected):
        assert np.allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, options", [("adamw", {}), *(
    (name, {"average": "ema", "clip_norm": 0.5, "skip_nonfinite": True}) for name in NAMES)])
def test_parts_of_a_step_are_one_step_of_every_optimizer(name, options):
    """Rates, corrections and averages count the steps, and the clip comes after the mean."""
    parts, found = gradients(6 * 2), []
    for accumulation, steps in ((None, means(parts, 2)), (2, parts)):
        optimizer = make_optimizer(name, WarmupLinearDecay(**SCHEDULE), use_ema=True,
                                   gradient_accumulation_steps=accumulation, **options)
        weights = train(optimizer, steps)
        assert int(optimizer.iterations) == 6
        averages = [*optimizer.averages, *optimizer._model_variables_moving_average]
        found.append([*weights, *(average.numpy() for average in averages)])
    assert len(found[0]) == len(found[1]) >= 4
    for one, other in zip(*found):
        assert np.allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name, parts", [("adamw", None), *((name, 2) for name in NAMES)])
def test_gradients_are_unscaled_before_they_are_clipped(name, parts):
    scale = 2.0**12
    options = {"clip_norm": 1.0, "gradient_accumulation_steps": parts}
    expected = train(make_optimizer(name, RATE, **options), gradients(4))
    for optimizer in (make_optimizer(name, RATE, loss_scale_factor=scale, **options),
                      keras.optimizers.LossScaleOptimizer(make_optimizer(name, RATE, **options),
                                                          initial_scale=scale)):
        found = train(optimizer, gradients(4, scale))
        assert all(np.array_equal(one, other) for one, other in zip(found, expected))


@pytest.mark.parametrize("by_name", [False, True])
def test_variables_are_excluded_from_decay_as_by_keras(by_name):
    found = []
    for make in (keras.optimizers.AdamW, lambda *args, **options: bert_tf.AdamWeightDecay(
            *args, clip_norm=0.0, **options, **LIKE_KERAS)):
        weights, optimizer = variables(), make(RATE, weight_decay=0.5)
        optimizer.exclude_from_weight_decay(**({"var_names": ["ker"]} if by_name else
                                               {"var_list": [weights[0]]}))
        for step in gradients(3):
            optimizer.apply([tf.constant(gradient) for gradient in step], weights)
        found.append([weight.numpy() for weight in weights])
    for one, other in zip(*found):
        assert np.allclose(one, other, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="call exclude_from_weight_decay before"):
        optimizer.exclude_from_weight_decay(var_names=["bias"])


def small_model(optimizer):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="dense")])
    model.compile(optimizer, "mse", run_eagerly=True)
    return model


def fit(model, **options):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(16, 3)), rng.normal(size=(16, 2))
    return model.fit(x, y, shuffle=False, verbose=0, **{"batch_size": 4, "epochs": 2, **options})


class Weights(keras.callbacks.Callback):
    """The first weights after each batch."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_train_batch_end(self, batch, logs=None):
        self.found.append(self.model.get_weights()[0])


@pytest.mark.parametrize("options, momentum", [
    ({"use_ema": True, "ema_momentum": 0.7}, lambda step: 0.7),
    ({"average": "ema", "average_decay": 0.7}, lambda step: min(0.7, (1 + step) / (10 + step))),
    ({"average": "swa"}, lambda step: step / (step + 1))])
@pytest.mark.parametrize("parts", [None, 2])
def test_averages_reach_the_weights_and_the_saved_model(options, momentum, parts, tmp_path):
    model = small_model(bert_tf.AdamWeightDecay(RATE, gradient_accumulation_steps=parts, **options))
    weights = Weights()
    fit(model, callbacks=[weights])
    average = 0.0
    for step, value in enumerate(weights.found[(parts or 1) - 1::parts or 1]):
        kept = momentum(step) if step else 0.0
        average = kept * average + (1 - kept) * value
    assert np.allclose(model.get_weights()[0], average, rtol=1e-5)
    assert not np.allclose(weights.found[-1], average, rtol=1e-3)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert np.array_equal(again.get_weights()[0], model.get_weights()[0])
    for one, other in zip(again.optimizer.variables, model.optimizer.variables, strict=True):
        assert np.array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("parts", [None, 2])
def test_averages_overwrite_the_weights_as_by_keras(parts):
    """Keras's averages count the parts, so its batches are as large as ours together."""
    options = {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2}
    expected, found = (small_model(optimizer) for optimizer in (
        keras.optimizers.AdamW(RATE, weight_decay=0.1, **options),
        bert_tf.AdamWeightDecay(RATE, weight_decay=0.1, clip_norm=0.0, **LIKE_KERAS,
                                gradient_accumulation_steps=parts, **options)))
    fit(expected)
    fit(found, batch_size=4 // (parts or 1))
    assert np.allclose(found.get_weights()[0], expected.get_weights()[0], rtol=1e-5)


def test_weights_stay_where_no_step_was_taken():
    for options in ({"use_ema": True}, {"average": "ema"}):
        model = small_model(bert_tf.AdamWeightDecay(
            RATE, gradient_accumulation_steps=100, **options))
        before = model.get_weights()
        fit(model)
        assert all(map(np.array_equal, before, model.get_weights()))


OPTIONS = [{"use_ema": True, "ema_overwrite_frequency": 2},
           {"gradient_accumulation_steps": 2, "average": "ema", "loss_scale_factor": 64.0,
            "skip_nonfinite": True}]


@pytest.mark.parametrize("options", OPTIONS)
def test_two_devices_take_the_steps_of_one(options, mirrored):
    found = []
    for strategy in (None, mirrored):
        with strategy.scope() if strategy else contextlib.nullcontext():
            model = small_model(bert_tf.AdamWeightDecay(RATE, **options))
        found.append((fit(model).history["loss"], *model.get_weights()))
    for one, other in zip(*found):
        assert np.allclose(one, other, rtol=1e-5)


def learn(batch, strategy, **options):
    """The losses of a classifier's `fit` and `evaluate`, and the change of its weights."""
    config = dataclasses.replace(CONFIG, num_hidden_layers=1)
    keras.utils.set_random_seed(3)
    with strategy.scope() if strategy else contextlib.nullcontext():
        learner = bert_tf.Learner(bert_tf.BertEncoder(config), [
            Classification(config, 2, dropout_rate=0.0, class_weights=[1.0, 3.0])])
        learner.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    before = learner.get_weights()
    arrays = {name: np.asarray(value) for name, value in batch.items()}
    history = learner.fit(arrays, verbose=0, shuffle=False, **options).history
    found = [history["loss"], learner.evaluate(arrays, verbose=0, batch_size=4)]
    return [*found, *(new - old for new, old in zip(learner.get_weights(), before))]


def test_a_learner_takes_the_steps_of_one_device(mirrored):
    """The replicas have other numbers of examples and of weights."""
    batch = make_batch(7)
    batch["label_ids"] = tf.constant([0, 1, 1, 1, 0, 1, 0])
    batch["is_real_example"] = tf.constant([1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    one, two = (learn(batch, strategy, batch_size=4) for strategy in (None, mirrored))
    for alone, together in zip(one, two):
        assert np.allclose(alone, together, rtol=1e-4, atol=1e-6)
