"""bert_tf itself."""

import lazy_loader
import numpy as np
import worker

import bert_tf
from bert_tf import data, networks, training
from bert_tf.config import EncoderConfig, ModernBertConfig
from bert_tf.data.batches.row_layout import packed_features, packed_shape
from bert_tf.recipes import find
from bert_tf.training.settings import POLICIES

tf = lazy_loader.load("tensorflow")     # bert_tf_jax_system needs none
_READ = ("input_ids", "input_mask", "segment_ids")


def version():
    """The version that is measured."""
    return bert_tf.__version__


def config_of(job):
    """The configuration of a job's network."""
    kind = ModernBertConfig if job["model"] == "modernbert" else EncoderConfig
    return kind(**worker.sizes(job))


def draw(job):
    """Four batches. Those with padding have the features of packing, in as many rows as the fullest
    needs."""
    batches = worker.draw(job, 4)
    if not job["padding"]:
        return batches
    slots = [batch["masked_lm_weights"] > 0 for batch in batches]
    shape = np.max([packed_shape(batch["input_mask"], used, 1)
                    for batch, used in zip(batches, slots)], 0)
    names = ("packed_from", "packed_at", "predictions")
    return [{**batch, **dict(zip(names, packed_features(batch["input_mask"], used, shape, 1)))}
            for batch, used in zip(batches, slots)]


def train(job):
    """Steps of pre-training: masked LM, BERT's next sentence, dropout, AdamW, clipped gradients."""
    learner = training.Learner.of_terms(config_of(job), find(job["model"]).terms,
                                        POLICIES[job["dtype"]])
    trainer = training.Trainer(learner, training.make_optimizer(job["optimizer"], 1e-4),
                               tf.distribute.get_strategy(), job["seed"])
    batches = draw(job)
    feed = iter(tf.data.Dataset.from_tensor_slices(
        {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}).repeat())
    return lambda count: trainer.train(feed, count)


def predict(job):
    """Batches through the encoder and its pooler, without dropout; batches of long texts in parts,
    as `Predictor` takes them."""
    encoder = networks.build(config_of(job), dtype=job["dtype"])
    batch = worker.draw(job, 1)[0]
    parts = [{name: tf.constant(batch[name][rows]) for name in _READ}
             for rows in data.sorted_batches(batch["input_mask"].sum(1), job["batch_size"],
                                             training.counted_heads(encoder.config))]
    run = tf.function(lambda features: encoder(features)["pooled_output"], autograph=False)
    return worker.repeated(lambda: [run(part).numpy() for part in parts])


def multiply(job):
    """Products of two large square matrices."""
    matrix = tf.cast(tf.random.normal([job["rows"]] * 2), job["dtype"])
    run = tf.function(lambda a: tf.reduce_sum(a @ a), autograph=False)
    return worker.repeated(lambda: run(matrix).numpy())
