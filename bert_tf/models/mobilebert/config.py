"""The sizes of MobileBERT and of its teacher."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from bert_tf.bert.config import BertConfig
from bert_tf.config.quantisation import Quantisation, parse_quantisation
from bert_tf.config.sizes import PRESETS, UNSEEN_KEYS, check_weights, fitted, one_of, switch, whole
from bert_tf.errors import InputError

MOST_FEED_FORWARDS = 32


@dataclasses.dataclass(frozen=True)
class MobileBertConfig(BertConfig):
    """Sizes of MobileBERT (arXiv:2004.02984).

    Names and defaults are BertConfig's in google-research's mobilebert/modeling.py, whose layers
    are BERT's unless a key says otherwise.

    Attributes:
        hidden_size: H, the width between layers.
        embedding_size: E, the width of the word embeddings; H if None.
        trigram_input: whether each token's input joins its own embedding and its neighbours'.
        use_bottleneck: whether layers are as wide as `intra_bottleneck_size` inside.
        intra_bottleneck_size: A, that width; H if None. The teacher's is larger than H.
        use_bottleneck_attention: whether queries, keys and values all read the layer's bottleneck.
        key_query_shared_bottleneck: else, whether queries and keys have a bottleneck of their own.
        num_feedforward_networks: number of feed-forward networks of a layer.
        normalization_type: "layer_norm"; "manual_layer_norm", the same with a larger epsilon; or
            "no_norm", a factor and an addend for each element.
        classifier_activation: whether the first token's vector passes a dense layer with tanh.
        as_in_transformers: whether the network is transformers', where it is not the original's:
            padding gets no weight in attention, and of "layer_norm" those of the embeddings and of
            a layer's last feed-forward network have an epsilon of 1e-5. A key of ours.
    """

    added_keys: ClassVar = ("layer_norm_eps", "model_type", "embedding_size",
                            "intra_bottleneck_size", "quantisation", "as_in_transformers")
    distinctive_keys: ClassVar = ("trigram_input", "use_bottleneck", "intra_bottleneck_size")
    unseen_keys: ClassVar = (*UNSEEN_KEYS, "normalization_type")

    model_type: str = one_of("mobilebert", ("mobilebert",))
    embedding_size: int | None = whole(None)
    trigram_input: bool = switch(False)
    use_bottleneck: bool = switch(False)
    intra_bottleneck_size: int | None = whole(None)
    use_bottleneck_attention: bool = switch(False)
    key_query_shared_bottleneck: bool = switch(False)
    num_feedforward_networks: int = whole(1, MOST_FEED_FORWARDS)
    normalization_type: str = one_of("layer_norm", ("layer_norm", "no_norm", "manual_layer_norm"))
    classifier_activation: bool = switch(True)
    as_in_transformers: bool = switch(False)
    quantisation: Quantisation | None = fitted(None, parse_quantisation)

    # The layer between embeddings and encoder is part of the embeddings.
    projects = is_plain = False
    can_be_rounded = True

    def check(self) -> None:
        if self.inner_size % self.num_attention_heads:
            raise InputError(f"num_attention_heads ({self.num_attention_heads}) must divide the "
                             f"width of a layer ({self.inner_size}).")
        if self.embedding_width > self.hidden_size:
            raise InputError(f"embedding_size ({self.embedding_width}) must not be more than "
                             f"hidden_size ({self.hidden_size}).")
        check_weights(self)

    @property
    def pooler_type(self) -> str:     # type: ignore[override]
        """Returns the `EncoderConfig`'s name of the pooler."""
        return "first_token_transform" if self.classifier_activation else "first_token"

    @property
    def inner_size(self) -> int:
        """A, the width of a layer inside."""
        return (self.use_bottleneck and self.intra_bottleneck_size) or self.hidden_size

    # The widths of the input of values, and of queries and keys.
    value_size = property(lambda self: (
        self.inner_size if self.use_bottleneck_attention else self.hidden_size))
    query_size = property(lambda self: (
        self.inner_size if self.key_query_shared_bottleneck else self.value_size))
    # Whether queries and keys have a bottleneck of their own.
    has_query_bottleneck = property(lambda self: (
        self.use_bottleneck and self.key_query_shared_bottleneck
        and not self.use_bottleneck_attention))

    @property
    def transformed_size(self) -> int:
        """The width that the embeddings' dense layer reads; 0 without this layer."""
        if self.trigram_input:
            return 3 * self.embedding_width
        return self.embedding_width if self.embedding_width != self.hidden_size else 0

    # A further matrix widens the embedding table to predict tokens.
    prediction_width = property(lambda self: self.hidden_size)
    head_size = property(lambda self: self.inner_size // self.num_attention_heads)

    def weights(self) -> dict[str, str]:
        query, value = ("A" if size == self.inner_size else "H"
                        for size in (self.query_size, self.value_size))
        normed = {"attention/output": "AA", "output": "IA"}
        if self.use_bottleneck:
            normed |= {"bottleneck/input": "HA", "output/bottleneck": "AH"}
        if self.has_query_bottleneck:
            normed["bottleneck/attention"] = "HA"
        layer = {"attention/self/query": f"dense {query}A", "attention/self/key": f"dense {query}A",
                 "attention/self/value": f"dense {value}A", "intermediate/dense": "dense AI"}
        for i in range(self.num_feedforward_networks - 1):
            layer[f"ffn_layer_{i}/intermediate/dense"] = "dense AI"
            normed[f"ffn_layer_{i}/output"] = "IA"
        for part, shape in normed.items():
            layer |= {f"{part}/dense": f"dense {shape}", f"{part}/LayerNorm": f"norm {shape[1]}"}
        weights = {"embeddings/word_embeddings": "VE"}
        if self.transformed_size:
            weights["embeddings/embedding_transformation"] = "dense SH"
        weights |= {
            "embeddings/token_type_embeddings": "TH", "embeddings/position_embeddings": "PH",
            "embeddings/LayerNorm": "norm H",
            **{f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()}}
        if self.has_pooler:
            weights["pooler/dense"] = "dense HH"
        return weights

    def filled(self) -> Self:
        """See `Sizes.filled`."""
        return dataclasses.replace(self, embedding_size=self.embedding_width,
                                   intra_bottleneck_size=self.intra_bottleneck_size
                                   or self.hidden_size)

    @classmethod
    def preset(cls, name: str, sizes: Mapping[str, Any] = MappingProxyType({}),
               presets: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
               **overrides: Any) -> Self:
        """See `Sizes.preset`; a BERT size gives layers and width, with MobileBERT's proportions."""
        if name in PRESETS and name not in presets:
            _, width = PRESETS[name]
            inner = width // 4
            overrides = {"embedding_size": inner, "intra_bottleneck_size": inner,
                         "intermediate_size": width, "num_attention_heads": 4, **overrides}
        return super().preset(name, sizes, presets, **overrides)
