"""Switches off attention heads and feed-forward units, by weights alone, which are restored:
compiled functions of the network need no change."""

import contextlib
from collections.abc import Collection, Iterator

import numpy as np

from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.networks import attentions

FORMS = ("uniform", "zero")


@contextlib.contextmanager
def disabled(encoder, heads: Collection[tuple[int, int]] = (), form: str = "uniform",
             units: Collection[tuple[int, int]] = ()) -> Iterator[None]:
    """Switches parts of an encoder off inside the block; see `switch_off`."""
    saved = [(weight, weight.numpy()) for weight, *_ in _places(encoder, heads, form, units)]
    try:
        switch_off(encoder, heads, form, units)
        yield
    finally:
        for weight, values in saved:
            weight.assign(values)


def switch_off(encoder, heads: Collection[tuple[int, int]] = (), form: str = "zero",
               units: Collection[tuple[int, int]] = ()) -> None:
    """Switches parts of an encoder off for good: heads, pairs (layer, head) from 0, by the heads'
    original numbers and the layers' of `networks.attentions`; and units, pairs (layer, feed-forward
    unit) from 0, whose output becomes 0.

    A head of the form "uniform" attends to all tokens alike (Kovaleva et al., arXiv:1908.08593), as
    without queries; of the form "zero", its output is 0 (Michel et al., arXiv:1905.10650), as
    without values. InputError if only some of the layers that share a part are named; a head is
    absent; or, with "uniform", a head's map depends on more than its queries."""
    for weight, columns in _places(encoder, heads, form, units):
        values = weight.numpy()
        values[columns] = 0.0
        weight.assign(values)


def _places(encoder, heads, form, units):
    if heads and form == "uniform" and looks_at_distances(encoder.config):
        raise InputError("the attention of this network also depends on distances, so a head can "
                         "only be switched off in the form zero.")
    _check_shared(sharing(encoder), heads, "attention", "head")
    config, places = encoder.config, []
    size = config.head_size
    if not isinstance(config, EncoderConfig):
        if heads and config.shares_values:
            raise InputError("several heads of this network share their values, so single heads "
                             "can't be switched off; take a model with as many "
                             "num_key_value_heads as num_attention_heads.")
        layers = list(attentions(encoder).values())
        for layer, head in heads:
            if not (0 <= layer < len(layers) and 0 <= head < config.num_attention_heads):
                raise InputError(f"layer {layer + 1} has no head {head + 1}; name another "
                                 "head.")
            dense = layers[layer].value     # its last columns are the values
            first = dense.kernel.shape[-1] - config.attention_width + head * size
            places += [(weight, np.s_[..., first:first + size])
                       for weight in (dense.kernel, dense.bias) if weight is not None]
        return places
    _check_shared(_sharing(layer.output_ for layer in encoder.layers_), units,
                  "feed-forward network", "unit")
    fixed = config.num_attention_heads - config.learned_heads
    for layer, head in heads:
        present = config.kept_heads(config.layer_weights[layer][0])
        if head not in present:
            raise InputError(f"layer {layer + 1} has no head {head + 1} any more; name another "
                             "head.")
        attention, place = encoder.layers_[layer].attention, present.index(head)
        dense = attention.value
        if form == "uniform":       # fixed heads come first, and have no queries
            dense, place = attention.query, place - fixed
        if place < 0:
            raise InputError(f"head {head + 1} looks at fixed places, so it can only be switched "
                             "off in the form zero.")
        columns = np.s_[..., place * size:(place + 1) * size]
        places += [(dense.kernel, columns), (dense.bias, columns)]
    by_layer: dict[int, list[int]] = {}
    for layer, unit in units:
        by_layer.setdefault(layer, []).append(unit)
    return places + [(encoder.layers_[layer].output_.projection.kernel, np.s_[rows])
                    for layer, rows in by_layer.items()]


def looks_at_distances(config) -> bool:
    """Returns whether heads without queries still tell near tokens from far ones."""
    return not isinstance(config, EncoderConfig) or hasattr(
        config, "relative_attention_num_buckets")


def _check_shared(groups, parts, what, each):
    for group in groups:
        for layer, part in parts:
            if layer in group and not {(other, part) for other in group} <= set(parts):
                raise InputError(f"layer {layer + 1} shares its {what} with other layers, so no "
                                 f"{each} can be switched off in this layer alone.")


def _sharing(parts):
    groups: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        groups.setdefault(id(part), []).append(number)
    return list(groups.values())


def sharing(network) -> list[list[int]]:
    """Groups the numbers, from 0, of `attentions` that are one."""
    return _sharing(attentions(network).values())
