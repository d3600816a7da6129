"""bert_tf itself."""

import numpy as np
import tensorflow as tf
import worker

import bert_tf
from bert_tf import data, networks, training
from bert_tf.config import EncoderConfig, ModernBertConfig
from bert_tf.recipes import find
from bert_tf.training.settings import POLICIES

_READ = ("input_ids", "input_mask", "segment_ids")


def version():
    """The version that is measured."""
    return bert_tf.__version__


def _config(job):
    if job["model"] == "modernbert":
        return ModernBertConfig(
            vocab_size=job["vocab_size"], hidden_size=job["hidden_size"],
            num_hidden_layers=job["layers"], num_attention_heads=job["hidden_size"] // 64,
            intermediate_size=job["hidden_size"] * 3 // 2)
    return EncoderConfig(
        vocab_size=job["vocab_size"], hidden_size=job["hidden_size"],
        num_hidden_layers=job["layers"], num_attention_heads=job["hidden_size"] // 64,
        intermediate_size=4 * job["hidden_size"], max_position_embeddings=max(512, job["length"]))


def train(job):
    """Steps of pre-training: masked LM, BERT's next sentence, dropout, AdamW, clipped gradients."""
    learner = training.Learner.of_terms(_config(job), find(job["model"]).terms,
                                        POLICIES[job["dtype"]])
    trainer = training.Trainer(learner, training.make_optimizer("adamw", 1e-4),
                               tf.distribute.get_strategy(), job["seed"])
    batches = worker.draw(job, 4)
    feed = iter(tf.data.Dataset.from_tensor_slices(
        {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}).repeat())
    return lambda count: trainer.train(feed, count)


def predict(job):
    """Batches through the encoder and its pooler, without dropout; batches of long texts in parts,
    as `Predictor` takes them."""
    encoder = networks.build(_config(job), dtype=job["dtype"])
    batch = worker.draw(job, 1)[0]
    parts = [{name: tf.constant(batch[name][rows]) for name in _READ}
             for rows in data.sorted_batches(batch["input_mask"].sum(1), job["batch_size"],
                                             training.counted_heads(encoder.config))]
    run = tf.function(lambda features: encoder(features)["pooled_output"], autograph=False)

    def steps(count):
        for _ in range(count):
            for part in parts:
                run(part).numpy()
    return steps


def multiply(job):
    """Products of two large square matrices."""
    matrix = tf.cast(tf.random.normal([job["rows"]] * 2), job["dtype"])
    run = tf.function(lambda a: tf.reduce_sum(a @ a), autograph=False)

    def steps(count):
        for _ in range(count):
            run(matrix).numpy()
    return steps
