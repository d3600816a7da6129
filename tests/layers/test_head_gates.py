"""Gates of heads are those of lena-voita/the-story-of-heads (golden/pruning of
$BERT_TF_TEST_DATA)."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import networks, objectives
from bert_tf.compression import dead_heads
from bert_tf.data.batches.pipeline import RecordSet
from bert_tf.errors import InputError
from bert_tf.objectives.head_gates import draw_gates, gates, open_gates
from bert_tf.training import Learner, make_optimizer
from bert_tf.training.learners.gated import GatedLearner, check_gates
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


@pytest.mark.parametrize("temperature, low, high", [(0.33, -0.1, 1.1), (1.5, -0.4, 1.25)])
def test_temperature_and_stretch_are_those_of_the_formula(temperature, low, high):
    """Of arXiv:1712.01312, equations 10 to 12, written out; the chance that a gate is not 0 is
    counted over many draws."""
    rng = np.random.default_rng(0)
    log_a, noise = rng.normal(size=(2, 3)), rng.uniform(0.01, 0.99, (4000, 2, 3))
    s = 1 / (1 + np.exp(-(np.log(noise / (1 - noise)) + log_a) / temperature))
    wanted = np.minimum(1, np.maximum(0, s * (high - low) + low))
    config = tiny.config()
    head = objectives.HeadGates(config, temperature=temperature, stretch=(low, high))
    head.log_a.assign(log_a[:, :2])
    np.testing.assert_allclose(head.gates(noise[0][:, :2].astype("float32")), wanted[0][:, :2],
                               atol=1e-5)
    s = 1 / (1 + np.exp(-log_a[:, :2]))
    np.testing.assert_allclose(head.gates(), np.clip(s * (high - low) + low, 0, 1),
                               rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(head({}, {}), (wanted[..., :2] > 0).mean(0).sum(-1), atol=0.06)
    again = objectives.HeadGates.from_config(head.get_config())
    assert (again.temperature, again.stretch) == (temperature, (low, high))


@pytest.mark.parametrize("stretch", [["-0.1"], ["0.1", "1.1"], ["-0.1", "0.9"]])
def test_a_stretch_that_closes_no_gate(stretch):
    with pytest.raises(InputError, match="--concrete_stretch is"):
        check_gates(tiny.config(), Learner, stretch)


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
    for options in ({"accumulation": 2}, {"strategy": mirrored, "accumulation": 2}):
        for found, expected in zip(train(records, **options), one_device):
            np.testing.assert_allclose(found, expected,
                                       rtol=5e-6, atol=5e-6)      # of steps of 0.05
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
