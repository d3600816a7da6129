"""The sizes of EuroBERT (arXiv:2503.05500)."""

import dataclasses
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
from bert_tf.errors import InputError
from bert_tf.models.modernbert.config import GLOBAL, ModernBertConfig, check_rotary


@dataclasses.dataclass(frozen=True)
class EuroBertConfig(Sizes):
    """Sizes of EuroBERT; names and defaults are those of transformers' EuroBertConfig.

    Attributes:
        num_key_value_heads: K, the heads of keys and values, each of which N / K heads of queries
            share; N if None.
        intermediate_size: F, the width of the gate and of what it multiplies.
        rope_theta: the base of the rotary angles.
        attention_bias, mlp_bias: whether the matrices of a part have biases; with mlp_bias, tokens
            of the vocabulary have one in the language model too.
        classifier_pooling: what a classifier of texts reads: "bos", the first token; "mean", all
            tokens; or "late", its hidden layer of all tokens.
        quantisation: rounding to a few bits, or None.
    """

    added_keys: ClassVar = ("quantisation",)
    distinctive_keys: ClassVar = ("num_key_value_heads",)
    unseen_keys: ClassVar = (*UNSEEN_KEYS, "rope_theta", "classifier_pooling")
    dropout_keys: ClassVar = ("attention_probs_dropout_prob",)
    absent_names: ClassVar = ("type_vocab_size", "hidden_dropout_prob")

    vocab_size: int = whole(128256, "tokens")
    hidden_size: int = whole(768)
    num_hidden_layers: int = whole(12, "layers")
    num_attention_heads: int = whole(12, "heads")
    num_key_value_heads: int | None = whole(None, "heads")
    intermediate_size: int = whole(3072, "inner width")
    hidden_act: str = one_of("silu", ACTIVATIONS)
    attention_probs_dropout_prob: float = fraction(0.0)
    max_position_embeddings: int = whole(8192, "positions")
    initializer_range: float = fraction(0.02, below=10)
    layer_norm_eps: float = fraction(1e-5)
    rope_theta: float = fraction(250_000.0, below=1e12)
    attention_bias: bool = switch(False)
    mlp_bias: bool = switch(False)
    classifier_pooling: str = one_of("late", ("late", "bos", "mean"))
    model_type: str = one_of("eurobert", ("eurobert",))
    quantisation: Quantisation | None = fitted(None, parse_quantisation)

    has_segments = adds_positions = truncates_initializer = ties_masked_lm = False
    pooler_type, can_be_rounded = "first_token_transform", True
    classifier_activation: ClassVar[str] = "gelu_erf"
    # What ModernBERT's layers also ask for.
    attention_output_dropout_prob = hidden_dropout_prob = 0.0
    output_initializer = None
    kinds = property(lambda self: (GLOBAL,) * self.num_hidden_layers)
    thetas = property(lambda self: {GLOBAL: self.rope_theta})
    own_letters = property(lambda self: {"q": self.qkv_width, "g": 2 * self.intermediate_size})
    # Whether each token of the vocabulary has a bias in the language model.
    decoder_bias = property(lambda self: self.mlp_bias)

    def __post_init__(self):
        super().__post_init__()
        check_sizes(self)
        check_rotary(self, ("rope_theta",))
        if self.num_attention_heads % self.key_value_heads:
            raise InputError(f"num_key_value_heads ({self.num_key_value_heads}) must divide "
                             f"num_attention_heads ({self.num_attention_heads}).")

    @property
    def key_value_heads(self) -> int:
        """K."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def shares_values(self) -> bool:      # type: ignore[override]
        """Whether several heads have the same values."""
        return self.key_value_heads < self.num_attention_heads

    @property
    def qkv_width(self) -> int:
        """The width of queries, keys and values of all heads."""
        return self.hidden_size + 2 * self.key_value_heads * self.head_size

    @property
    def absent_weights(self) -> tuple[str, ...]:      # type: ignore[override]
        hidden = ("dense/kernel", "dense/bias", "LayerNorm/gamma", "LayerNorm/beta")
        return (*(f"masked_lm/transform/{name}" for name in hidden),
                *("masked_lm/output_bias",) * (not self.decoder_bias))

    def weights(self) -> dict[str, str]:
        like: Any = ModernBertConfig(mlp_bias=self.mlp_bias, attention_bias=self.attention_bias,
                                     classifier_bias=True)
        renamed = {name.replace("LayerNorm/gamma", "layer_norm/scale").replace(
            "final_norm/gamma", "final_layer_norm/scale"): shape
            for name, shape in like.weights().items()}
        return {name: shape for name, shape in renamed.items()
                if name not in ("embeddings/layer_norm/scale", "pooler/layer_norm/scale")}
