"""keras-hub, on TensorFlow. It has no next sentence prediction, which it leaves out."""

import itertools
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import keras_hub
import tensorflow as tf
import worker

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def version():
    """The versions that are measured."""
    return f"{keras_hub.__version__}, keras {keras.__version__}"


def _backbone(job):
    return keras_hub.models.BertBackbone(
        vocabulary_size=job["vocab_size"], num_layers=job["layers"],
        num_heads=job["hidden_size"] // 64, hidden_dim=job["hidden_size"],
        intermediate_dim=4 * job["hidden_size"], max_sequence_length=max(512, job["length"]),
        dtype=_POLICIES[job["dtype"]])


def _inputs(batch):
    return {name: tf.constant(batch[ours]) for name, ours in (
        ("token_ids", "input_ids"), ("padding_mask", "input_mask"),
        ("segment_ids", "segment_ids"))}


def train(job):
    """Steps of BertMaskedLM with AdamW and clipped gradients."""
    model = keras_hub.models.BertMaskedLM(_backbone(job), preprocessor=None)
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile=False)
    feed = itertools.cycle([
        ({**_inputs(batch), "mask_positions": tf.constant(batch["masked_lm_positions"])},
         tf.constant(batch["masked_lm_ids"]), tf.constant(batch["masked_lm_weights"]))
        for batch in worker.draw(job, 4)])
    return worker.repeated(lambda: model.train_on_batch(*next(feed)))


def predict(job):
    """Batches through BertBackbone."""
    backbone, inputs = _backbone(job), _inputs(worker.draw(job, 1)[0])
    run = tf.function(lambda batch: backbone(batch, training=False)["pooled_output"])
    return worker.repeated(lambda: run(inputs).numpy())
