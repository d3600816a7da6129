"""Shorter tables, and other types of numbers."""

import dataclasses

import numpy as np

from bert_tf.checkpoints.weights import FLOATS
from bert_tf.errors import InputError

# Our names of the tensors that have a row for each word or position, by the key of their size.
TABLES = {"vocab_size": ("embeddings/word_embeddings", "masked_lm/output_bias",
                         "masked_lm/output_weights"),
          "max_position_embeddings": ("embeddings/position_embeddings",)}


def adopt(config, source, changes):
    """`config` with the sizes that the tables of a `Source` have, where these are to be cut."""
    theirs = {rule.ours: rule.theirs for rule in source.table.rules(config)}
    sizes = {}
    for key, (table, *_) in TABLES.items():
        tensor = source.tensors.get(theirs[table])
        if getattr(changes, key) and tensor and tensor.shape:
            sizes[key] = tensor.shape[0]
    return dataclasses.replace(config, **sizes)


def _first(tensor, rows):
    return dataclasses.replace(tensor, shape=(rows, *tensor.shape[1:]),
                               read=lambda: tensor.read()[:rows])


def cut(weights, changes):
    """The `Weights` with as few words and positions as asked for, and sentences on that.

    Raises:
        InputError: there are not so many.
    """
    notes = []
    for key, tables in TABLES.items():
        asked, held = getattr(changes, key), getattr(weights.config, key)
        if not asked or asked == held:
            continue
        if not 0 < asked < held:
            raise InputError(f"--{key}={asked}: {weights.source} has {held} rows, which can be "
                             "cut but not made more, as nothing has trained them.")
        tensors = {name: _first(tensor, asked) if name in tables else tensor
                   for name, tensor in weights.tensors.items()}
        weights = dataclasses.replace(weights, tensors=tensors, config=dataclasses.replace(
            weights.config, **{key: asked}))
        notes.append(f"{key}: the first {asked} of {held} rows.")
    return weights, notes


def round_to(weights, changes):
    """The `Weights` in the type that is asked for, and a sentence on that.

    Raises:
        InputError: there is no such type.
    """
    if not changes.dtype:
        return weights, []
    if changes.dtype not in FLOATS:
        raise InputError(f"--dtype must be one of {', '.join(FLOATS)}, not {changes.dtype}.")

    def rounded(tensor):
        return dataclasses.replace(tensor, dtype=changes.dtype, read=lambda: np.asarray(
            tensor.read()).astype(changes.dtype))

    others = sum(tensor.dtype != changes.dtype for tensor in weights.tensors.values())
    tensors = {name: rounded(tensor) for name, tensor in weights.tensors.items()}
    return (dataclasses.replace(weights, tensors=tensors),
            [f"{others} tensors converted to {changes.dtype}."])
