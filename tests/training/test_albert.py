"""ALBERT's training steps against those of google-research/albert."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints
from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.checkpoints.weights import variables
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from tests import original_checkpoint
from tests.goldens import at_hand, part

OPTIMIZERS = {"lamb": "albert_lamb", "adamw": "bert_adamw"}


@pytest.mark.parametrize("case", at_hand("golden/albert/steps_{}.npz", OPTIMIZERS))
def test_steps_are_those_of_the_original(case, test_data, tmp_path):
    golden = dict(np.load(test_data / "golden" / "albert" / f"steps_{case}.npz"))
    settings = json.loads(str(golden["settings"]))
    for name in ("weights", "after_2", "after_4"):
        original_checkpoint.write(tmp_path / name, str(golden["config"]), part(golden, f"{name}/"))
    config = checkpoints.read_config(tmp_path / "weights")
    learner = Learner(BertEncoder(config), [MaskedLM(config), SentencePrediction(config)])
    checkpoints.load(tmp_path / "weights", learner)
    batch = {name: tf.constant(value) for name, value in part(golden, "batch/").items()}
    optimizer = make_optimizer(OPTIMIZERS[case], WarmupLinearDecay(
        settings["learning_rate"], settings["num_train_steps"], settings["num_warmup_steps"],
        power=settings["poly_power"], warmup_start=settings["start_warmup_step"]))
    optimizer.build(learner.trainable_variables)
    optimizer.iterations.assign(settings["first_step"])

    def step():
        with tf.GradientTape() as tape:
            loss = learner.total_loss(learner.measure(batch, training=True))
        optimizer.apply(tape.gradient(loss, learner.trainable_variables),
                        learner.trainable_variables)
        return loss

    losses = []
    for count in range(1, 5):
        losses.append(float(step()))
        if count in (2, 4):
            ours = variables(learner)
            for name, tensor in checkpoints.read(tmp_path / f"after_{count}").tensors.items():
                np.testing.assert_allclose(ours[name], tensor.read(),
                                           rtol=1e-5, atol=1e-5, err_msg=name)
    losses.append(float(learner.total_loss(learner.measure(batch))))
    np.testing.assert_allclose(losses, golden["losses"], rtol=1e-5)
    query = learner.encoder.layers_[0].attention.query
    for variable, name in ((query.kernel, "kernel"), (query.bias, "bias")):
        index = optimizer._get_variable_index(variable)
        for slots, end in ((optimizer._momentums, "adam_m"), (optimizer._velocities, "adam_v")):
            wanted = golden["slots/bert/encoder/transformer/group_0/inner_group_0/attention_1/"
                            f"self/query/{name}/{end}"]
            np.testing.assert_allclose(slots[index], wanted, rtol=1e-4, atol=1e-7)


def test_the_rate_of_albert():
    """optimization.py: poly_power, and a warm-up that begins in the middle."""
    rate = WarmupLinearDecay(1e-3, 100, 10, power=2.0, warmup_start=20)
    for step in (0, 15, 20, 25, 29, 30, 64, 100):
        expected = (1 - step / 100)**2 if step - 20 >= 10 else (step - 20) / 10
        assert float(rate(step)) == pytest.approx(1e-3 * expected, abs=1e-9)
