"""A run that has ended leaves no graph, and so no weights, in memory."""

import gc
import weakref

import tensorflow as tf

from bert_tf import Classification, networks
from bert_tf.recipes import find
from bert_tf.training import Learner, Trainer, make_optimizer
from bert_tf.training.distribution import compiled
from tests.training import tiny


def graphs():
    """The traced gradients, measures and answers in memory, but for objects that are frozen."""
    gc.collect()
    return [one.name for one in gc.get_objects() if type(one).__name__ == "FuncGraph"
            and one.name in ("_compute_gradients", "_measure", "_answer")]


def batches(features):
    return tf.distribute.get_strategy().experimental_distribute_dataset(
        tf.data.Dataset.from_tensors(features).repeat())


def test_a_trainer_leaves_nothing():
    gc.freeze()     # so that nobody looks through what other tests made, which takes seconds
    config = tiny.config_of(find("mobilebert"), num_hidden_layers=1)
    learner = Learner(networks.build(config), [Classification(config, 2)])
    trainer = Trainer(learner, make_optimizer("adamw", 1e-3), tf.distribute.get_strategy())
    features = {name: tf.ones([2, 8], tf.int32) for name in learner.encoder.reads}
    dataset = batches({**features, "label_ids": tf.ones([2], tf.int32)})
    iterator = iter(dataset)
    trainer.train(iterator, 1)
    list(trainer.predict(iterator, 1))
    assert graphs()
    kept = weakref.ref(trainer.learner.encoder.weights[0])
    del trainer, learner, iterator, dataset
    assert not graphs() and kept() is None


def test_a_gradient_is_what_it_was():
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda upstream: 3 * upstream * x**2

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cube(x)
        return tape.gradient(y, x)

    x = tf.constant(2.0)
    traced = compiled(slope)
    assert traced(x) == slope(x) == 12 and traced(tf.constant(3.0)) == 27


def test_many_models_of_one_piece_of_code_give_no_warning(caplog):
    for _ in range(8):
        assert compiled(lambda x: x + 1)(tf.constant(1)) == 2
    assert "retracing" not in caplog.text
