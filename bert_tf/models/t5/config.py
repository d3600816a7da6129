"""The sizes of T5 (arXiv:1910.10683), under the names of its gin files and of Hugging Face."""

import dataclasses
from typing import Any, ClassVar

from bert_tf.config.sizes import Sizes, fraction, one_of, switch, whole
from bert_tf.errors import InputError
from bert_tf.models.fixed_patterns.config import as_patterns


def _size(width, feed_forward, head_size, heads, layers, **values):
    return {"d_model": width, "d_ff": feed_forward, "d_kv": head_size, "num_heads": heads,
            "num_layers": layers, **values}


# The second releases were trained without dropout; it is switched on again to fine-tune.
_SECOND = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "dropout_rate": 0.0}
T5_PRESETS: dict[str, dict[str, Any]] = {
    "small": _size(512, 2048, 64, 8, 6),
    "base": _size(768, 3072, 64, 12, 12),
    "large": _size(1024, 4096, 64, 16, 24),
    "3b": _size(1024, 16384, 128, 32, 24),
    "11b": _size(1024, 65536, 128, 128, 24),
    "small_v1_1": _size(512, 1024, 64, 6, 8, **_SECOND),
    "base_v1_1": _size(768, 2048, 64, 12, 12, **_SECOND),
    "large_v1_1": _size(1024, 2816, 64, 16, 24, **_SECOND),
    "xl_v1_1": _size(2048, 5120, 64, 32, 24, **_SECOND),
    "xxl_v1_1": _size(4096, 10240, 64, 64, 24, **_SECOND),
}


