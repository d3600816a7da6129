"""What a network carries from step to step: the same on any devices, and after a restart."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from bert_tf.bert.objective import MaskedLM
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training import resume
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import make_optimizer
from bert_tf.training.trainer import Trainer
from tests.training import tiny

BATCH, WIDTH = 8, 32


class Recurrent(BertEncoder):
    """An encoder that adds what it carries to its output, and carries its first position on."""

    carries = {"sum": (WIDTH,)}

    def call(self, inputs, **options):
        outputs = super().call(inputs, **options)
        if "carried" in inputs:
            before = inputs["carried"]["sum"]
            outputs["carried"] = {"sum": ops.stop_gradient(
                0.5 * before + outputs["sequence_output"][:, 0])}
            outputs["sequence_output"] += before[:, None]
        return outputs


class InOrder(MaskedLM):
    in_order = True


def make_trainer(strategy=None, batch_size=BATCH, objective=InOrder, **options):
    strategy = strategy or tf.distribute.get_strategy()
    keras.utils.set_random_seed(5)
    sizes = tiny.config(num_hidden_layers=1)
    with strategy.scope():
        learner = Learner(Recurrent(sizes), [objective(sizes)])
        optimizer = make_optimizer("adamw", 1e-2)
    return Trainer(learner, optimizer, strategy, batch_size=batch_size, **options)


def train(trainer, records, steps, taken=0):
    trainer.train(iter(trainer.distribute(lambda worker, workers, replicas:
                                          records.training_batches(
                                              3, taken, BATCH, replicas, worker, workers))), steps)


def test_devices_and_parts_carry_the_same_rows(eagerly, records, mirrored):
    one, two = make_trainer(), make_trainer(mirrored, accumulation=2)
    for trainer in (one, two):
        train(trainer, records, 2)
    expected = one.state.tensors()["sum"]
    assert expected.shape == (BATCH, WIDTH) and np.abs(expected).min(1).max() > 0
    assert np.abs(two.state.tensors()["sum"] - expected).max() < 1e-5
    assert tiny.largest_difference(tiny.weights(one), tiny.weights(two)) < 1e-6
    with_none = make_trainer(objective=MaskedLM)
    train(with_none, records, 2)
    assert with_none.state is None
    assert tiny.largest_difference(tiny.weights(one), tiny.weights(with_none)) > 1e-4


def test_a_run_goes_on_with_what_it_carried(eagerly, records, tmp_path, mirrored, capsys):
    whole = make_trainer()
    train(whole, records, 2)
    path = tiny.save_checkpoint(tmp_path, whole, {}, 1)
    train(whole, records, 2, 2 * BATCH)
    again, on_two = make_trainer(), make_trainer(mirrored)
    resume.restore(path, again)
    resume.restore(path, on_two)
    assert np.array_equal(again.state.tensors()["sum"], on_two.state.tensors()["sum"])
    train(again, records, 2, 2 * BATCH)
    assert np.array_equal(again.state.tensors()["sum"], whole.state.tensors()["sum"])
    assert not tiny.largest_difference(tiny.weights(again), tiny.weights(whole))
    other = make_trainer(batch_size=2 * BATCH)
    resume.restore(path, other)
    assert not other.state.tensors()["sum"].any()
    assert "sum starts at zero" in capsys.readouterr().out


def test_an_evaluation_begins_with_zeros_of_its_own(eagerly, records, mirrored):
    trainer, two = make_trainer(), make_trainer(mirrored)
    train(trainer, records, 1)
    train(two, records, 1)
    before = trainer.state.tensors()["sum"]
    found = [t.evaluate(t.distribute(
        lambda worker, workers, replicas: records.evaluation_batches(BATCH, 0, replicas)))
        for t in (trainer, trainer, two)]
    assert found[0] == found[1] == pytest.approx(found[2], rel=1e-4)
    assert np.array_equal(trainer.state.tensors()["sum"], before)
    state, total, count = np.zeros((BATCH, WIDTH), np.float32), 0.0, 0.0
    for batch in records.evaluation_batches(BATCH, 0, 1):
        logits = trainer.learner({**batch, "carried": {"sum": tf.constant(state)}})
        loss = trainer.learner.measure_logits(logits, batch)["masked_lm"]["loss"]
        state, total, count = logits["carried"]["sum"], total + loss[0], count + loss[1]
    assert found[0]["masked_lm/loss"] == pytest.approx(float(total / count), rel=1e-5)
