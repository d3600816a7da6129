"""The sizes of XLNet (arXiv:1906.08237), under the names of its JSON file and of its flags."""

import dataclasses
from typing import Any, ClassVar, Self

from bert_tf.config.sizes import ACTIVATIONS, WHOLE_NUMBERS, Sizes
from bert_tf.errors import InputError

_LONGEST = WHOLE_NUMBERS["max_position_embeddings"]


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

    whole_numbers: ClassVar = {
        "vocab_size": 10_000_000, "d_model": 65_536, "d_head": 65_536, "d_inner": 1_048_576,
        "n_layer": 1_024, "n_head": 1_024}
    fractions: ClassVar = {"dropout": 1, "dropatt": 1, "initializer_range": 10,
                           "layer_norm_eps": 1}
    choices: ClassVar = {"model_type": ("xlnet",), "ff_activation": ACTIVATIONS,
                         "untie_r": (False, True), "use_summ_proj": (False, True),
                         "summary_type": ("last", "first", "mean", "attn"),
                         "directionality": ("bidi", "left_to_right")}
    added_keys: ClassVar = ("directionality",)
    unused_keys: ClassVar = ()
    distinctive_keys: ClassVar = ("n_token", "d_head", "untie_r")
    # The others are flags of the original, not part of a checkpoint.
    unseen_keys: ClassVar = ("n_head", "ff_activation", "layer_norm_eps")
    activation_key: ClassVar = "ff_activation"
    dropout_keys: ClassVar = ("dropout", "dropatt")
    truncates_initializer: ClassVar = False

    vocab_size: int = 32_000
    d_model: int = 768
    n_layer: int = 12
    n_head: int = 12
    d_head: int = 64
    d_inner: int = 3072
    ff_activation: str = "gelu"
    untie_r: bool = True
    mem_len: int = 0
    reuse_len: int = 0
    clamp_len: int = -1
    dropout: float = 0.1
    dropatt: float = 0.1
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    summary_type: str = "last"
    use_summ_proj: bool = True
    model_type: str = "xlnet"
    directionality: str = "bidi"

    def __post_init__(self):
        super().__post_init__()
        for name, least in (("mem_len", 0), ("reuse_len", 0), ("clamp_len", -1)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= _LONGEST:
                raise InputError(f"{name} must be a whole number from {least} to {_LONGEST:,}, "
                                 f"not {value!r}.")

    # The names that code for all networks uses.
    hidden_size = embedding_width = property(lambda self: self.d_model)
    intermediate_size = property(lambda self: self.d_inner)
    num_hidden_layers = depth = property(lambda self: self.n_layer)
    num_attention_heads = property(lambda self: self.n_head)
    head_size = property(lambda self: self.d_head)
    hidden_act = property(lambda self: self.ff_activation)
    has_pooler = property(lambda self: self.use_summ_proj or self.summary_type == "attn")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Makes the configuration as `Sizes.from_dict`; the original's file calls the vocabulary's
        size `n_token`."""
        return super().from_dict({"vocab_size" if key == "n_token" else key: value
                                  for key, value in values.items()})

    def weights(self) -> dict[str, str]:
        heads, biases = ("query", "key", "value"), ("r_w", "r_r", "r_s")
        layer = {
            **{f"attention/self/{part}/kernel": "HA" for part in (*heads, "position")},
            **(dict.fromkeys((f"attention/self/{name}" for name in biases), "ND")
               if self.untie_r else {}),
            "attention/self/seg_embed": "2ND", "attention/output/dense/kernel": "AH",
            "attention/output/LayerNorm": "norm H", "intermediate/dense": "dense HI",
            "output/dense": "dense IH", "output/LayerNorm": "norm H"}
        summary = {
            "pooler/summary_bias": "H",
            **{f"pooler/attention/{part}/kernel": "HA" for part in heads},
            "pooler/attention/output/kernel": "AH", "pooler/attention/LayerNorm": "norm H"}
        return {
            "embeddings/word_embeddings": "VE", "embeddings/mask_emb": "H",
            **({} if self.untie_r else
               dict.fromkeys((f"encoder/{name}" for name in biases), "ND")),
            **{f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()},
            **(summary if self.summary_type == "attn" else {}),
            **({"pooler/dense": "dense HH"} if self.use_summ_proj else {})}
