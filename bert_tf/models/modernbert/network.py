"""ModernBERT (arXiv:2412.13663; AnswerDotAI/ModernBERT, src/bert_layers).

Shapes: B batch, S sequence, H hidden, N heads, D width of a head.
"""

import functools
from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.layers import check_length, padding_bias
from bert_tf.bert.network import Bert
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.changes import PACKED
from bert_tf.layers.functions import pool
from bert_tf.layers.quantisation import set_weight_bits
from bert_tf.models.modernbert.config import GLOBAL, LOCAL
from bert_tf.models.modernbert.layers import (
    HIDDEN,
    HiddenLayer,
    ModernBertEmbeddings,
    ModernBertLayer,
    Seen,
    SeenInBlocks,
    band_bias,
    block_bias,
    block_width,
    make_norm,
    rotary_angles,
)


def mean_vector(vectors: Tensor, input_mask: Tensor | None) -> Tensor:
    """The mean [B, H] of the vectors of tokens [B, S, H], of all of them without a mask [B, S]."""
    if input_mask is None or len(input_mask.shape) > 2:
        input_mask = ops.ones(ops.shape(vectors)[:2])
    return ops.cast(pool(vectors, input_mask, "mean"), vectors.dtype)


@register
class ModernBert(Bert):
    """A `Bert` whose layers have norms before their parts, rotary positions and gates, and see in
    part near tokens only.

    `layer_outputs` are the layers' own; `sequence_output` is the last one, normalised. Heads of
    tokens read `token_output` [B, S, H], which is `sequence_output` behind the heads' hidden layer.
    Local layers compute blocks of near tokens, unless a call asks for attention, gives a bias, or
    gives the tokens that each token sees; then no attention of theirs is kept.

    Tokens of one row that have different `sequence_ids`, integer [B, S], do not see each other.
    Rotary positions are relative, so that they need not begin again in a row.
    """

    embeddings_class, layer_class = ModernBertEmbeddings, ModernBertLayer
    reads = ("input_ids", "input_mask")
    also_reads = ("sequence_ids", *PACKED)

    def make_final_norm(self) -> Any:
        return make_norm(self.config, name="final_norm", dtype=self.dtype_policy)

    def make_layers(self) -> list[Any]:
        self.final_norm = self.make_final_norm()
        layers = [self.layer_class(self.config, i, name=f"layer_{i}", dtype=self.dtype_policy)
                  for i in range(self.config.num_hidden_layers)]
        if self.config.quantisation:
            for i, layer in enumerate(layers):
                set_weight_bits(layer, self.config.quantisation.bits_of_layer(i))
        return layers

    def make_pooler(self) -> Any:
        return HiddenLayer(self.config, name="pooler", dtype=self.dtype_policy)

    def make_bias(self, inputs: Mapping[str, Any], attention_bias: Tensor | None) -> Seen:
        config, mask = self.config, inputs.get("input_mask")
        length, positions = check_length(inputs["input_ids"], config), inputs.get("positions")
        if positions is None:
            positions = ops.arange(length)[None]
        turns, sequences = self.turns(positions, length), inputs.get("sequence_ids")
        hidden = [] if mask is None else [padding_bias(mask, HIDDEN)]       # [B, 1, 1 or S, S]
        if sequences is not None:
            hidden.append(padding_bias(ops.equal(sequences[:, :, None], sequences[:, None]),
                                       HIDDEN))
        everywhere = functools.reduce(ops.minimum, hidden) if hidden else None
        if attention_bias is not None:
            extra = ops.cast(attention_bias, "float32")
            everywhere = extra if everywhere is None else everywhere + extra
        in_blocks = attention_bias is None and not inputs.get("returns_maps") and (
            mask is None or len(mask.shape) == 2)
        if not config.has_local_layers:
            return (SeenInBlocks if in_blocks else Seen)(turns, {GLOBAL: everywhere})
        # A few blocks would compute more than all pairs.
        if in_blocks and not (isinstance(length, int) and length < 4 * block_width(config)):
            if mask is None:
                mask = ops.ones((1, length))
            near = block_bias(config, mask, sequences)
            return SeenInBlocks(turns, {GLOBAL: everywhere, LOCAL: near})
        near = band_bias(length, config.window)
        if attention_bias is not None:
            near = near + everywhere
        elif hidden:        # padding that sees no token sees all alike, as in eager
            near = ops.minimum(near, everywhere)
        return Seen(turns, {GLOBAL: everywhere, LOCAL: near})

    def turns(self, positions: Tensor, length: Any) -> Mapping[str, tuple[Tensor, Tensor]]:
        """`Seen.turns` for positions, integer [1 or B, S], of rows of S = `length` tokens."""
        return rotary_angles(self.config, positions)

    @property
    def pools_first(self) -> bool:      # type: ignore[override]
        return self.config.classifier_pooling in ("cls", "bos")

    def pool(self, vectors: Tensor, input_mask: Tensor | None) -> Tensor:
        if self.pools_first:
            return self.pooler(vectors[:, 0])
        return self.pooler(mean_vector(vectors, input_mask))

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None, attention_bias: Tensor | None = None,
             return_attention: bool = False, layers: Any = None, embed: Any = None
             ) -> dict[str, Any]:
        """See `Bert`; `segment_ids` are ignored."""
        outputs = super().call(
            {**inputs, "returns_maps": return_attention}, training, dropout_seed, attention_bias,
            return_attention, layers, embed)
        x = self.final_norm(outputs["sequence_output"])
        return {**outputs, "sequence_output": x, "token_output": self.read_tokens(x),
                "pooled_output": self.pool(x, inputs.get("input_mask"))}

    def read_tokens(self, x: Tensor) -> Tensor:
        """`token_output` [B, S, H] from `sequence_output`."""
        return self.pooler(x)
