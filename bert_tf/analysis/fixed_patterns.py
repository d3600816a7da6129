"""BERT's encoder with heads that look at fixed places (Raganato et al., arXiv:2002.10260)."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras import ops

from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.fixed_patterns import EMPTY_ROWS, PATTERNS, FixedPatternLayer, fixed_patterns
from bert_tf.layers.transformer import TransformerLayer
from bert_tf.networks.encoder import BertEncoder


@register
class FixedPatternEncoder(BertEncoder):
    """An encoder in each of whose layers the first heads have given maps, and the others learn.

    Everything else is as in `BertEncoder`. A head that is fixed has no queries and no keys.

    Args:
        config: `EncoderConfig`.
        fixed_heads: the patterns of the first F heads, of `layers.fixed_patterns.PATTERNS`; one
            may come twice.
        empty_rows: see `layers.fixed_patterns.fixed_patterns`.
        kwargs: as of `BertEncoder`.

    Raises:
        InputError: there are more of them than heads, or one is unknown.
    """

    def __init__(self, config: EncoderConfig, name: str = "bert",
                 fixed_heads: Sequence[str] = PATTERNS, empty_rows: str = "end", **kwargs: Any):
        if len(fixed_heads) > config.num_attention_heads:
            raise InputError(f"{len(fixed_heads)} heads can't be fixed of "
                             f"{config.num_attention_heads} (num_attention_heads).")
        for given, known in ((fixed_heads, PATTERNS), ((empty_rows,), EMPTY_ROWS)):
            if unknown := set(given) - set(known):
                raise InputError(f"there is no {unknown.pop()!r}; choose from {', '.join(known)}.")
        self.fixed_heads, self.empty_rows = tuple(fixed_heads), empty_rows
        super().__init__(config, name=name, **kwargs)

    def make_layer(self, *shared: TransformerLayer | None, **kwargs: Any) -> TransformerLayer:
        return FixedPatternLayer(self.config, *shared, fixed=len(self.fixed_heads), **kwargs)

    def make_bias(self, inputs: Mapping[str, Tensor], attention_bias: Tensor | None) -> Any:
        """The bias of the learned heads, and the maps of the others."""
        mask = inputs.get("input_mask")
        if mask is None:
            mask = ops.ones_like(inputs["input_ids"])
        maps = fixed_patterns(mask, self.fixed_heads, self.empty_rows)  # [B, F, S, S]
        return super().make_bias(inputs, attention_bias), maps

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "fixed_heads": list(self.fixed_heads),
                "empty_rows": self.empty_rows}
