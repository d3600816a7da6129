"""Gives a model the values of a checkpoint."""

import numpy as np

from bert_tf.checkpoints import names
from bert_tf.checkpoints.account import Account
from bert_tf.checkpoints.weights import check
from bert_tf.errors import InputError


def variables(model):
    """A dict of the variables of an encoder, or of a Learner, by our names."""
    encoder = getattr(model, "encoder", model)
    named = {v.path.removeprefix(f"{encoder.path}/"): v for v in encoder.weights}
    for objective in getattr(model, "objectives", ()):
        named |= {v.path.removeprefix(objective.path.removesuffix(objective.name)): v
                  for v in objective.weights}
    return named


def assign(model, weights):
    """Gives the model the values of `weights`: all of them, or, if anything is wrong, none.

    Args:
        model: an encoder or a Learner.
        weights: `Weights`.

    Returns:
        An `Account`.

    Raises:
        InputError: a tensor doesn't fit the model, or can't be read.
    """
    named = variables(model)
    apart = sorted(set(names.OPTIONAL) & set(weights.tensors).difference(named))
    if any(names.head(name) in map(names.head, named) for name in apart):
        raise InputError(f"{weights.source} has {', '.join(apart)}, which the model has not; build "
                         "its head as it was trained: MaskedLM with tied=False, FeatureTagging "
                         "with the same layers.")
    pairs = [(named[name], tensor) for name, tensor in weights.tensors.items() if name in named]
    for variable, tensor in pairs:
        check(tensor, variable.shape, weights.source)
    values = [np.asarray(tensor.read(), "float32") for _, tensor in pairs]
    for (variable, _), value in zip(pairs, values):
        variable.assign(value)
    left = {tensor.name: f"the model has no {names.head(name)}"
            for name, tensor in weights.tensors.items() if name not in named}
    return Account(weights.source,
                   {name: tensor.name for name, tensor in weights.tensors.items() if name in named},
                   {**weights.ignored, **left},
                   [name for name in named if name not in weights.tensors])
