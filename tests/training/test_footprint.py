"""The memory of a step: tensors counted by hand, and the count of TensorFlow's own allocator."""

import re

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.peers import worker
from bert_tf import training
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.recipes import find
from bert_tf.training import footprint

SIZE = 4 * 64 * 64


def graph_of(function, *shapes):
    return tf.function(function, autograph=False).get_concrete_function(
        *[tf.TensorSpec(shape) for shape in shapes]).graph


@pytest.mark.parametrize("function, tensors", [
    (lambda x: tf.exp(x @ x), 1),                           # in place
    (lambda x: tf.transpose(x @ x), 2),
    (lambda x: tf.reshape(x @ x, [-1]) + 1.0, 1),
    (lambda x: (x @ x) @ (x @ x + 1.0), 3),
    (lambda x: tf.exp(x @ x) @ tf.function(lambda y: tf.transpose(y @ y))(x), 3),
])
def test_tensors_are_counted_while_they_are_read(function, tensors):
    assert footprint.peak(graph_of(function, (64, 64))) == tensors * SIZE


def test_what_nothing_reads_is_not_counted():
    def function(x):
        tf.transpose(x @ x)
        return x @ x
    assert footprint.peak(graph_of(function, (64, 64))) == SIZE


def make_trainer(layers=3, vocab_size=3000, **options):
    config = EncoderConfig(vocab_size=vocab_size, hidden_size=128, num_hidden_layers=layers,
                           num_attention_heads=2, intermediate_size=512)
    learner = training.Learner.of_terms(config, find("bert").terms)
    return training.Trainer(learner, training.make_optimizer("adamw", 1e-4),
                            tf.distribute.get_strategy(), **options)


def batch_of(rows):
    return worker.draw({"batch_size": rows, "length": 128, "vocab_size": 3000, "seed": 1}, 1)[0]


def shapes_of(rows):
    return {name: tf.TensorSpec(values.shape, values.dtype)
            for name, values in batch_of(rows).items()}


def test_a_gradient_takes_what_the_allocator_counts():
    try:
        tf.config.experimental.reset_memory_stats("CPU:0")
    except (ValueError, tf.errors.OpError):
        pytest.skip("this TensorFlow does not count the memory of a CPU")
    trainer = make_trainer()
    arguments = ({name: tf.constant(values) for name, values in batch_of(48).items()},
                 tf.constant(0, tf.int64), tf.constant([1, 2]),
                 {objective.name: tf.constant(48.0) for objective in trainer.learner.objectives},
                 tf.constant(1.0))
    counted = []
    for _ in range(3):
        tf.config.experimental.reset_memory_stats("CPU:0")
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
        found = trainer.replica.gradients(*arguments)
        np.sum(found[0])
        del found
        counted.append(tf.config.experimental.get_memory_info("CPU:0")["peak"] - before)
    estimated = footprint.peak(trainer.replica.trace(shapes_of(48)))
    assert 0.8 < estimated / min(counted) < 1.25, (estimated, counted)


def test_parts_of_a_batch_take_less():
    whole, parts = (footprint.peak(make_trainer(accumulation=count).replica.trace(shapes_of(16)))
                    for count in (1, 4))
    assert 3.5 < whole / parts < 4.5


def test_a_batch_that_does_not_fit_is_refused(monkeypatch, capsys):
    trainer, shapes = make_trainer(1), shapes_of(256)
    estimate, estimates = footprint.estimate, []

    def recorded(*arguments):       # the process's own memory differs from call to call
        estimates.append(estimate(*arguments))
        return estimates[-1]
    monkeypatch.setattr(footprint, "estimate", recorded)
    footprint.check(trainer, shapes, 256)
    needed, = estimates
    said = re.fullmatch(r"memory: training needs about ([\d.]+) GB; this machine has [\d.]+ GB\n",
                        capsys.readouterr().out)[1]
    assert said == f"{needed / 1e9:.1f}"
    room = needed - 0.6 * footprint.peak(trainer.replica.trace(shapes))
    monkeypatch.setattr(footprint, "machine_memory", lambda: room)
    with pytest.raises(InputError, match="--train_batch_size=256 takes about") as error:
        footprint.check(trainer, shapes, 256)
    fitting = int(re.search(r"that fits is about (\d+)", str(error.value))[1])
    assert 64 < fitting < 160
    assert estimate(trainer, shapes_of(fitting)) == pytest.approx(room, rel=0.05)
    monkeypatch.setattr(footprint, "machine_memory", lambda: 1e6)
    with pytest.raises(InputError, match="no batch of these records fits"):
        footprint.check(trainer, shapes, 256)


def test_weights_that_do_not_fit_leave_no_room_for_a_batch(monkeypatch):
    """Half of so small a batch saves less than its tracing takes."""
    trainer, rows = make_trainer(6, 30_000), 2
    shapes = {name: tf.TensorSpec([rows, min(spec.shape[1], 8)], spec.dtype)
              for name, spec in shapes_of(rows).items()}
    monkeypatch.setattr(footprint, "_SMALL", 0)
    monkeypatch.setattr(footprint, "machine_memory", lambda: 1e8)
    with pytest.raises(InputError, match="no batch of these records fits"):
        footprint.check(trainer, shapes, rows)


def test_a_step_that_cannot_be_planned_is_refused(monkeypatch):
    def estimate(trainer, features):
        raise ValueError("Dimension size must be non-negative but is -1794605056")
    monkeypatch.setattr(footprint, "estimate", estimate)
    with pytest.raises(InputError, match="--train_batch_size=256: TensorFlow can't plan such a st"):
        footprint.check(make_trainer(1), shapes_of(256), 256)


def test_nothing_is_said_of_small_networks(capsys):
    footprint.check(make_trainer(1), shapes_of(2), 2)
    assert capsys.readouterr().out == ""


def test_a_large_vocabulary_makes_no_small_network(capsys):
    footprint.check(make_trainer(1, 60_000), shapes_of(16), 16)
    assert "memory: training needs about" in capsys.readouterr().out
