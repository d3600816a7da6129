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
        InputError: the layer shares its attention with another one, or the head has no queries.
    """
    attentions = [layer.attention for layer in encoder.layers_]
    size, saved = encoder.config.head_size, []
    try:
        for layer, head in heads:
            attention = attentions[layer]
            if sum(attention is other for other in attentions) > 1:
                raise InputError(f"layer {layer + 1} shares its attention with other layers, so "
                                 "that no head can be switched off in it alone.")
            dense, place = attention.value, head
            if form == "uniform":       # fixed heads come first, and have no queries
                dense, place = attention.query, head - getattr(attention, "fixed", 0)
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


def all_heads(encoder, layer: int) -> list[tuple[int, int]]:
    """The heads of a layer, for `disabled`."""
    return [(layer, head) for head in range(encoder.config.num_attention_heads)]
