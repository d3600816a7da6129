"""The sizes of BERT's encoder, and of its relatives'."""

import dataclasses
from typing import Any, ClassVar, Self

from bert_tf.config.encoder_sizes import TASK_TYPES, BertSizes, EncoderSizes
from bert_tf.config.pruned import as_pruned_heads, check_intermediate_sizes
from bert_tf.config.quantisation import Quantisation, settle
from bert_tf.config.sizes import ACTIVATIONS, UNSEEN_KEYS, check_sizes, preset
from bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class EncoderConfig(BertSizes, EncoderSizes):
    """The sizes of a BERT encoder, or of a relative's.

    Attributes:
        model_type: Hugging Face's name of the architecture, or "spanbert" or "structbert", which
            are of its architecture bert; a key of `CONFIGS`.
        embedding_size: E, the width of the embeddings; H if None. Where they differ, a dense layer
            leads from one to the other (arXiv:1909.11942, section 3.1).
        num_hidden_groups: into how many groups the layers fall; those of a group share weights.
            None: each layer has weights of its own.
        inner_group_num: how many blocks a layer is, each with weights of its own.
        shared_parts: what the layers of a group share: "all", "attention" or "feed_forward"
            (arXiv:1909.11942, table 4).
        pooler_type: "first_token_transform", a dense layer with tanh on the vector of the first
            token; "first_token_relu", the same with ReLU (DistilBERT); "first_token_tanh_relu",
            with both (TinyBERT); or "first_token", that vector itself.
        use_task_id: whether an embedding of the task is added to each token's (arXiv:1907.12412).
        task_type_vocab_size: how many tasks it tells apart; 3 if None, as in Hugging Face's files.
        directionality: "bidi", or "left_to_right": a token attends to itself and to the tokens on
            its left only (arXiv:1810.04805, section 5.1). The last token, which alone has seen the
            others, then takes the place of the first in the pooler.
        quantisation: what is rounded to a few bits, a `Quantisation`; None if nothing is.
        pruned_heads: the heads that were cut: a mapping from the number of an attention, as
            `layer_weights` counts them, to the numbers that its heads had (arXiv:1905.10650).
            Kept as pairs in order. As in Hugging Face's files.
        intermediate_sizes: F of each feed-forward network where units were cut from some;
            `intermediate_size` of all if None.

    Raises:
        InputError: a value has the wrong type or can't be built; names the key.
    """

    whole_numbers: ClassVar = {
        **BertSizes.whole_numbers, "num_hidden_groups": 1_024, "inner_group_num": 64,
        "task_type_vocab_size": 65_536}
    choices: ClassVar = {"hidden_act": ACTIVATIONS,
                         "model_type": ("bert", "roberta", "albert", "electra", "spanbert",
                                        "structbert", "ernie", "distilbert"),
                         "shared_parts": ("all", "attention", "feed_forward"),
                         "pooler_type": ("first_token_transform", "first_token",
                                         "first_token_relu", "first_token_tanh_relu"),
                         "use_task_id": (False, True),
                         "directionality": ("bidi", "left_to_right")}
    optional: ClassVar = ("embedding_size", "num_hidden_groups", "task_type_vocab_size")
    # What the sizes of single layers are where heads or units were cut.
    pruned_keys: ClassVar = ("pruned_heads", "intermediate_sizes")
    added_keys: ClassVar[tuple[str, ...]] = (
        "layer_norm_eps", "model_type", *optional, "inner_group_num", "shared_parts",
        "pooler_type", "use_task_id", "directionality", "quantisation",
        *pruned_keys)
    unseen_keys: ClassVar[tuple[str, ...]] = UNSEEN_KEYS
    # These describe a pooler that the original never builds, and parts of ALBERT that
    # google-research/albert never reads.
    unused_keys: ClassVar = ("pooler_fc_size", "pooler_num_attention_heads",
                             "pooler_num_fc_layers", "pooler_size_per_head", "down_scale_factor",
                             "net_structure_type", "gap_size", "num_memory_blocks", "ln_type")

    num_hidden_groups: int | None = None
    inner_group_num: int = 1
    shared_parts: str = "all"
    pooler_type: str = "first_token_transform"
    use_task_id: bool = False
    task_type_vocab_size: int | None = None
    directionality: str = "bidi"
    quantisation: Quantisation | None = None
    pruned_heads: tuple[tuple[int, tuple[int, ...]], ...] = ()
    intermediate_sizes: tuple[int, ...] | None = None

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "pruned_heads", as_pruned_heads(self))
        check_intermediate_sizes(self)
        check_sizes(self)
        if self.model_type == "distilbert" and self.pooler_type != "first_token_relu":
            raise InputError(f"pooler_type is {self.pooler_type}; with model_type distilbert it "
                             "must be first_token_relu.")
        settle(self)

    def filled(self) -> Self:
        """The same sizes with numbers in place of None, as the files of ALBERT have them."""
        return dataclasses.replace(
            self, embedding_size=self.embedding_width,
            task_type_vocab_size=self.task_type_vocab_size or TASK_TYPES,
            num_hidden_groups=self.num_hidden_groups or self.num_hidden_layers)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """As `Sizes.from_dict`; a file of google-research/albert names no model type."""
        if "num_hidden_groups" in values and "model_type" not in values:
            values = {**ALBERT, **values}
        return super().from_dict(values)

    def to_dict(self) -> dict[str, Any]:
        """As `Sizes.to_dict`; with the model type where its absence would mean another one."""
        values = super().to_dict()
        if self.quantisation:
            values["quantisation"] = self.quantisation.to_dict()
        if "pruned_heads" in values:
            values["pruned_heads"] = {str(layer): list(heads)
                                      for layer, heads in self.pruned_heads}
        if self.intermediate_sizes:
            values["intermediate_sizes"] = list(self.intermediate_sizes)
        return values | ({"model_type": self.model_type} if "num_hidden_groups" in values else {})

    preset: ClassVar[Any] = classmethod(preset)


