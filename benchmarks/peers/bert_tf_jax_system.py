"""bert_tf on JAX: the networks, objectives and optimizer of a pre-training run, without TensorFlow.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")     # the other system needs room

import itertools

import jax
import keras
import numpy as np
import worker

import bert_tf
from bert_tf.config import EncoderConfig
from bert_tf.data.batches.row_layout import packed_features, packed_shape
from bert_tf.recipes import find
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.settings import POLICIES


def version():
    """The versions that are measured."""
    return f"{bert_tf.__version__}, jax {jax.__version__}"


def peak():
    """Bytes of the device's memory that were in use at most; None where JAX does not count."""
    return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")


def make_step(learner, optimizer):
    """Returns a function that takes a step, and the state before the first one.

    The function takes the state, a batch and the dropout seed, uint32 [2], and returns the new
    state and the loss.
    """
    optimizer.build(learner.trainable_variables)
    trained, fixed = learner.trainable_variables, learner.non_trainable_variables

    def loss_of(weights, others, batch, seed):
        with keras.StatelessScope(state_mapping=[*zip(trained, weights), *zip(fixed, others)]):
            return learner.total_loss(learner.measure(batch, training=True, dropout_seed=seed))

    def step(state, batch, seed):
        weights, moments, others = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, others, batch, seed)
        weights, moments = optimizer.stateless_apply(moments, gradients, weights)
        return (weights, moments, others), loss

    return jax.jit(step, donate_argnums=0), tuple(
        [variable.value for variable in variables]
        for variables in (trained, optimizer.variables, fixed))


def _packed(batches):
    """The batches with the features of packing, in as many rows as the fullest needs."""
    slots = [batch["masked_lm_weights"] > 0 for batch in batches]
    shape = np.max([packed_shape(batch["input_mask"], mask, 1)
                    for batch, mask in zip(batches, slots)], 0)
    names = ("packed_from", "packed_at", "predictions")
    return [{**batch, **dict(zip(names, packed_features(batch["input_mask"], mask, shape, 1)))}
            for batch, mask in zip(batches, slots)]


def train(job):
    """Steps of pre-training: masked LM, next sentence, dropout, AdamW, clipped gradients. Records
    share rows where the job has padding."""
    config = EncoderConfig(
        vocab_size=job["vocab_size"], hidden_size=job["hidden_size"],
        num_hidden_layers=job["layers"], num_attention_heads=job["hidden_size"] // 64,
        intermediate_size=4 * job["hidden_size"], max_position_embeddings=max(512, job["length"]))
    keras.utils.set_random_seed(job["seed"])
    learner = Learner.of_terms(config, find("bert").terms, POLICIES[job["dtype"]])
    step, state = make_step(learner, make_optimizer("adamw", 1e-4))
    batches = worker.draw(job, 4)
    feed = enumerate(itertools.cycle(_packed(batches) if job.get("padding") else batches))

    def steps(count):
        nonlocal state
        for number, batch in itertools.islice(feed, count):
            state, loss = step(state, batch, np.array([job["seed"], number], np.uint32))
        jax.block_until_ready((state, loss))
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
