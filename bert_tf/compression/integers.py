"""A model whose numbers are rounded, written as integers (checkpoints/quantised.py)."""

import os
from typing import Any

import keras
import numpy as np

from bert_tf.checkpoints import quantised, rules
from bert_tf.checkpoints.quantised import Rounded
from bert_tf.checkpoints.weights import variables
from bert_tf.config.quantisation import FLOAT_BITS, Quantisation
from bert_tf.errors import InputError
from bert_tf.layers.quantisation import QuantisedDense, asymmetric, ranges_of_groups, symmetric
from bert_tf.models.mobilebert.affine import affine
from bert_tf.training.learners.learner import Learner


def round_matrix(matrix: np.ndarray, bits: int, how: Quantisation) -> Rounded:
    """The integers that stand for a matrix [I, O], and its range."""
    matrix = np.asarray(matrix, np.float32)
    if how.scheme == "symmetric":
        spread = np.abs(matrix).max()
        integers, _ = symmetric(matrix, spread, bits)
    elif how.scheme == "affine":
        spread = np.abs(matrix).max()
        integers, *_ = affine(matrix, -spread, spread, bits, is_narrow=True)
    else:
        low, high = map(np.asarray, ranges_of_groups(matrix, how.groups))
        integers, *_ = asymmetric(matrix, low, high, bits)
        spread = np.stack([low, high])
    return Rounded(np.asarray(integers).astype(np.int64), np.asarray(spread), bits)


def write_integers(folder: str, learner: Learner) -> str:
    """Writes `quantised.safetensors` and `bert_config.json`, and returns the path of the first;
    InputError if the network is not rounded."""
    config = learner.encoder.config
    how = config.quantisation
    if not how:
        raise InputError("the model is not quantised; give --quantisation.")
    embeddings = learner.encoder.embeddings
    bits = {id(embeddings.word_embeddings): how.embedding_bits,
            id(embeddings.position_embeddings): how.position_bits,
            **{id(layer.kernel): layer.bits for layer in learner._flatten_layers()
               if isinstance(layer, QuantisedDense)}}
    tensors: dict[str, Any] = {}
    for name, variable in variables(learner).items():
        if "seed_generator" in name:
            continue
        tensors[name] = np.array(variable.numpy())
        own = bits.get(id(variable), FLOAT_BITS)
        if own != FLOAT_BITS and 0 not in variable.shape:   # of a layer without heads
            tensors[name] = round_matrix(tensors[name], own, how)
    config.to_json_file(os.path.join(folder, rules.CONFIG))
    return quantised.write(folder, tensors, [
        keras.saving.serialize_keras_object(objective) for objective in learner.objectives])
