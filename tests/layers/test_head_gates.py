"""Gates of heads are those of lena-voita/the-story-of-heads (golden/pruning of
$BERT_TF_TEST_DATA)."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import networks, objectives
from bert_tf.compression import dead_heads
from bert_tf.data.batches.pipeline import RecordSet
from bert_tf.layers.head_gates import draw_gates, gates, open_gates
from bert_tf.training import make_optimizer
from bert_tf.training.learners.gated import GatedLearner
from bert_tf.training.trainer import Trainer
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")


def test_gates_and_gradients_as_in_the_original(test_data):
    golden = np.load(test_data / "golden/pruning/gates_seed1.npz")
    log_a, noise = tf.Variable(golden["log_a"]), golden["noise"]
    np.testing.assert_allclose(gates(log_a), golden["eval/gates"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(draw_gates(log_a, noise, hard=True), golden["hard/gates"])
    with tf.GradientTape(persistent=True) as tape:
        drawn, penalty = draw_gates(log_a, noise), open_gates(log_a)
        task = tf.reduce_sum(drawn[0][:, None, None] * golden["values"] * golden["target"])
        both = task + float(golden["coefficient"]) * tf.reduce_mean(penalty)
    for found, name in ((drawn, "train/gates"), (penalty, "penalty"), (task, "loss/task"),
                        (tape.gradient(penalty, log_a), "grad/penalty"),
                        (tape.gradient(task, log_a)[0], "grad/task"),
                        (tape.gradient(both, log_a)[0], "grad/both")):
        np.testing.assert_allclose(found, golden[name], rtol=1e-5, atol=1e-5, err_msg=name)


def test_gated_learner_leaves_a_plain_model():
    """It answers as the gated one does; a head whose gate is closed gives nothing."""
    config = tiny.config()
    learner = GatedLearner(networks.build(config), [
        objectives.Classification(config, num_labels=2),
        objectives.HeadGates(config, loss_weight=0.5)])
    learner.head_gates.log_a.assign([[3.0, -4.0], [0.2, 0.9]])
    batch = {"input_ids": np.arange(10).reshape(2, 5), "label_ids": np.array([0, 1])}
    plain = learner.parts()["model"]
    np.testing.assert_allclose(plain(batch)["classification"], learner(batch)["classification"],
                               rtol=1e-6, atol=1e-6)
    assert dead_heads(plain.encoder) == [(0, 1)]
    assert not dead_heads(learner.encoder)
    penalty = learner.measure(batch)["head_gates"]["loss"]
    np.testing.assert_allclose(penalty[0] / penalty[1],
                               np.mean(open_gates(learner.head_gates.log_a)))


def train(records, strategy=None, accumulation=1):
    """Two steps without dropout; returns the gates' `log_a`, a kernel, and how far `log_a` went."""
    config = tiny.config(num_hidden_layers=1)
    strategy = strategy or tf.distribute.get_strategy()
    keras.utils.set_random_seed(5)
    with strategy.scope():
        learner = GatedLearner(networks.build(config), [
            objectives.SentencePrediction(config),
            objectives.HeadGates(config, loss_weight=0.5)], rate_factor=2.0)
        optimizer = make_optimizer("adamw", 0.05, **learner.optimizer_options)
    trainer = Trainer(learner, optimizer, strategy, accumulation=accumulation)
    first = learner.head_gates.log_a.numpy()
    trainer.train(iter(trainer.distribute(lambda worker, workers, replicas:
                                          records.training_batches(3, 0, 8, replicas))), 2)
    log_a = learner.head_gates.log_a.numpy()
    return log_a, learner.encoder.layers_[0].attention.value.kernel.numpy(), log_a - first


def test_gates_are_equal_on_all_replicas_and_in_all_parts(tmp_path, mirrored):
    """The penalty counts once for the batch."""
    path = str(tmp_path / "a.tfrecord")
    tiny.write_records(path, 16)
    records = RecordSet.open(path, "input_file")
    one_device = train(records)
    for options in ({"accumulation": 4}, {"strategy": mirrored, "accumulation": 2}):
        for found, expected in zip(train(records, **options), one_device):
            np.testing.assert_allclose(found, expected, atol=5e-6)      # of steps of 0.05
    moved = np.abs(one_device[2]).max()     # by Adam, at twice the rate of 0.05
    assert 0.15 < moved < 0.21


def test_noise_is_of_the_step_alone():
    config = tiny.config()
    learner = GatedLearner(networks.build(config), [objectives.HeadGates(config)])
    first, part, other = (np.asarray(learner.draw(np.array(seed)))
                          for seed in ([128, 2], [255, 2], [128, 3]))
    np.testing.assert_array_equal(first, part)
    assert first.shape == learner.head_gates.log_a.shape
    assert np.abs(first - other).max() > 0
