"""Adafactor and its rates take the steps of tensorflow/mesh."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.weights import variables
from bert_tf.models.t5.network import T5
from bert_tf.models.t5.objective import SequenceLM
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers import Adafactor
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from tests.goldens import at_hand
from tests.networks.test_t5 import batch_of
from tests.original_t5 import config_of, our_weights

pytestmark = pytest.mark.usefixtures("eagerly")
RSQRT = WarmupLinearDecay(0.01, 2**19, 10_000, "rsqrt")
# The original's options, by ours.
OPTIONS = {"default": {}, "beta1_nofactor": {"momentum": 0.9, "factored": False},
           "factor16": {"min_dim_size_to_factor": 16},
           "absolute_lr": {"min_dim_size_to_factor": 16, "clipping_threshold": 0.0,
                           "multiply_by_parameter_scale": False}}


@pytest.fixture(name="folder", scope="module")
def fixture_folder(test_data):
    return test_data / "golden" / "t5"


@pytest.mark.parametrize("case", at_hand("golden/t5/adafactor_{}_seed1.npz", OPTIONS))
def test_steps_are_the_originals(case, folder):
    golden = np.load(folder / f"adafactor_{case}_seed1.npz")
    names = [name[8:] for name in golden.files if name.startswith("initial/")]
    weights = [keras.Variable(golden[f"initial/{name}"], name=name) for name in names]
    # The original's own rate is 0.05 of 0.01 in its first steps where it is not that of weights.
    optimizer = Adafactor(0.0005 if case == "absolute_lr" else RSQRT, **OPTIONS[case])
    optimizer.build(weights)
    for step in range(3):
        grads = [tf.constant(golden[f"step{step}/grad/{name}"], tf.float32) for name in names]
        optimizer.apply(grads, weights)
        for name, weight in zip(names, weights):
            if f"step{step}/after/{name}" in golden.files:
                wanted = golden[f"step{step}/after/{name}"]
                moved = np.abs(wanted - golden[f"initial/{name}"]).max()
                off = np.abs(weight.numpy() - wanted).max()
                assert off <= 1e-4 * moved + 1e-9, (name, step)
    slots = {variable.name: variable.numpy() for variable in optimizer.variables}
    wanted = {name[5:]: golden[name] for name in golden.files if name.startswith("slot/")}
    assert wanted.keys() == {name for name in slots if "_slot_" in name}
    for name, value in wanted.items():
        assert np.allclose(slots[name], value, rtol=1e-4, atol=1e-12), name
    again = Adafactor.from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()


def test_a_network_learns_as_the_originals(folder):
    golden = np.load(folder / "t5_v1_1_seed1.npz")
    config = config_of(json.loads(str(golden["config"])))
    learner = Learner(T5(config), [SequenceLM(config)])
    named, learner.epsilon = variables(learner), 0.0
    for name, value in our_weights(golden).items():
        named[name].assign(value)
    optimizer = make_optimizer("adafactor", RSQRT, min_dim_size_to_factor=16)
    optimizer.build(learner.trainable_variables)
    for step in range(3):
        with tf.GradientTape() as tape:
            loss = learner.total_loss(learner.measure(batch_of(golden), True, tf.constant([1, 2])))
        grads = tape.gradient(loss, [v.value for v in learner.trainable_variables])
        optimizer.apply(grads, learner.trainable_variables)
        wanted = our_weights(golden, f"adafactor_step{step}/")
        for name, value in wanted.items():
            # The first steps are signs of gradients: some near 0 flip.
            assert np.abs(named[name].numpy() - value).max() < 5e-4, (step, name)


def test_rates_are_the_originals(folder):
    golden = json.loads((folder / "learning_rates.json").read_text())
    total = golden["total_train_steps"]
    rates = {"rsqrt_no_ramp_down": RSQRT,
             "noam_default": WarmupLinearDecay(0.01, total, 10_000, "noam"),
             "truncated_rsqrt_100": WarmupLinearDecay(0.1, total, 100, "rsqrt"),
             "slanted_triangular": WarmupLinearDecay(0.01, total, total // 10,
                                                     "slanted_triangular")}
    for name, rate in rates.items():
        found = [float(rate(step)) for step in golden["steps"]]
        steps, wanted = np.array(golden["steps"]), np.array(golden["rates"][name])
        if name == "noam_default":      # below 0 after the last step
            wanted = np.maximum(wanted, 0.0)
        if name == "slanted_triangular":        # ours ends at 1/32; the original passes it by
            assert total % 10
            wanted[steps >= total] = 0.01 / 32
        assert np.allclose(found, wanted, rtol=1e-6, atol=1e-9), name


@pytest.mark.parametrize("total, warmup", [
    (100, 5), (100, 50), (100, 10), (103, 10), (289, 28), (11, 1), (19, 1), (9, 0), (100, 0),
    (5, 5)])
def test_the_slanted_triangle_ends_with_the_run(total, warmup):
    def published(step):        # arXiv:1801.06146, section 3.2, where cut_frac is warmup / total
        part = (step / warmup if step < warmup else
                1 - (step - warmup) / (warmup * (total / warmup - 1) if warmup else total))
        return (1 + 31 * part) / 32

    rate = WarmupLinearDecay(1.0, total, warmup, "slanted_triangular")
    steps = range(total)
    assert np.allclose([float(rate(step)) for step in steps], [*map(published, steps)], atol=1e-6)
    assert float(rate(2 * total)) == float(rate(total)) >= 1 / 32 - 1e-6
