"""A network, records and a trainer small enough to train in a test."""

import dataclasses

import keras
import numpy as np
import tensorflow as tf

from bert_tf import checkpoints
from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.config import CONFIGS, EncoderConfig, published
from bert_tf.data.records import tfrecord
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training import resume
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import make_optimizer
from bert_tf.training.trainer import Trainer

VOCAB, LENGTH, PREDICTIONS = 50, 16, 3


def config(dropout=0.0, **overrides):
    """Two layers of width 32."""
    return EncoderConfig.preset(
        "tiny", **{"vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 64,
                   "max_position_embeddings": LENGTH, "hidden_dropout_prob": dropout,
                   "attention_probs_dropout_prob": dropout, **overrides})


def config_of(recipe, **overrides):
    """The same for the network of a recipe."""
    plain = config()
    kind = CONFIGS[recipe.sizes.get("model_type", plain.model_type)]
    sizes = {name: getattr(plain, name) for name in (
        "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "intermediate_size", "max_position_embeddings", "hidden_dropout_prob",
        "attention_probs_dropout_prob")}
    known = {field.name for field in dataclasses.fields(kind)} | {
        *getattr(kind, "common_names", ())}
    values = {name: value for name, value in {**sizes, **overrides}.items() if name in known}
    return published("tiny", recipe.sizes, {"tiny": {}}, **values)


def save_encoder(folder, tokens, longest=24):
    """A network of one layer and its vocabulary in a folder; returns the network."""
    folder.mkdir(exist_ok=True)
    network = BertEncoder(config(
        vocab_size=len(tokens), num_hidden_layers=1, max_position_embeddings=longest))
    network.save(folder / "model.keras")
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return network


def write_records(path, count, seed=0, length=LENGTH, predictions=PREDICTIONS, vocab=VOCAB):
    """Records of random tokens, with different numbers of predictions; returns the features."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(length // 2, length + 1, (count, 1))
    used = np.arange(predictions) < rng.integers(1, predictions + 1, (count, 1))
    mask = np.arange(length) < lengths
    features = {
        "input_ids": rng.integers(1, vocab, (count, length)) * mask,
        "input_mask": mask,
        "segment_ids": (np.arange(length) >= length // 2) & mask,
        "masked_lm_positions": np.sort(rng.integers(1, length // 2, (count, predictions))) * used,
        "masked_lm_ids": rng.integers(1, vocab, (count, predictions)) * used,
        "masked_lm_weights": used.astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, (count, 1)),
    }
    write_features(path, features)
    return features


def write_features(path, features):
    with open(path, "wb") as file:
        file.writelines(map(tfrecord.frame, tfrecord.serialize_examples(features)))


def batch(features, rows):
    """Some rows of features as the pipeline gives them."""
    return {name: tf.constant(value[rows], tf.float32 if value.dtype == np.float32 else tf.int32)
            for name, value in features.items()}


def trainer(strategy=None, optimizer="adamw", rate=1e-2, dropout=0.0, dtype=None, layers=1,
            epsilon=None, **options):
    """A Trainer whose weights are the same at every call."""
    sizes = config(dropout, num_hidden_layers=layers)
    strategy = strategy or tf.distribute.get_strategy()
    keras.utils.set_random_seed(5)
    with strategy.scope():
        learner = Learner(BertEncoder(sizes, dtype=dtype),
                          [MaskedLM(sizes, dtype=dtype),
                           SentencePrediction(sizes, dtype=dtype)])
        optimizer = make_optimizer(optimizer, rate, skip_nonfinite=dtype == "mixed_float16",
                                   **({"epsilon": epsilon} if epsilon else {}))
    return Trainer(learner, optimizer, strategy, **options)


def save_checkpoint(folder, a_trainer, extra, keep):
    return resume.write_checkpoint(folder, resume.copy_state(a_trainer), extra, keep)


def weights(a_trainer):
    return {v.path: v.numpy() for v in a_trainer.learner.trainable_variables}


def weights_at(path):
    """The tensors of a checkpoint of any format, by our names."""
    return {name: tensor.read() for name, tensor in checkpoints.read(path).tensors.items()}


def largest_difference(one, other):
    """Of two dicts of arrays."""
    return max(np.abs(one[name] - other[name]).max() for name in one)
