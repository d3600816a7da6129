"""Heads that are switched off, to see what they are for.

Only weights are changed, and they are put back: compiled functions of the network need no change.
"""

import contextlib
from collections.abc import Collection, Iterator

import numpy as np

from bert_tf.errors import InputError

FORMS = ("uniform", "zero")


@contextlib.contextmanager
def disabled(encoder, heads: Collection[tuple[int, int]], form: str = "uniform") -> Iterator[None]:
    """Switches heads of an encoder off inside the block.

    Args:
        encoder: `BertEncoder`.
        heads: pairs (layer, head), from 0.
        form: "uniform": the head looks at all tokens alike (Kovaleva et al., arXiv:1908.08593), as
            it does without queries; "zero": it gives nothing (Michel et al., arXiv:1905.10650), as
            it does without values.

    Raises:
        InputError: layers share the head and it is not to be off in all of them, or it has no
            queries.
    """
    config, saved = encoder.config, []
    size, fixed = config.head_size, config.num_attention_heads - config.learned_heads
    for group in sharing(encoder):
        for layer, head in heads:
            if layer in group and not {(other, head) for other in group} <= set(heads):
                raise InputError(f"layer {layer + 1} shares its attention with other layers, so "
                                 "that no head can be switched off in it alone.")
    try:
        for layer, head in heads:
            attention = encoder.layers_[layer].attention
            dense, place = attention.value, head
            if form == "uniform":       # fixed heads come first, and have no queries
                dense, place = attention.query, head - fixed
            if place < 0:
                raise InputError(f"head {head + 1} is fixed, so that it can be switched off in the "
                                 "form zero only.")
            columns = np.s_[place * size:(place + 1) * size]
            for weight in (dense.kernel, dense.bias):
                values = weight.numpy()
                saved.append((weight, values))
                changed = values.copy()
                changed[..., columns] = 0.0
                weight.assign(changed)
        yield
    finally:
        for weight, values in reversed(saved):
            weight.assign(values)


def sharing(encoder) -> list[list[int]]:
    """The layers, from 0, that have one attention in common: a list for each attention."""
    groups: dict[int, list[int]] = {}
    for number, layer in enumerate(encoder.layers_):
        groups.setdefault(id(layer.attention), []).append(number)
    return list(groups.values())


def all_heads(encoder, layer: int) -> list[tuple[int, int]]:
    """The heads of a layer, for `disabled`."""
    return [(layer, head) for head in range(encoder.config.num_attention_heads)]
