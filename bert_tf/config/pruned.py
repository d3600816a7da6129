"""Checks of the sizes of a network from which heads or units were cut."""

from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError


def as_pruned_heads(config: Any) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """`pruned_heads` of an `EncoderConfig` as sorted pairs (number of the attention, its heads);
    layers without any are left out.

    Raises:
        InputError: the layers or heads are not there.
    """
    given = config.pruned_heads
    attentions = {attention for attention, _ in config.layer_weights}
    found: dict[int, tuple[int, ...]] = {}
    try:
        pairs = given.items() if isinstance(given, Mapping) else tuple(given)
        for layer, heads in pairs:
            if not isinstance(layer, (int, str)) or not all(type(head) is int for head in heads):
                raise TypeError
            found[int(layer)] = tuple(sorted(set(heads)))
    except (TypeError, ValueError):
        raise InputError("pruned_heads must map numbers of layers to lists of heads, not "
                         f"{given!r}.") from None
    for layer, of_layer in found.items():
        if layer not in attentions:
            raise InputError(f"pruned_heads: there is no layer {layer} with an attention of its "
                             f"own; there are {', '.join(map(str, sorted(attentions)))}.")
        for head in of_layer:
            if not 0 <= head < config.num_attention_heads:
                raise InputError(f"pruned_heads: layer {layer} has no head {head}; heads are from "
                                 f"0 to {config.num_attention_heads - 1}.")
    return tuple((layer, heads) for layer, heads in sorted(found.items()) if heads)


def check_intermediate_sizes(config: Any) -> None:
    """Makes `intermediate_sizes` of an `EncoderConfig` a tuple, or None where all are alike.

    Raises:
        InputError: there is not one for each feed-forward network, or one is no size.
    """
    given = config.intermediate_sizes
    if given is None:
        return
    count = len({feed_forward for _, feed_forward in config.layer_weights})
    is_list = isinstance(given, (list, tuple))
    if not is_list or len(given) != count or not all(
            type(size) is int and 1 <= size <= config.intermediate_size for size in given):
        raise InputError(f"intermediate_sizes must be {count} whole numbers from 1 to "
                         f"intermediate_size ({config.intermediate_size}), not {given!r}.")
    sizes = None if set(given) == {config.intermediate_size} else tuple(given)
    object.__setattr__(config, "intermediate_sizes", sizes)
