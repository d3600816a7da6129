"""DeBERTa, versions 2 and 3 (arXiv:2006.03654, arXiv:2111.09543; microsoft/DeBERTa)."""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.layers import check_length, padding_bias
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import ACTIVATIONS, seed_of_pass, split_seed
from bert_tf.models.deberta.layers import (
    Convolution,
    DebertaEmbeddings,
    DebertaLayer,
    DistanceEmbeddings,
)
from bert_tf.networks.encoder import BertEncoder


@register
class Deberta(BertEncoder):
    """A `BertEncoder` whose attention looks at contents and distances separately.

    Padding is 0 in `embedding_output`. `pooled_output` has the exact GELU (`ContextPooler`).
    """

    also_reads = ()
    embeddings_class, layer_class, packs = DebertaEmbeddings, DebertaLayer, False

    def make_layers(self) -> list[Any]:
        policy = self.dtype_policy
        self.distances = DistanceEmbeddings(self.config, name="rel_embeddings", dtype=policy)
        self.convolution: Convolution | None = None
        if self.config.conv_kernel_size:
            self.convolution = Convolution(self.config, name="conv", dtype=policy)
        layers = super().make_layers()
        for layer in layers:
            layer.attention.distances, layer.convolution = self.distances, None
        layers[0].convolution = self.convolution
        return layers

    def make_pooler(self) -> Any:
        return self.dense(self.config.hidden_size,
                          activation=ACTIVATIONS[self.config.pooler_hidden_act])

    def make_bias(self, inputs: Mapping[str, Tensor], attention_bias: Tensor | None) -> Any:
        """See `Bert.make_bias`; padding sees no token."""
        bias, mask = super().make_bias(inputs, attention_bias), inputs.get("input_mask")
        if mask is None or len(mask.shape) != 2:
            return bias
        return bias + ops.transpose(padding_bias(mask), (0, 1, 3, 2))               # [B, 1, S, S]

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None, attention_bias: Tensor | None = None,
             **options: Any) -> dict[str, Any]:
        """See `Bert.call`. With `enhanced_mask_decoder` it also returns `prediction_output`
        [B, S, H], which masked words are predicted from."""
        dropout_seed = seed_of_pass(dropout_seed, training, self.seed_generator)
        own_seed, seed = split_seed(dropout_seed, 2)
        outputs = super().call(inputs, training, own_seed, attention_bias, **options)
        if self.config.enhanced_mask_decoder:
            outputs["prediction_output"] = self.decode(
                outputs["layer_outputs"][-2], self.make_bias(inputs, attention_bias), seed)
        return outputs

    def decode(self, x: Tensor, bias: Tensor | None, dropout_seed: Tensor | None) -> Tensor:
        """Returns the vectors that predict masked words, from the last layer but one's, [B, S, H]
        (microsoft/DeBERTa, `EnhancedMaskDecoder`): the last layer, twice, whose first queries know
        the tokens' positions."""
        layer, length = self.layers_[-1], check_length(x, self.config)
        y = x + ops.cast(self.embeddings.position_embeddings[:length], x.dtype)
        for seed in split_seed(dropout_seed, 2):
            seeds = split_seed(seed, 3)
            context, _ = layer.attention.look(y, x, bias, seeds[0])
            y = layer.attention_output(context, y, seeds[1])
            y = layer.output_(layer.intermediate(y), y, seeds[2])
        return y

    def embed(self, inputs: Mapping[str, Tensor], seed: Tensor | None) -> dict[str, Tensor]:
        outputs, mask = super().embed(inputs, seed), inputs.get("input_mask")
        if mask is not None and len(mask.shape) == 2:
            x = outputs["embedding_output"]
            outputs["embedding_output"] = x * ops.cast(mask, x.dtype)[:, :, None]
        return outputs