# What a head with a fixed pattern looks at (arXiv:2002.10260): the token itself; the one before;
# the one after; those two and more before, the more the nearer; those two and more after; all, the
# more the nearer to the end; or to the start.
PATTERNS = ("current", "previous", "next", "left", "right", "end", "start")


@dataclasses.dataclass(frozen=True)
class FixedPatternConfig(EncoderConfig):
    """The sizes of a `FixedPatternEncoder`: those of BERT's encoder, and which heads look at fixed
    places.

    Attributes:
        fixed_heads: the patterns of the first F heads of each layer, of `PATTERNS`; one may come
            twice.
        empty_rows: what a token looks at where its pattern has nothing: "end", the first or last
            token; "zero", nothing.
        pattern_units: what patterns count, "tokens" or "words". For words the network reads the
            feature `token_boundary`.
    """

    choices: ClassVar = {**EncoderConfig.choices, "model_type": ("fixed_patterns",),
                         "empty_rows": ("end", "zero"), "pattern_units": ("tokens", "words")}
    added_keys: ClassVar = tuple(key for key in EncoderConfig.added_keys if key != "model_type")
    distinctive_keys: ClassVar = ("fixed_heads",)
    unseen_keys: ClassVar = (*EncoderConfig.unseen_keys, "fixed_heads", "empty_rows",
                             "pattern_units")

    model_type: str = "fixed_patterns"
    fixed_heads: tuple[str, ...] = PATTERNS
    empty_rows: str = "end"
    pattern_units: str = "tokens"

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.fixed_heads, (list, tuple)):
            raise InputError(f"fixed_heads must be a list, not {self.fixed_heads!r}.")
        object.__setattr__(self, "fixed_heads", tuple(self.fixed_heads))
        if self.pruned_heads:
            raise InputError("pruned_heads: heads are not cut from a network some of whose heads "
                             "look at fixed places; leave it out.")
        if self.is_causal:
            raise InputError("fixed_heads look at both sides of a token; directionality must be "
                             "bidi.")
        for name in self.fixed_heads:
            if name not in PATTERNS:
                raise InputError(f"fixed_heads: there is no pattern {name!r}; choose from "
                                 f"{', '.join(PATTERNS)}.")
        if len(self.fixed_heads) > self.num_attention_heads:
            raise InputError(f"fixed_heads names {len(self.fixed_heads)} heads of "
                             f"{self.num_attention_heads} (num_attention_heads); name fewer.")

    @property
    def learned_heads(self) -> int:
        return self.num_attention_heads - len(self.fixed_heads)

    @property
    def further_features(self) -> tuple[str, ...]:
        return ("token_boundary",) if self.pattern_units == "words" else ()

    def to_dict(self) -> dict[str, Any]:
        """As `Sizes.to_dict`, with lists as JSON has them."""
        return {**super().to_dict(), "fixed_heads": list(self.fixed_heads)}


# What google-research/albert takes for a key that its file lacks.
ALBERT = {"model_type": "albert", "embedding_size": 128, "hidden_size": 4096,
          "num_hidden_groups": 1, "num_attention_heads": 64, "intermediate_size": 16384,
          "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "type_vocab_size": 2}
