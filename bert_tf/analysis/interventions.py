"""Heads and feed-forward units that are switched off, to see what they are for.

Only weights are changed, and they are put back: compiled functions of the network need no change.
"""

import contextlib
from collections.abc import Collection, Iterator

import numpy as np

from bert_tf.errors import InputError

FORMS = ("uniform", "zero")


@contextlib.contextmanager
def disabled(encoder, heads: Collection[tuple[int, int]] = (), form: str = "uniform",
             units: Collection[tuple[int, int]] = ()) -> Iterator[None]:
    """Switches parts of an encoder off inside the block; takes what `switch_off` takes."""
    saved = [(weight, weight.numpy()) for weight, *_ in _places(encoder, heads, form, units)]
    try:
        switch_off(encoder, heads, form, units)
        yield
    finally:
        for weight, values in saved:
            weight.assign(values)


def switch_off(encoder, heads: Collection[tuple[int, int]] = (), form: str = "zero",
               units: Collection[tuple[int, int]] = ()) -> None:
    """Switches parts of an encoder off for good.

    Args:
        encoder: `BertEncoder`.
        heads: pairs (layer, head), from 0, heads by their original numbers.
        form: "uniform": the head looks at all tokens alike (Kovaleva et al., arXiv:1908.08593), as
            it does without queries; "zero": it gives nothing (Michel et al., arXiv:1905.10650), as
            it does without values.
        units: pairs (layer, unit of its feed-forward network), from 0, which give nothing.

    Raises:
        InputError: layers share the part and it is not to be off in all of them, or a head is not
            there or has no queries.
    """
    for weight, columns in _places(encoder, heads, form, units):
        values = weight.numpy()
        values[columns] = 0.0
        weight.assign(values)


def _places(encoder, heads, form, units):
    """The (weight, its part to be 0) of each head and unit."""
    _check_shared(sharing(encoder), heads, "attention", "head")
    _check_shared(_sharing(encoder, "output_"), units, "feed-forward network", "unit")
    config, found = encoder.config, []
    size, fixed = config.head_size, config.num_attention_heads - config.learned_heads
    for layer, head in heads:
        kept = config.kept_heads(config.layer_weights[layer][0])
        if head not in kept:
            raise InputError(f"layer {layer + 1} has no head {head + 1} any more.")
        attention, place = encoder.layers_[layer].attention, kept.index(head)
        dense = attention.value
        if form == "uniform":       # fixed heads come first, and have no queries
            dense, place = attention.query, place - fixed
        if place < 0:
            raise InputError(f"head {head + 1} is fixed, so that it can be switched off in the "
                             "form zero only.")
        columns = np.s_[..., place * size:(place + 1) * size]
        found += [(dense.kernel, columns), (dense.bias, columns)]
    by_layer: dict[int, list[int]] = {}
    for layer, unit in units:
        by_layer.setdefault(layer, []).append(unit)
    return found + [(encoder.layers_[layer].output_.projection.kernel, np.s_[rows])
                    for layer, rows in by_layer.items()]


def _check_shared(groups, parts, what, each):
    for group in groups:
        for layer, part in parts:
            if layer in group and not {(other, part) for other in group} <= set(parts):
                raise InputError(f"layer {layer + 1} shares its {what} with other layers, so "
                                 f"that no {each} can be switched off in it alone.")


def _sharing(encoder, part):
    """The layers, from 0, that have one `part` in common: a list for each."""
    groups: dict[int, list[int]] = {}
    for number, layer in enumerate(encoder.layers_):
        groups.setdefault(id(getattr(layer, part)), []).append(number)
    return list(groups.values())


def sharing(encoder) -> list[list[int]]:
    """The layers, from 0, that have one attention in common: a list for each attention."""
    return _sharing(encoder, "attention")


def all_heads(encoder, layer: int) -> list[tuple[int, int]]:
    """The heads of a layer, for `disabled`."""
    config = encoder.config
    return [(layer, head) for head in config.kept_heads(config.layer_weights[layer][0])]
