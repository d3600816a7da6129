"""Removal of heads, feed-forward units and layers: the same outputs from smaller kernels (Michel,
Levy, Neubig, arXiv:1905.10650, section 4).

The configuration lists the removed parts, by the heads' original numbers.
"""

import dataclasses
import re
from collections.abc import Collection, Mapping

import numpy as np

from bert_tf import networks
from bert_tf.checkpoints.names import is_range
from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.training.learners.learner import Learner
from bert_tf.training.transfer import renumbered

_LAYER = re.compile(r"encoder/layer_(\d+)/(.*)")


def cut(learner: Learner, heads: Collection[tuple[int, int]] = (),
        units: Collection[tuple[int, int]] = (), layers: Collection[int] = ()) -> Learner:
    """Returns a new model without some parts, with the outputs of the old one with these switched
    off. InputError if a part is absent, layers share their weights, or nothing would be left.

    Args:
        heads: pairs (number of the attention, original number of the head), from 0.
        units: pairs (number of the feed-forward network, unit), from 0, by the present numbers.
        layers: numbers of layers to remove; the others are renumbered.
    """
    encoder = learner.encoder
    config = encoder.config
    if type(config) is not EncoderConfig:
        raise InputError(f"a network of the type {config.model_type} can't be pruned; take BERT's "
                         "encoder.")
    if layers and config.shares_layers:
        raise InputError("the layers share their weights, so no layer can be removed; take a "
                         "network whose layers have separate weights.")
    kept_layers = [i for i in range(config.depth) if i not in layers]
    if not kept_layers or any(not 0 <= layer < config.depth for layer in layers):
        raise InputError(f"the network has layers 1 to {config.depth}; name some of them, but not "
                         "all.")
    kept_heads = _kept_heads(config, heads)
    kept_units = _kept_units(config, units)
    made = _config(config, kept_heads, kept_units, kept_layers, bool(layers))
    dtype = encoder.dtype_policy
    smaller = Learner(networks.build(made, dtype=dtype), [
        type(objective).from_config({**objective.get_config(), "config": made.to_dict()})
        for objective in learner.objectives])
    old = variables(learner)
    for name, variable in variables(smaller).items():
        source = renumbered(name, kept_layers) if layers else name
        variable.assign(_slice(source, old[source].numpy(), config, kept_heads, kept_units))
    return smaller


def _kept_heads(config, heads) -> Mapping[int, list[int]]:
    remaining = {number: config.kept_heads(number) for number, _ in config.layer_weights}
    for layer, head in heads:
        if head not in remaining.get(layer, ()):
            raise InputError(f"layer {layer + 1} has no head {head + 1} to remove; name another "
                             "head.")
        remaining[layer].remove(head)
    return remaining


def _kept_units(config, units) -> Mapping[int, np.ndarray]:
    sizes = {number: config.feed_forward_size(number) for _, number in config.layer_weights}
    for number, unit in units:
        if not 0 <= unit < sizes.get(number, 0):
            raise InputError(f"layer {number + 1} has no feed-forward unit {unit + 1}; name "
                             "another unit.")
    remaining = {number: np.setdiff1d(np.arange(size), [unit for of, unit in units if of == number])
            for number, size in sizes.items()}
    for number, left in remaining.items():
        if not len(left):
            raise InputError(f"layer {number + 1} must keep at least one feed-forward unit.")
    return remaining


def _config(config, kept_heads, kept_units, kept_layers, renumbers):
    every = range(config.num_attention_heads)
    heads = {number: [head for head in every if head not in remaining]
             for number, remaining in kept_heads.items()}
    sizes = [len(remaining) for _, remaining in sorted(kept_units.items())]
    quantisation = config.quantisation
    if renumbers:
        heads = {new: heads[old] for new, old in enumerate(kept_layers)}
        sizes = [sizes[old] for old in kept_layers]
        quantisation = quantisation and quantisation.of_layers(kept_layers)
    return dataclasses.replace(
        config, quantisation=quantisation,
        num_hidden_layers=len(kept_layers) if renumbers else config.num_hidden_layers,
        pruned_heads=tuple((number, tuple(gone)) for number, gone in heads.items()),
        intermediate_sizes=tuple(sizes))


def _slice(name, values, config, kept_heads, kept_units):
    match = _LAYER.match(name)
    if not match or is_range(name):
        return values
    number, part = int(match[1]), match[2]
    axis = 0 if re.match(r"(attention/)?output/dense/kernel", part) else -1
    if part.startswith(("attention/self/", "attention/output/dense/kernel")):
        present, size = config.kept_heads(number), config.head_size
        columns = [present.index(head) * size + i for head in kept_heads[number]
                   for i in range(size)]
    elif part.startswith(("intermediate/dense/", "output/dense/kernel")):
        columns = kept_units[number]
    else:
        return values
    return np.take(values, np.array(columns, int), axis)


def dead_heads(encoder) -> list[tuple[int, int]]:
    """Returns the (number of the attention, head) whose values, and so outputs, are 0."""
    dead, size = [], encoder.config.head_size
    for layer, (number, _) in zip(encoder.layers_, encoder.config.layer_weights):
        value = layer.attention.value
        for place, head in enumerate(encoder.config.kept_heads(number)):
            columns = np.s_[..., place * size:(place + 1) * size]
            if not value.kernel.numpy()[columns].any() and not value.bias.numpy()[columns].any():
                dead.append((number, head))
    return list(dict.fromkeys(dead))
