"""The sizes of ModernBERT (arXiv:2412.13663)."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from bert_tf.config.quantisation import Quantisation, parse_quantisation
from bert_tf.config.sizes import (
    ACTIVATIONS,
    UNSEEN_KEYS,
    Sizes,
    check_sizes,
    fitted,
    fraction,
    one_of,
    switch,
    whole,
)
from bert_tf.errors import InputError, counted

# The kinds of layers: of which all tokens see each other, or only near ones.
GLOBAL, LOCAL = KINDS = ("full_attention", "sliding_attention")
_MOST = 1e12        # a larger theta is a slip
_THETAS = "global_rope_theta", "local_rope_theta"


def check_rotary(config: Sizes, keys: Sequence[str]) -> None:
    """Raises InputError if heads can't be turned pair by pair, or the base of the angles at one of
    `keys` is 0."""
    if config.head_size % 2:
        raise InputError(f"hidden_size ({config.hidden_size}) must be an even multiple of "
                         f"num_attention_heads ({config.num_attention_heads}): rotary embeddings "
                         "turn pairs.")
    for key in keys:
        if not getattr(config, key):
            raise InputError(f"{key} must be above 0.")


@dataclasses.dataclass(frozen=True)
class ModernBertConfig(Sizes):
    """Sizes of ModernBERT; the defaults are the base model's.

    Attributes:
        intermediate_size: F, the width of each of the two halves of the gated feed-forward layer.
        attention_output_dropout_prob: dropout behind the attention's last matrix.
        global_attn_every_n_layers: layer 0 and every n-th after it are global, the others local.
        layer_types: `KINDS` of each layer, if this rule does not give them; else None.
        local_attention: even; in a local layer a token sees half as many tokens on each side.
        global_rope_theta, local_rope_theta: the base of the rotary angles of a kind of layer.
        norm_bias, attention_bias, mlp_bias: whether norms, and the matrices of a part, have biases.
        classifier_pooling: what the pooler reads: "cls", the first token, or "mean", all tokens.
        classifier_activation, classifier_bias: of the hidden layer in every head.
        decoder_bias: whether each token of the vocabulary has a bias in the language model.
        quantisation: rounding to a few bits, or None.
    """

    distinctive_keys: ClassVar = ("global_rope_theta", "local_attention")
    added_keys: ClassVar = ("layer_types", "quantisation")
    unseen_keys: ClassVar = (
        *UNSEEN_KEYS, "global_attn_every_n_layers", "layer_types", "local_attention",
        "classifier_pooling", "classifier_activation")
    dropout_keys: ClassVar = ("hidden_dropout_prob", "attention_output_dropout_prob")
    absent_names: ClassVar = ("type_vocab_size",)
    uncased: ClassVar = {}
    own_presets: ClassVar = {
        "base": {}, "large": {"hidden_size": 1024, "num_hidden_layers": 28,
                              "num_attention_heads": 16, "intermediate_size": 2624}}

    vocab_size: int = whole(50368, "tokens")
    hidden_size: int = whole(768)
    num_hidden_layers: int = whole(22, "layers")
    num_attention_heads: int = whole(12, "heads")
    intermediate_size: int = whole(1152, "inner width")
    hidden_act: str = one_of("gelu_erf", ACTIVATIONS)
    embedding_dropout_prob: float = fraction(0.0)
    hidden_dropout_prob: float = fraction(0.0)
    attention_probs_dropout_prob: float = fraction(0.0)
    attention_output_dropout_prob: float = fraction(0.0)
    max_position_embeddings: int = whole(8192, "positions")
    initializer_range: float = fraction(0.02, below=10)
    layer_norm_eps: float = fraction(1e-5)
    global_attn_every_n_layers: int = whole(3, "layers")
    layer_types: tuple[str, ...] | None = None
    local_attention: int = whole(128, "positions", least=2)
    global_rope_theta: float = fraction(160_000.0, below=_MOST)
    local_rope_theta: float = fraction(10_000.0, below=_MOST)
    norm_bias: bool = switch(False)
    attention_bias: bool = switch(False)
    mlp_bias: bool = switch(False)
    classifier_pooling: str = one_of("cls", ("cls", "mean"))
    classifier_activation: str = one_of("gelu_erf", ACTIVATIONS)
    classifier_bias: bool = switch(False)
    decoder_bias: bool = switch(True)
    model_type: str = one_of("modernbert", ("modernbert",))
    quantisation: Quantisation | None = fitted(None, parse_quantisation)

    has_segments = adds_positions = False
    pooler_type, can_be_rounded = "first_token_transform", True

    def __post_init__(self):
        super().__post_init__()
        check_sizes(self)
        check_rotary(self, _THETAS)
        if self.local_attention % 2:
            raise InputError(f"local_attention must be even, since half of it lies on each side of "
                             f"a token, not {self.local_attention}.")
        kinds = self.layer_types
        if kinds is None:
            return
        if not isinstance(kinds, (list, tuple)) or any(kind not in KINDS for kind in kinds):
            raise InputError(f"layer_types must be a list of {' and '.join(KINDS)}, not {kinds!r}.")
        if len(kinds) != self.num_hidden_layers:
            raise InputError(f"layer_types names {counted(len(kinds), 'layer')}, but "
                             f"num_hidden_layers is {self.num_hidden_layers}.")
        object.__setattr__(self, "layer_types", None)
        if tuple(kinds) != self.kinds:      # else the rule gives them
            object.__setattr__(self, "layer_types", tuple(kinds))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each layer, one of `KINDS`."""
        return self.layer_types or tuple(
            LOCAL if i % self.global_attn_every_n_layers else GLOBAL
            for i in range(self.num_hidden_layers))

    @property
    def thetas(self) -> dict[str, float]:
        """The base of the rotary angles of each kind of layer."""
        return {GLOBAL: self.global_rope_theta, LOCAL: self.local_rope_theta}

    @property
    def has_local_layers(self) -> bool:      # type: ignore[override]
        return LOCAL in self.kinds

    @property
    def window(self) -> int:
        """The farthest distance of two tokens that see each other in a local layer."""
        return self.local_attention // 2

    @property
    def head_initializer(self) -> Any:      # type: ignore[override]
        """Keras's description of the initial distribution of the matrices of heads."""
        return truncated_normal(self.hidden_size**-0.5)

    @property
    def output_initializer(self) -> Any:
        """The same, of the last matrix of each part of a layer, and of the pooler."""
        return truncated_normal(self.initializer_range / (2 * self.num_hidden_layers)**0.5)

    @property
    def own_letters(self) -> dict[str, int]:      # type: ignore[override]
        """The sizes of the joined matrices: q of queries, keys and values, g of gate and input."""
        return {"q": 3 * self.hidden_size, "g": 2 * self.intermediate_size}

    @property
    def absent_weights(self) -> tuple[str, ...]:      # type: ignore[override]
        present = {"masked_lm/output_bias": self.decoder_bias,
                   "masked_lm/transform/dense/bias": self.classifier_bias,
                   "masked_lm/transform/LayerNorm/beta": self.norm_bias}
        return tuple(name for name in present if not present[name])

    def layers_without(self, name: str) -> set[int]:
        """See `Sizes`; the first layer reads the embeddings as their norm leaves them."""
        return {0} if "/attention/LayerNorm" in name else set()

    def of_layers(self, layers: Sequence[int]) -> dict[str, Any]:
        if layers[0] or 0 in layers[1:]:
            raise InputError("layer 0 of a modernbert is alone without a norm, so it must be the "
                             "first of the layers, and no later one; begin with layer 0.")
        return {"layer_types": [self.kinds[layer] for layer in layers]}

    def weights(self) -> dict[str, str]:
        shapes, layer = {"embeddings/word_embeddings": "VE"}, "encoder/layer_{i}"
        for name, shape, has_bias in (
                ("embeddings/LayerNorm", "H", self.norm_bias),
                (f"{layer}/attention/LayerNorm", "H", self.norm_bias),
                (f"{layer}/LayerNorm", "H", self.norm_bias),
                (f"{layer}/attention/self/qkv", "Hq", self.attention_bias),
                (f"{layer}/attention/output/dense", "HH", self.attention_bias),
                (f"{layer}/intermediate/dense", "Hg", self.mlp_bias),
                (f"{layer}/output/dense", "IH", self.mlp_bias),
                ("encoder/final_norm", "H", self.norm_bias),
                ("pooler/dense", "HH", self.classifier_bias),
                ("pooler/LayerNorm", "H", self.norm_bias)):
            weight, bias = ("gamma", "beta") if shape == "H" else ("kernel", "bias")
            shapes[f"{name}/{weight}"] = shape
            if has_bias:
                shapes[f"{name}/{bias}"] = shape[-1]
        return shapes


def truncated_normal(spread: float) -> dict[str, Any]:
    """Keras's description of a normal distribution, cut at twice its standard deviation."""
    return {"class_name": "TruncatedNormal", "config": {"mean": 0.0, "stddev": spread}}
