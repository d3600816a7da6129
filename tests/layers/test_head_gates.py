"""Gates of heads are those of lena-voita/the-story-of-heads (golden/pruning of
$BERT_TF_TEST_DATA)."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import networks, objectives
from bert_tf.compression import dead_heads
from bert_tf.layers.head_gates import draw_gates, gates, open_gates
from bert_tf.training.gated import GatedLearner
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")


def test_gates_and_gradients_as_in_the_original(test_data):
    golden = np.load(test_data / "golden/pruning/gates_seed1.npz")
    log_a, noise = tf.Variable(golden["log_a"]), golden["noise"]
    np.testing.assert_allclose(gates(log_a), golden["eval/gates"], atol=1e-6)
    np.testing.assert_allclose(draw_gates(log_a, noise, hard=True), golden["hard/gates"])
    with tf.GradientTape(persistent=True) as tape:
        drawn, penalty = draw_gates(log_a, noise), open_gates(log_a)
        task = tf.reduce_sum(drawn[0][:, None, None] * golden["values"] * golden["target"])
        both = task + float(golden["coefficient"]) * tf.reduce_mean(penalty)
    for found, name in ((drawn, "train/gates"), (penalty, "penalty"), (task, "loss/task"),
                        (tape.gradient(penalty, log_a), "grad/penalty"),
                        (tape.gradient(task, log_a)[0], "grad/task"),
                        (tape.gradient(both, log_a)[0], "grad/both")):
        np.testing.assert_allclose(found, golden[name], atol=1e-5, err_msg=name)


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
                               atol=1e-6)
    assert dead_heads(plain.encoder) == [(0, 1)]
    assert not dead_heads(learner.encoder)
    seeds = [np.array([1, seed]) for seed in (2, 2, 3)]
    first, again, other = (learner(batch, training=True, dropout_seed=seed)["classification"]
                           for seed in seeds)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0
    penalty = learner.measure(batch)["head_gates"]["loss"]
    np.testing.assert_allclose(penalty[0], np.mean(open_gates(learner.head_gates.log_a)))
    assert float(penalty[1]) == 1
