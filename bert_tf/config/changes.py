"""BERT with cut or rounded parts: the keys that its configuration has in addition."""

import dataclasses
from typing import Any, ClassVar

from bert_tf.bert.config import BertConfig
from bert_tf.config.quantisation import Quantisation, parse_quantisation
from bert_tf.config.sizes import fitted
from bert_tf.errors import InputError


def _as_pairs(config: Any) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """`pruned_heads` as sorted pairs (number of the attention, its heads), without empty ones."""
    attentions = {attention for attention, _ in config.layer_weights}
    pruned: dict[int, tuple[int, ...]] = {}
    try:
        for layer, heads in dict(config.pruned_heads).items():
            if not isinstance(layer, (int, str)) or not all(type(head) is int for head in heads):
                raise TypeError
            pruned[int(layer)] = tuple(sorted(set(heads)))
    except (TypeError, ValueError):
        raise InputError("pruned_heads must map numbers of layers to lists of heads, not "
                         f"{config.pruned_heads!r}.") from None
    for layer, of_layer in pruned.items():
        if layer not in attentions:
            raise InputError(f"pruned_heads: layer {layer} has no separate attention; the layers "
                             f"that have one are {', '.join(map(str, sorted(attentions)))}.")
        for head in of_layer:
            if not 0 <= head < config.num_attention_heads:
                raise InputError(f"pruned_heads: layer {layer} has no head {head}; heads are from "
                                 f"0 to {config.num_attention_heads - 1}.")
    return tuple((layer, heads) for layer, heads in sorted(pruned.items()) if heads)


def _as_sizes(config: Any) -> tuple[int, ...] | None:
    """`intermediate_sizes` as a tuple, or None where all are alike."""
    sizes = config.intermediate_sizes
    count = len({feed_forward for _, feed_forward in config.layer_weights})
    if not isinstance(sizes, (list, tuple)) or len(sizes) != count or not all(
            type(size) is int and 1 <= size <= config.intermediate_size for size in sizes):
        raise InputError(f"intermediate_sizes must be {count} whole numbers from 1 to "
                         f"intermediate_size ({config.intermediate_size}), not {sizes!r}.")
    return None if set(sizes) == {config.intermediate_size} else tuple(sizes)


@dataclasses.dataclass(frozen=True)
class ChangeableConfig(BertConfig):
    """Sizes of BERT, some of whose heads and units may be cut, and numbers rounded.

    Attributes:
        quantisation: rounding to a few bits, or None.
        pruned_heads: the removed heads (arXiv:1905.10650): a mapping from the number of an
            attention, as `layer_weights` counts them, to its heads' original numbers, as in Hugging
            Face's files. Kept as sorted pairs.
        intermediate_sizes: F of each feed-forward network where units were removed;
            `intermediate_size` of all if None.
    """

    can_be_rounded = True
    pruned_keys: ClassVar = ("pruned_heads", "intermediate_sizes")
    changes: ClassVar = ("quantisation", *pruned_keys)

    quantisation: Quantisation | None = fitted(None, parse_quantisation)
    pruned_heads: Any = fitted((), _as_pairs, lambda pairs: {
        str(layer): list(heads) for layer, heads in pairs})     # as in Hugging Face's files
    intermediate_sizes: tuple[int, ...] | None = fitted(None, _as_sizes)
