"""Pre-trains models from both kinds of first weights, all seeds at once, on JAX.

    PYTHON first_weights_on_jax.py JOB

The program that bert-benchmark first-weights-gpu starts, without TensorFlow. JOB is a JSON object.
All models take each step together, as one computation. The program writes a line of JSON for each
point: its step, the seconds since the program began to train, and each measure on held-out records,
such as "masked_lm_accuracy", a list in the order of `job["rows"]`.

Shapes: M models, B batch, T steps.
"""

import json
import os
import sys
import time

import bert_tf_jax_system as system
import jax
import keras
import numpy as np
from jax import numpy as jnp

from bert_tf import recipes
from bert_tf.config import config_from_dict
from bert_tf.data.records import tfrecord
from bert_tf.files import read_json
from bert_tf.networks.first_weights import give_learner
from bert_tf.training import learners
from bert_tf.training.optimizers import WarmupLinearDecay, make_optimizer
from bert_tf.training.settings import POLICIES


def read(path):
    """The features of a file of records with masks, int32 or float32 [N, length], by name."""
    examples = [tfrecord.parse_example(message) for message in tfrecord.read_records(path)]
    found = {name: np.stack([example[name] for example in examples]) for name in examples[0]}
    return {name: values.astype(np.int32) if values.dtype == np.int64 else values
            for name, values in found.items()}


def make_states(recipe, config, job):
    """Returns a learner, its step, and the first states of all models, with M in front."""
    states = []
    for first_weights, seed in job["rows"]:
        keras.utils.set_random_seed(seed)
        terms = [term for term in recipe.terms if not (term.optional or term.by_name)]
        learner = getattr(learners, recipe.learner).of_terms(config, terms, POLICIES[job["dtype"]])
        if first_weights == "neighbours":
            give_learner(learner, seed)
        steps = job["num_train_steps"]
        step, state = system.make_step(learner, make_optimizer("adamw", WarmupLinearDecay(
            job["learning_rate"], steps, steps // 10)))
        states.append(jax.tree.map(np.asarray, state))
    return learner, step, jax.tree.map(lambda *values: jnp.stack(values), *states)


def main(job, answers):
    """Trains and evaluates; writes to the file `answers`."""
    records, held_out = read(job["input_file"]), read(job["eval_file"])
    manifest = read_json(job["manifest"])
    recipe = recipes.find(manifest["recipe"]["name"])
    size = job["hidden_size"]
    config = config_from_dict({
        **recipe.sizes, "vocab_size": manifest["vocabulary"]["size"], "hidden_size": size,
        "num_hidden_layers": job["num_hidden_layers"], "num_attention_heads": size // 64,
        "intermediate_size": 4 * size, "max_position_embeddings": 512,
        "hidden_dropout_prob": job["dropout"], "attention_probs_dropout_prob": job["dropout"]})
    learner, step, states = make_states(recipe, config, job)
    trained, fixed = learner.trainable_variables, learner.non_trainable_variables

    @jax.jit
    def train(states, records, places, seeds):
        """Takes steps: places int [T, M, B] of records, seeds uint32 [T, M, 2]."""
        def one(states, given):
            batch = {name: values[given[0]] for name, values in records.items()}
            return jax.vmap(step)(states, batch, given[1])
        return jax.lax.scan(one, states, (places, seeds))[0]

    def measure(weights, others, batch):
        with keras.StatelessScope(state_mapping=[*zip(trained, weights), *zip(fixed, others)]):
            found = learner.measure(batch)
        return {f"{objective}_{kind}": jnp.stack(jnp.broadcast_arrays(*pair))
                for objective, kinds in found.items() for kind, pair in kinds.items()
                if jnp.ndim(pair[0]) == 0}

    @jax.jit
    def evaluate(states, batches):
        """Sums over batches and their divisors, [M, 2], by the measure's name."""
        def one(batch):
            return jax.vmap(measure, (0, 0, None))(states[0], states[2], batch)
        return jax.tree.map(lambda sums: jnp.sum(sums, 0), jax.lax.map(one, batches))

    # The last records, which fill no batch, are left out.
    size = min(32, len(held_out["input_ids"]))
    count = len(held_out["input_ids"]) // size
    batches = {name: jnp.asarray(values[:count * size].reshape(count, size, *values.shape[1:]))
               for name, values in held_out.items()}
    records = jax.tree.map(jnp.asarray, records)
    total, every = job["num_train_steps"], job["num_train_steps"] // job["points"]
    places = np.stack([_places(seed, len(records["input_ids"]), total, job["train_batch_size"])
                       for _, seed in job["rows"]], 1)
    began = time.perf_counter()
    for start in range(0, total, every):
        numbers = np.arange(start, start + every, dtype=np.uint32)
        seeds = np.stack([np.stack([np.full_like(numbers, seed), numbers], 1)
                          for _, seed in job["rows"]], 1)
        states = train(states, records, places[start:start + every], seeds)
        found = {name: np.divide(sums[:, 0], np.maximum(sums[:, 1], 1e-6)).tolist()
                 for name, sums in evaluate(states, batches).items()}
        print(json.dumps({"step": start + every, "seconds": time.perf_counter() - began, **found}),
              file=answers, flush=True)


def _places(seed, count, steps, batch_size):
    """The records of each step, [T, B]: all in random order, again and again."""
    rng = np.random.default_rng([seed, 1])
    rounds = -(-steps * batch_size // count)
    order = np.concatenate([rng.permutation(count) for _ in range(rounds)])
    return order[:steps * batch_size].reshape(steps, batch_size).astype(np.int32)


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")     # libraries may print
    os.dup2(2, 1)
    main(json.loads(sys.argv[1]), answers)
