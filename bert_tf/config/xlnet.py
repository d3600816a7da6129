"""The sizes of XLNet (arXiv:1906.08237), under the names of its JSON file and of its flags."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from bert_tf.config.sizes import ACTIVATIONS, PRESETS, Sizes
from bert_tf.errors import InputError

_LONGEST = 1 << 20


@dataclasses.dataclass(frozen=True)
class XLNetConfig(Sizes):
    """The sizes of XLNet; the defaults are those of its base model.

    Attributes:
        vocab_size: V; `n_token` in the original's files, which are taken too.
        n_layer: L.
        d_model: H.
        n_head: N.
        d_head: D, the width of a head; N D need not be H.
        d_inner: F.
        ff_activation: "gelu" is the tanh form, as in the original.
        untie_r: whether each layer has its own biases of queries.
        mem_len: M, how many positions of what was read before each layer attends to.
        reuse_len: how many of the first positions of a sequence go into the memory; all if 0.
        clamp_len: the largest distance that is told apart; all are if it is 0 or less.
        dropout, dropatt: of vectors, and of attention.
        summary_type: what a whole sequence is read from: "last", the last token, "first", the
            first position, "mean" over all positions, or "attn", attention by a vector of its own.
        use_summ_proj: whether a dense layer with tanh follows.

    Raises:
        InputError: a value has the wrong type or can't be built; names the key.
    """

    # What tests and commands for all networks call the sizes, and the original's file calls V.
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
                         "summary_type": ("last", "first", "mean", "attn")}
    unused_keys: ClassVar = ()
    distinctive_keys: ClassVar = ("n_token", "d_head", "untie_r")
    # The others are flags of the original, not part of a checkpoint.
    unseen_keys: ClassVar = ("n_head", "ff_activation", "layer_norm_eps")
    activation_key: ClassVar = "ff_activation"
    dropout_keys: ClassVar = ("dropout", "dropatt")
    # What other networks have, and XLNet has not: segments are only compared, and positions are
    # relative, so that no length is too long.
    type_vocab_size: ClassVar = 0
    task_types: ClassVar = 0
    inner_group_num: ClassVar = 1
    shares_layers: ClassVar = False
    max_position_embeddings: ClassVar = _LONGEST
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

    def __post_init__(self):
        super().__post_init__()
        for name, least in (("mem_len", 0), ("reuse_len", 0), ("clamp_len", -1)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= _LONGEST:
                raise InputError(f"{name} must be a whole number from {least} to {_LONGEST:,}, "
                                 f"not {value!r}.")

    @property
    def attention_width(self) -> int:
        """The width of all heads together."""
        return self.n_head * self.d_head

    @property
    def num_weights(self) -> int:
        """The number of weights of the network, without what summarises a sequence."""
        width, attention = self.d_model, self.attention_width
        layer = (5 * width * attention + 2 * attention + 4 * width
                 + 2 * width * self.d_inner + self.d_inner + width)
        biases = 3 * attention * (self.n_layer if self.untie_r else 1)
        return (self.vocab_size + 1) * width + self.n_layer * layer + biases

    # The names that code for all networks asks for.
    hidden_size = property(lambda self: self.d_model)
    embedding_width = property(lambda self: self.d_model)
    intermediate_size = property(lambda self: self.d_inner)
    head_size = property(lambda self: self.d_head)
    num_hidden_layers = property(lambda self: self.n_layer)
    num_attention_heads = property(lambda self: self.n_head)
    learned_heads = property(lambda self: self.n_head)
    depth = property(lambda self: self.n_layer)
    hidden_act = property(lambda self: self.ff_activation)
    has_pooler = property(lambda self: self.use_summ_proj or self.summary_type == "attn")

    @property
    def layer_weights(self) -> list[tuple[int, int]]:
        """For each layer the numbers of its weights (see `EncoderSizes`)."""
        return [(i, i) for i in range(self.n_layer)]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """As `Sizes.from_dict`; the original's file calls the vocabulary's size `n_token`."""
        return super().from_dict({"vocab_size" if key == "n_token" else key: value
                                  for key, value in values.items()})

    @classmethod
    def preset(cls, name: str, sizes: Mapping[str, Any] = MappingProxyType({}),
               presets: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
               **overrides: Any) -> Self:
        """The published size `name`, base or large, or a small one of BERT's layers and widths.

        Args:
            name: of a size of BERT, or in `presets`.
            sizes: values that come before those, those of `Recipe.sizes`.
            presets: by name, values that come before both, those of `Recipe.presets`.
            overrides: values that come before all of these. Names of BERT's sizes stand for
                XLNet's.

        Raises:
            InputError: there is no such size, or a value is refused.
        """
        values: dict[str, Any] = {}
        if name in PRESETS:
            layers, width = PRESETS[name]
            values = {"d_model": width, "n_layer": layers, "n_head": width // 64, "d_head": 64,
                      "d_inner": 4 * width}
        elif name not in presets:
            raise InputError(f"there is no size {name!r}; choose from "
                             f"{', '.join(dict.fromkeys([*PRESETS, *presets]))}.")
        values |= {**sizes, **presets.get(name, {}), **overrides}
        return cls.from_dict({cls.common_names.get(key, key): value for key, value in values.items()
                              if key not in cls.absent_names})
