"""Heads of attention that flags switch off where a model is scored."""

from typing import Any

from bert_tf.analysis import switch_off
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError


def masked_heads(flags: Any, config: Any) -> list[tuple[int, int]]:
    """The (layer, head), both from 0, that flags name.

    Args:
        flags: has --attention_mask_heads and --reverse_head_mask.

    Raises:
        InputError: a head does not exist, or the network is not BERT's encoder.
    """
    heads = parse_heads(flags.attention_mask_heads, config, "attention_mask_heads")
    if not flags.reverse_head_mask:
        return heads
    return [(layer, head) for layer in sorted({layer for layer, _ in heads})
            for head in _heads(config, layer) if (layer, head) not in heads]


def parse_heads(pairs: list[str], config: Any, flag: str) -> list[tuple[int, int]]:
    """The (layer, head), both from 0, of "layer:head", both from 1.

    Raises:
        InputError: a head does not exist, or the network is not BERT's encoder.
    """
    if pairs and not isinstance(config, EncoderConfig):
        raise InputError(f"--{flag} is for BERT's encoder, not for {config.model_type}; leave the "
                         "flag out.")
    heads = []
    for pair in pairs:
        layer, _, head = pair.partition(":")
        if not (layer.isdecimal() and head.isdecimal() and 1 <= int(layer) <= config.depth
                and int(head) - 1 in _heads(config, int(layer) - 1)):
            raise InputError(f"--{flag}: {pair!r} names no head; give layer:head, from 1:1 to "
                             f"{config.depth}:{config.num_attention_heads}"
                             f"{', that was not pruned' * bool(config.pruned_heads)}.")
        heads.append((int(layer) - 1, int(head) - 1))
    return sorted(set(heads))


def _heads(config, layer):
    return config.kept_heads(config.layer_weights[layer][0])


def mask(flags: Any, encoder: Any) -> None:
    """Switches off the heads of `masked_heads`."""
    if heads := masked_heads(flags, encoder.config):
        switch_off(encoder, heads)
        print("without the heads " + ", ".join(f"{layer + 1}:{head + 1}" for layer, head in heads),
              flush=True)