@dataclasses.dataclass(frozen=True)
class T5Config(Sizes):
    """Sizes of T5; the defaults are its first small release's.

    Attributes:
        vocab_size: V, the rows of the table of words, in the original a multiple of 128; the
            softmax includes rows without a piece.
        d_kv: D, the width of a head; N D need not be H.
        num_layers: layers of each stack.
        num_decoder_layers: layers of the decoder; None: `num_layers`.
        architecture: "encoder_decoder"; or one stack of decoder layers without an encoder,
            "language_model", or "prefix_lm", where the tokens of a given part attend to both sides
            (section 3.2).
        feed_forward_proj: "relu", or the second releases' "gated-gelu" (T5.1.1).
        tie_word_embeddings: whether the output matrix is the table of words, as at first.
        initializer_factor: factor of the standard deviations of all initial matrices.
        fixed_heads: the `PATTERNS` of the first F heads of each layer of the encoder, which have
            neither queries nor keys (arXiv:2002.10260).
    """

    common_names: ClassVar = {
        "hidden_size": "d_model", "intermediate_size": "d_ff", "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads", "hidden_dropout_prob": "dropout_rate"}
    absent_names: ClassVar = ("max_position_embeddings", "type_vocab_size",
                              "attention_probs_dropout_prob")
    own_presets: ClassVar = T5_PRESETS
    vocab_multiple: ClassVar = 128

    added_keys: ClassVar = ("fixed_heads",)
    distinctive_keys: ClassVar = ("d_kv",)
    unseen_keys: ClassVar = ("num_heads", "relative_attention_max_distance", "layer_norm_epsilon",
                             "architecture", "fixed_heads")
    has_tied_lm: ClassVar = True

    vocab_size: int = whole(32_128, "tokens")
    d_model: int = whole(512)
    d_kv: int = whole(64)
    d_ff: int = whole(2048, "inner width")
    num_layers: int = whole(6, "layers")
    num_decoder_layers: int | None = whole(None, "layers")
    num_heads: int = whole(8, "heads")
    relative_attention_num_buckets: int = whole(32)
    relative_attention_max_distance: int = whole(128, "positions")
    dropout_rate: float = fraction(0.1)
    layer_norm_epsilon: float = fraction(1e-6)
    initializer_factor: float = fraction(1.0, below=1000)
    feed_forward_proj: str = one_of("relu", ("relu", "gated-gelu"))
    tie_word_embeddings: bool = switch(True)
    architecture: str = one_of("encoder_decoder", (
        "encoder_decoder", "language_model", "prefix_lm"))
    model_type: str = one_of("t5", ("t5",))
    fixed_heads: tuple[str, ...] = ()

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "fixed_heads", as_patterns(self.fixed_heads))
        if self.fixed_heads and not (self.has_encoder and self.learned_heads > 0):
            raise InputError(f"fixed_heads must be fewer than num_heads ({self.num_heads}), and "
                             "are of an encoder; name fewer, or none without an encoder.")
        if self.has_encoder is False and self.num_decoder_layers is not None:
            raise InputError("num_decoder_layers is only for the architecture encoder_decoder; "
                             "give the layers of a single stack as num_layers.")

    def check_reads_texts(self, source: str) -> None:
        """Raises InputError if there is no encoder, which gives a text's vectors."""
        if not self.has_encoder:
            raise InputError(f"{source}: the architecture {self.architecture} has no encoder; take "
                             "an encoder_decoder.")

    def check_takes_heads(self, source: str) -> None:
        """Raises InputError: tasks are texts."""
        raise InputError(f"{source}: T5 has no task heads, since it writes answers as text; "
                         "fine-tune it with bert-finetune --task_kind=text_to_text.")

    # The heads of the encoder's layers that have queries and keys.
    learned_heads = property(lambda self: self.num_heads - len(self.fixed_heads))
    # Whether there is an encoder, which the decoder attends to.
    has_encoder = property(lambda self: self.architecture == "encoder_decoder")
    # Whether the feed-forward network multiplies two hidden layers.
    is_gated = property(lambda self: self.feed_forward_proj == "gated-gelu")
    hidden_names = property(lambda self: ("wi_0", "wi_1") if self.is_gated else ("wi",))
    decoder_layers = property(lambda self: self.num_decoder_layers or self.num_layers)
    # The factor of the decoder's output before the word embeddings predict.
    logit_scale = property(lambda self: self.d_model**-0.5 if self.tie_word_embeddings else 1.0)

    @property
    def record_features(self) -> tuple[str, ...]:
        """The features of records that it reads in addition to every decoder's."""
        return {"encoder_decoder": ("encoder_input_tokens",), "language_model": (),
                "prefix_lm": ("decoder_causal_attention",)}[self.architecture]

    @property
    def stacks(self) -> dict[str, int]:     # type: ignore[override]
        """The number of layers of each stack, by its name."""
        if not self.has_encoder:
            return {"decoder": self.decoder_layers}
        return {"encoder": self.num_layers, "decoder": self.decoder_layers}

    # The names that code for all networks uses.
    hidden_size = embedding_width = property(lambda self: self.d_model)
    intermediate_size = property(lambda self: self.d_ff)
    num_hidden_layers = depth = property(lambda self: self.num_layers)
    num_attention_heads = property(lambda self: self.num_heads)
    head_size = property(lambda self: self.d_kv)
    layer_norm_eps = property(lambda self: self.layer_norm_epsilon)
    # Of heads on top, which T5 does not have.
    initializer_range: ClassVar = 0.02
    hidden_act: ClassVar = "relu"

    @property
    def layer_weights(self) -> list[tuple[int, int]]:
        """The numbers of the weights of each layer of a stack (see `Sizes`)."""
        return [(i, i) for i in range(max(self.num_layers, self.decoder_layers))]

    def weights(self) -> dict[str, str]:
        attention = {"layer_norm/scale": "H", "query/kernel": "HZ", "key/kernel": "HZ",
                     "value/kernel": "HZ", "output/kernel": "ZH"}
        of_stacks = {"encoder": attention | dict.fromkeys(("query/kernel", "key/kernel"), "HA"),
                     "decoder": attention}
        feed_forward = {
            "layer_norm/scale": "H", **{f"{name}/kernel": "HI" for name in self.hidden_names},
            "wo/kernel": "IH"}
        shapes = {"embeddings/word_embeddings": "VH"}
        if not self.tie_word_embeddings:
            shapes["logits/kernel"] = "HV"
        for stack in self.stacks:
            parts = {"attention": of_stacks[stack]}
            if stack == "decoder" and self.has_encoder:
                parts["cross_attention"] = attention
            parts["feed_forward"] = feed_forward
            shapes |= {
                f"{stack}/relative_attention_bias/weight": "NO", f"{stack}/layer_norm/scale": "H",
                **{f"{stack}/layer_{{i}}/{part}/{name}": shape
                   for part, weights in parts.items() for name, shape in weights.items()}}
        return shapes
