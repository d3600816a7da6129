"""The sizes of XLNet (arXiv:1906.08237), under the names of its JSON file and of its flags."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from bert_tf.config.sizes import ACTIVATIONS, DIRECTIONS, Sizes, fraction, one_of, switch, whole
from bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class XLNetConfig(Sizes):
    """Sizes of XLNet; the defaults are the base model's.

    Attributes:
        vocab_size: V; also read as `n_token`, the original's name.
        d_head: D, the width of a head; N D need not be H.
        ff_activation: "gelu" is the tanh form, as in the original.
        untie_r: whether each layer has its own biases of queries.
        mem_len: M, earlier positions that each layer attends to.
        reuse_len: first positions of a sequence that go into the memory; 0: all.
        clamp_len: the largest distance that is distinguished; 0 or less: all are.
        dropout, dropatt: dropout of vectors, and of attention.
        summary_type: vector of a whole sequence: "last", the last token's, "first", the first
            position's, "mean" over all positions, or "attn", attention by a vector of its own.
        use_summ_proj: whether a dense layer with tanh follows.
        directionality: "bidi", or "left_to_right", Transformer-XL's (arXiv:1901.02860): a token
            attends to itself, to the tokens on its left and to the memory.
    """

    # The sizes by the names of tests and commands for all networks; n_token is the original's V.
    common_names: ClassVar = {
        "hidden_size": "d_model", "intermediate_size": "d_inner", "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head", "hidden_act": "ff_activation",
        "hidden_dropout_prob": "dropout", "attention_probs_dropout_prob": "dropatt",
        "n_token": "vocab_size"}
    absent_names: ClassVar = ("max_position_embeddings", "type_vocab_size")

    added_keys: ClassVar = ("directionality",)
    distinctive_keys: ClassVar = ("n_token", "d_head", "untie_r")
    # The others are flags of the original, not part of a checkpoint.
    unseen_keys: ClassVar = ("n_head", "ff_activation", "layer_norm_eps")
    activation_key: ClassVar = "ff_activation"
    dropout_keys: ClassVar = ("dropout", "dropatt")
    truncates_initializer: ClassVar = False

    vocab_size: int = whole(32_000, "tokens")
    d_model: int = whole(768)
    n_layer: int = whole(12, "layers")
    n_head: int = whole(12, "heads")
    d_head: int = whole(64)
    d_inner: int = whole(3072, "inner width")
    ff_activation: str = one_of("gelu", ACTIVATIONS)
    untie_r: bool = switch(True)
    mem_len: int = whole(0, "positions", least=0)
    reuse_len: int = whole(0, "positions", least=0)
    clamp_len: int = whole(-1, "positions", least=-1)
    dropout: float = fraction(0.1)
    dropatt: float = fraction(0.1)
    initializer_range: float = fraction(0.02, below=10)
    layer_norm_eps: float = fraction(1e-12)
    summary_type: str = one_of("last", ("last", "first", "mean", "attn"))
    use_summ_proj: bool = switch(True)
    model_type: str = one_of("xlnet", ("xlnet",))
    directionality: str = one_of("bidi", DIRECTIONS)

    # The names that code for all networks uses.
    hidden_size = embedding_width = property(lambda self: self.d_model)
    intermediate_size = property(lambda self: self.d_inner)
    num_hidden_layers = depth = property(lambda self: self.n_layer)
    num_attention_heads = property(lambda self: self.n_head)
    head_size = property(lambda self: self.d_head)
    hidden_act = property(lambda self: self.ff_activation)
    has_memory = property(lambda self: self.mem_len > 0)
    has_pooler = property(lambda self: self.use_summ_proj or self.summary_type == "attn")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """See `Sizes.from_dict`; the original's file calls the vocabulary's size `n_token`."""
        return super().from_dict({{"n_token": "vocab_size"}.get(key, key): value
                                  for key, value in values.items()})

    def for_records(self, options: Mapping[str, Any]) -> Self:
        """Returns this configuration with the memory that records were made for."""
        reuse = options.get("reuse_len")
        if not reuse or self.reuse_len == reuse:
            return self
        if self.reuse_len:
            raise InputError(f"reuse_len is {self.reuse_len} in the configuration, but the "
                             f"records of --input_file were made with {reuse}; change the "
                             "configuration.")
        return dataclasses.replace(self, reuse_len=reuse)

    def weights(self) -> dict[str, str]:
        heads, biases = ("query", "key", "value"), ("r_w", "r_r", "r_s")
        weights = {"embeddings/word_embeddings": "VE", "embeddings/mask_emb": "H"}
        layer = {f"attention/self/{part}/kernel": "HA" for part in (*heads, "position")}
        if self.untie_r:
            layer |= dict.fromkeys((f"attention/self/{name}" for name in biases), "ND")
        else:
            weights |= dict.fromkeys((f"encoder/{name}" for name in biases), "ND")
        layer |= {
            "attention/self/seg_embed": "2ND", "attention/output/dense/kernel": "AH",
            "attention/output/LayerNorm": "norm H", "intermediate/dense": "dense HI",
            "output/dense": "dense IH", "output/LayerNorm": "norm H"}
        weights |= {f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()}
        if self.summary_type == "attn":
            weights |= {
                "pooler/summary_bias": "H",
                **{f"pooler/attention/{part}/kernel": "HA" for part in heads},
                "pooler/attention/output/kernel": "AH", "pooler/attention/LayerNorm": "norm H"}
        if self.use_summ_proj:
            weights["pooler/dense"] = "dense HH"
        return weights
