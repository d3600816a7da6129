"""bert_tf on JAX, which needs no TensorFlow."""

import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"       # the other system needs room

import itertools

import jax
import keras
import numpy as np

import bert_tf
from benchmarks.peers.bert_tf_system import config_of, draw
from bert_tf.recipes import find
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.settings import POLICIES


def version():
    """The versions that are measured."""
    return f"{bert_tf.__version__}, jax {jax.__version__}"


def train(job):
    """Steps of pre-training: the recipe's objectives, dropout, clipped gradients."""
    keras.utils.set_random_seed(job["seed"])
    learner = Learner.of_terms(config_of(job), find(job["model"]).terms, POLICIES[job["dtype"]])
    optimizer = make_optimizer(job["optimizer"], 1e-4)
    optimizer.build(learner.trainable_variables)
    trained, fixed = learner.trainable_variables, learner.non_trainable_variables

    def loss_of(weights, others, batch, seed):
        with keras.StatelessScope(state_mapping=[*zip(trained, weights), *zip(fixed, others)]):
            return learner.total_loss(learner.measure(batch, training=True, dropout_seed=seed))

    def step(weights, moments, others, batch, seed):
        gradients = jax.grad(loss_of)(weights, others, batch, seed)
        return *optimizer.stateless_apply(moments, gradients, weights), others

    compiled = jax.jit(step, donate_argnums=(0, 1))
    state = [[variable.value for variable in variables]
             for variables in (trained, optimizer.variables, fixed)]
    feed = enumerate(itertools.cycle(draw(job)))

    def steps(count):
        nonlocal state
        for number, batch in itertools.islice(feed, count):
            state = compiled(*state, batch, np.array([job["seed"], number], np.uint32))
        jax.block_until_ready(state)
    return steps


def multiply(job):
    """Products of two large square matrices."""
    matrix = jax.random.normal(jax.random.key(1), (job["rows"],) * 2).astype(job["dtype"])
    run = jax.jit(lambda a: a @ a)

    def steps(count):
        for _ in range(count):
            product = run(matrix)
        product.block_until_ready()
    return steps
