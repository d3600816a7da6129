"""The TensorFlow Model Garden (tf-models-official), on Keras 2."""

import itertools
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import importlib.metadata

import tensorflow as tf
import tf_keras
import worker
from official.nlp import optimization
from official.nlp.modeling import layers, models, networks

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def version():
    """The version that is measured."""
    return importlib.metadata.version("tf-models-official")


def _encoder(job):
    tf_keras.mixed_precision.set_global_policy(_POLICIES[job["dtype"]])
    return networks.BertEncoder(
        vocab_size=job["vocab_size"], hidden_size=job["hidden_size"], num_layers=job["layers"],
        num_attention_heads=job["hidden_size"] // 64, intermediate_size=4 * job["hidden_size"],
        max_sequence_length=max(512, job["length"]), dict_outputs=True)


def _inputs(batch):
    return {name: tf.constant(batch[ours]) for name, ours in (
        ("input_word_ids", "input_ids"), ("input_mask", "input_mask"),
        ("input_type_ids", "segment_ids"))}


def train(job):
    """Steps of BertPretrainerV2 with AdamWeightDecay and clipped gradients."""
    model = models.BertPretrainerV2(_encoder(job), classification_heads=[
        layers.ClassificationHead(job["hidden_size"], 2, name="next_sentence")])
    optimizer = optimization.AdamWeightDecay(
        1e-4, weight_decay_rate=0.01, epsilon=1e-6,
        exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"])
    losses = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            outputs = model({**batch["inputs"], "masked_lm_positions": batch["positions"]},
                            training=True)
            loss = losses(batch["ids"], tf.cast(outputs["mlm_logits"], tf.float32),
                          batch["weights"]) + losses(
                              batch["pairs"], tf.cast(outputs["next_sentence"], tf.float32))
        gradients, _ = tf.clip_by_global_norm(
            tape.gradient(loss, model.trainable_variables), 1.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    feed = itertools.cycle([
        {"inputs": _inputs(batch), **{name: tf.constant(batch[ours]) for name, ours in (
            ("positions", "masked_lm_positions"), ("ids", "masked_lm_ids"),
            ("weights", "masked_lm_weights"), ("pairs", "next_sentence_labels"))}}
        for batch in worker.draw(job, 4)])
    return worker.repeated(lambda: step(next(feed)))


def predict(job):
    """Batches through BertEncoder."""
    encoder, inputs = _encoder(job), _inputs(worker.draw(job, 1)[0])
    run = tf.function(lambda batch: encoder(batch, training=False)["pooled_output"])
    return worker.repeated(lambda: run(inputs).numpy())
