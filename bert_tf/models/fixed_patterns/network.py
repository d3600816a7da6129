"""BERT's encoder with heads that attend to fixed positions (Raganato et al., arXiv:2002.10260)."""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import FixedPatternConfig
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.models.fixed_patterns.layers import FixedPatternLayer, fixed_patterns
from bert_tf.networks.encoder import BertEncoder


@register
class FixedPatternEncoder(BertEncoder):
    """A `BertEncoder` with given maps, and no queries and keys, for each layer's first heads."""

    layer_class, packs = FixedPatternLayer, False

    def __init__(self, config: FixedPatternConfig, name: str = "bert", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.reads = (*BertEncoder.reads, *config.further_features)

    def make_bias(self, inputs: Mapping[str, Tensor], attention_bias: Tensor | None) -> Any:
        """The bias of the learned heads, and the maps of the others. InputError: patterns count
        words, and `token_boundary`, integer [B, S], 1 where a word begins, is missing."""
        config, mask = self.config, inputs.get("input_mask")
        if mask is None:
            mask = ops.ones_like(inputs["input_ids"])
        for name in config.further_features:
            if inputs.get(name) is None:
                raise InputError(f"pattern_units is words, but the batch has no {name}; give "
                                 "batches with the feature that marks where words begin.")
        boundary = inputs["token_boundary"] if config.further_features else None
        maps = fixed_patterns(mask, config.fixed_heads, config.empty_rows, boundary)
        return super().make_bias(inputs, attention_bias), maps          # [B, F, S, S]
