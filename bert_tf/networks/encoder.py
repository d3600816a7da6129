"""The encoder of BERT's relatives, and of BERT with cut or rounded parts."""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.network import Bert
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.changes import PACKED
from bert_tf.layers.encoder import EncoderEmbeddings, EncoderLayer
from bert_tf.layers.functions import ACTIVATIONS, causal_bias, last_token, places_of_tokens, plus
from bert_tf.layers.quantisation import set_weight_bits

# The activations of poolers.
_POOLERS = {"first_token_transform": "tanh", "first_token_relu": "relu",
            "first_token_gelu": ACTIVATIONS["gelu_erf"],
            "first_token_tanh_relu": lambda x: ops.relu(ops.tanh(x))}


@register
class BertEncoder(Bert):
    """Every network that an `EncoderConfig` describes: layers may share weights
    (google-research/albert, `modeling.py`), embeddings may have a width of their own, and attention
    may be from left to right.

    Reads `task_ids`, integer [B, S] or [B, 1], default 0, too. Where E is not H it also returns
    `projected_output` [B, S, H], the first layer's input. Heads with fixed patterns have no
    `attention_scores`. In `layers_` a layer with shared weights comes several times.
    """

    also_reads: tuple[str, ...] = ("task_ids", *PACKED)
    embeddings_class, layer_class = EncoderEmbeddings, EncoderLayer
    outside = (*Bert.outside, "embeddings_project")

    def make_layers(self) -> list[Any]:
        """Makes the projection of the embeddings, and each shared part of the layers once."""
        self.embeddings_project: Any = None
        if self.config.projects:
            self.embeddings_project = self.dense(self.config.hidden_size, "embeddings_project",
                                                 initializer=self.config.head_initializer,
                                                 inputs=self.config.embedding_width)
        layers: dict[tuple[int, int], EncoderLayer] = {}
        attentions: dict[int, EncoderLayer] = {}
        feed_forwards: dict[int, EncoderLayer] = {}
        for pair in self.config.layer_weights:
            if pair not in layers:
                layers[pair] = layer = self.make_layer(
                    attentions.get(pair[0]), feed_forwards.get(pair[1]), numbers=pair,
                    name=f"layer_{max(pair)}", dtype=self.dtype_policy)
                attentions.setdefault(pair[0], layer)
                feed_forwards.setdefault(pair[1], layer)
                if self.config.quantisation:
                    set_weight_bits(layer, self.config.quantisation.bits_of_layer(max(pair)))
        return [layers[pair] for pair in self.config.layer_weights]

    def make_layer(self, *shared: EncoderLayer | None, **kwargs: Any) -> Any:
        return self.layer_class(self.config, *shared, **kwargs)

    def make_pooler(self) -> Any:
        if not self.config.has_pooler:
            return None
        return self.dense(self.config.hidden_size, activation=_POOLERS[self.config.pooler_type])

    def embed(self, inputs: Mapping[str, Tensor], seed: Tensor | None) -> dict[str, Tensor]:
        # Embeddings that are shared with a plain BERT know no tasks.
        tasks = {name: inputs[name] for name in ("task_ids",) if name in inputs}
        positions, mask = inputs.get("positions"), inputs.get("input_mask")
        if positions is None and self.config.skips_padding and mask is not None and (
                len(mask.shape) == 2):
            positions = places_of_tokens(mask)
        return {"embedding_output": self.embeddings(
            inputs["input_ids"], inputs.get("segment_ids"), seed, positions, inputs.get("words"),
            **tasks)}

    def first_state(self, outputs: dict[str, Any]) -> Tensor:
        if not self.embeddings_project:
            return outputs["embedding_output"]
        outputs["projected_output"] = self.embeddings_project(outputs["embedding_output"])
        return outputs["projected_output"]

    def make_bias(self, inputs: Mapping[str, Tensor], attention_bias: Tensor | None) -> Any:
        bias = super().make_bias(inputs, attention_bias)
        if not self.config.is_causal:
            return bias
        return plus(causal_bias(ops.shape(inputs["input_ids"])[1]), bias)       # [1, 1, S, S]

    @property
    def pools_first(self) -> bool:      # type: ignore[override]
        return not self.config.is_causal

    def pool(self, vectors: Tensor, input_mask: Tensor | None) -> Tensor:
        if self.config.is_causal:
            if input_mask is not None and len(input_mask.shape) != 2:
                input_mask = None
            summary = last_token(vectors, input_mask)
        else:
            summary = vectors[:, 0]
        return self.pooler(summary) if self.pooler else summary
