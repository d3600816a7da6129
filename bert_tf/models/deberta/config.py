"""The sizes of DeBERTa, versions 2 and 3 (arXiv:2006.03654, arXiv:2111.09543)."""

import dataclasses
from typing import ClassVar

from bert_tf.config.encoder import EncoderConfig
from bert_tf.config.sizes import ACTIVATIONS, fraction, one_of, switch, whole
from bert_tf.errors import InputError

# Terms of a score by distance: the query's content with the key's place, and the other way.
TERMS = ("c2p", "p2c")
# The end of the names of tables that are differences from the generator's.
DIFFERENCE = "_difference"


@dataclasses.dataclass(frozen=True)
class DebertaConfig(EncoderConfig):
    """Sizes of DeBERTa; names and defaults are those of transformers' DebertaV2Config.

    Attributes:
        type_vocab_size: the rows of the table of segments; 0: there is none.
        relative_attention: whether scores depend on distances; here true by default.
        max_relative_positions: the distance where buckets end; below 1: max_position_embeddings.
        position_buckets: number of buckets of distances on each side; below 1: each distance has a
            vector of its own.
        pos_att_type: some of `TERMS`; also read as "p2c|c2p", "none" or null.
        share_att_key: whether places have the projections of keys and queries.
        norm_rel_ebd: "layer_norm" if the vectors of distances are normalised.
        position_biased_input: whether the embeddings have positions.
        enhanced_mask_decoder: whether the network has positions for the decoder of masked words
            alone (`Deberta.decode`); a key of ours.
        conv_kernel_size: width of a convolution beside the first layer; 0: there is none.
    """

    added_keys: ClassVar = (*(key for key in EncoderConfig.added_keys if key != "model_type"),
                            "enhanced_mask_decoder")
    distinctive_keys: ClassVar = ("position_buckets",)
    unseen_keys: ClassVar = (*EncoderConfig.unseen_keys, "max_relative_positions", "conv_act",
                             "pooler_hidden_act", "pos_att_type")

    model_type: str = one_of("deberta-v2", ("deberta-v2",))
    type_vocab_size: int = whole(0, least=0)
    hidden_act: str = one_of("gelu_erf", ACTIVATIONS)
    layer_norm_eps: float = fraction(1e-7)
    relative_attention: bool = switch(True)
    max_relative_positions: int = whole(-1, "positions", least=-1)
    position_buckets: int = whole(-1, "positions", least=-1)
    pos_att_type: tuple[str, ...] = TERMS
    share_att_key: bool = switch(False)
    norm_rel_ebd: str = one_of("none", ("none", "layer_norm"))
    position_biased_input: bool = switch(True)
    enhanced_mask_decoder: bool = switch(False)
    conv_kernel_size: int = whole(0, 1024, least=0)
    conv_groups: int = whole(1)
    conv_act: str = one_of("tanh", ACTIVATIONS)
    pooler_hidden_act: str = one_of("gelu_erf", ACTIVATIONS)

    # Embeddings of another width are projected before their norm.
    is_plain = truncates_initializer = can_be_rounded = projects = False
    has_segments = property(lambda self: self.type_vocab_size > 0)
    adds_positions = property(lambda self: self.position_biased_input)

    def check(self) -> None:
        terms, unnamed = self.pos_att_type or (), ("", "none")
        if isinstance(terms, str):
            terms = [term.strip() for term in terms.lower().split("|")]
        if not isinstance(terms, (list, tuple)) or any(term not in TERMS + unnamed
                                                       for term in terms):
            raise InputError(f"pos_att_type must be some of {', '.join(TERMS)}, not "
                             f"{self.pos_att_type!r}.")
        object.__setattr__(self, "pos_att_type", tuple(term for term in TERMS if term in terms))
        if self.enhanced_mask_decoder and (self.position_biased_input or self.depth < 2):
            raise InputError("enhanced_mask_decoder needs position_biased_input false, and at "
                             "least 2 layers.")
        if self.embedding_size == self.hidden_size:
            object.__setattr__(self, "embedding_size", None)    # as where a file has no such key
        if self.enhanced_mask_decoder and self.embedding_size:
            raise InputError(f"enhanced_mask_decoder needs an embedding_size "
                             f"({self.embedding_size}) equal to hidden_size ({self.hidden_size}).")
        if self.position_buckets == 1:
            raise InputError("position_buckets must be 0 or at least 2, not 1.")
        if self.position_buckets > 0 and self.longest_distance <= self.position_buckets // 2 + 1:
            raise InputError(
                f"position_buckets is {self.position_buckets}, but distances end at "
                f"{self.longest_distance}; give a larger max_relative_positions.")
        if self.conv_kernel_size and (not self.conv_kernel_size % 2
                                      or self.hidden_size % self.conv_groups):
            raise InputError(
                f"conv_kernel_size ({self.conv_kernel_size}) must be odd, or 0, and conv_groups "
                f"({self.conv_groups}) must divide hidden_size ({self.hidden_size}).")
        super().check()

    @property
    def position_rows(self) -> int:
        return self.max_position_embeddings * (self.adds_positions or self.enhanced_mask_decoder)

    @property
    def distance_terms(self) -> tuple[str, ...]:
        """The terms that scores have; the others of `pos_att_type` only make scores smaller."""
        return self.pos_att_type * self.relative_attention

    @property
    def longest_distance(self) -> int:
        """The distance from which on all distances have the same vector."""
        return max(self.max_relative_positions, 0) or self.max_position_embeddings

    @property
    def relative_attention_num_buckets(self) -> int:
        """The rows of the table of distances."""
        return 2 * (max(self.position_buckets, 0) or self.longest_distance)

    @property
    def own_letters(self) -> dict[str, int]:      # type: ignore[override]
        return {"K": self.conv_kernel_size, "F": self.hidden_size // self.conv_groups}

    def weights(self) -> dict[str, str]:
        weights = super().weights()
        if not self.position_rows:
            del weights["embeddings/position_embeddings"]
        if self.embedding_size:
            weights |= {"embeddings/LayerNorm": "norm H", "embeddings/embed_proj/kernel": "EH"}
        if not self.share_att_key:
            weights |= {f"encoder/layer_{{i}}/attention/self/{name}": "dense HA"
                        for term, name in zip(TERMS, ("pos_key", "pos_query"))
                        if term in self.distance_terms}
        if self.relative_attention:
            weights["encoder/rel_embeddings/weight"] = "OH"
        if self.norm_rel_ebd == "layer_norm":
            weights["encoder/rel_embeddings/LayerNorm"] = "norm H"
        if self.conv_kernel_size:
            weights |= {"encoder/conv/kernel": "KFH", "encoder/conv/bias": "H",
                        "encoder/conv/LayerNorm": "norm H"}
        return weights
