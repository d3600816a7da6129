"""The sizes of a network, under the names of the original's JSON file."""

import dataclasses
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from bert_tf.errors import InputError
from bert_tf.sizes import TASK_TYPES, EncoderSizes, Sizes, read_file

T = TypeVar("T", bound=Sizes)

# "gelu" is the tanh approximation of google-research/bert, whatever other libraries mean by it;
# the exact form, which Hugging Face calls "gelu", is "gelu_erf" here.
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear")

# name: layers, width. Heads are 64 wide and the feed-forward layer is four times the width
# (arXiv:1908.08962, table 1; base and large as in arXiv:1810.04805).
PRESETS = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}

# More weights than this are a slip that would exhaust the memory.
_MOST_WEIGHTS = 50_000_000_000


def _check_sizes(config):
    """Raises InputError unless all heads of attention have one width and the weights fit."""
    if config.hidden_size % config.num_attention_heads:
        raise InputError(f"num_attention_heads ({config.num_attention_heads}) must divide "
                         f"hidden_size ({config.hidden_size}).")
    if config.num_weights > _MOST_WEIGHTS:
        raise InputError(f"these sizes make {config.num_weights:,} weights, more than any BERT's "
                         f"({_MOST_WEIGHTS:,}).")


def _preset(cls: type[T], name: str, sizes: Mapping[str, Any] = MappingProxyType({}),
            presets: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
            **overrides: Any) -> T:
    """The published size `name`, uncased English.

    Args:
        name: of a size of BERT (tiny, mini, small, medium, base, large), or in `presets`.
        sizes: values that come before BERT's, those of `Recipe.sizes`.
        presets: by name, values that come before both, those of `Recipe.presets`.
        overrides: values that come before all of these.

    Raises:
        InputError: there is no such size, or a value is refused.
    """
    values: dict[str, Any] = {"vocab_size": 30522, "type_vocab_size": 2,
                              "model_type": cls.model_type}     # type: ignore[attr-defined]
    if "type_vocab_size" not in {field.name for field in dataclasses.fields(cls)}:  # type: ignore
        del values["type_vocab_size"]
    if name in PRESETS:
        layers, width = PRESETS[name]
        values |= {"hidden_size": width, "num_hidden_layers": layers,
                   "num_attention_heads": width // 64, "intermediate_size": 4 * width}
    elif name not in presets:
        raise InputError(f"there is no size {name!r}; choose from "
                         f"{', '.join(dict.fromkeys([*PRESETS, *presets]))}.")
    return cls.from_dict({**values, **sizes, **presets.get(name, {}), **overrides})


@dataclasses.dataclass(frozen=True)
class EncoderConfig(EncoderSizes):
    """The sizes of a BERT encoder, or of a relative's; the defaults are those of
    google-research/bert's BertConfig.

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
            token, or "first_token", that vector itself.
        use_task_id: whether an embedding of the task is added to each token's (arXiv:1907.12412).
        task_type_vocab_size: how many tasks it tells apart; 3 if None, as in Hugging Face's files.
        directionality: "bidi", or "left_to_right": a token attends to itself and to the tokens on
            its left only (arXiv:1810.04805, section 5.1). The last token, which alone has seen the
            others, then takes the place of the first in the pooler.

    Raises:
        InputError: a value has the wrong type or can't be built; names the key.
    """

    whole_numbers: ClassVar = {
        "vocab_size": 10_000_000, "hidden_size": 65_536, "num_hidden_layers": 1_024,
        "num_attention_heads": 1_024, "intermediate_size": 1_048_576,
        "max_position_embeddings": 1_048_576, "type_vocab_size": 65_536,
        "embedding_size": 65_536, "num_hidden_groups": 1_024, "inner_group_num": 64,
        "task_type_vocab_size": 65_536}
    fractions: ClassVar = {"hidden_dropout_prob": 1, "attention_probs_dropout_prob": 1,
                           "initializer_range": 10, "layer_norm_eps": 1}
    choices: ClassVar = {"hidden_act": ACTIVATIONS,
                         "model_type": ("bert", "roberta", "albert", "electra", "spanbert",
                                        "structbert", "ernie"),
                         "shared_parts": ("all", "attention", "feed_forward"),
                         "pooler_type": ("first_token_transform", "first_token"),
                         "use_task_id": (False, True),
                         "directionality": ("bidi", "left_to_right")}
    optional: ClassVar = ("embedding_size", "num_hidden_groups", "task_type_vocab_size")
    added_keys: ClassVar[tuple[str, ...]] = (
        "layer_norm_eps", "model_type", *optional, "inner_group_num", "shared_parts",
        "pooler_type", "use_task_id", "directionality")
    unseen_keys: ClassVar[tuple[str, ...]] = (
        "num_attention_heads", "hidden_act", "layer_norm_eps")
    # These describe a pooler that the original never builds, and parts of ALBERT that
    # google-research/albert never reads.
    unused_keys: ClassVar = ("pooler_fc_size", "pooler_num_attention_heads",
                             "pooler_num_fc_layers", "pooler_size_per_head", "down_scale_factor",
                             "net_structure_type", "gap_size", "num_memory_blocks", "ln_type")

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 16
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    model_type: str = "bert"
    embedding_size: int | None = None
    num_hidden_groups: int | None = None
    inner_group_num: int = 1
    shared_parts: str = "all"
    pooler_type: str = "first_token_transform"
    use_task_id: bool = False
    task_type_vocab_size: int | None = None
    directionality: str = "bidi"

    def __post_init__(self):
        super().__post_init__()
        _check_sizes(self)

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
        return values | ({"model_type": self.model_type} if "num_hidden_groups" in values else {})

    preset: ClassVar[Any] = classmethod(_preset)


@dataclasses.dataclass(frozen=True)
class UniversalConfig(Sizes):
    """The sizes of a Universal Transformer's encoder, under BERT's names; what BERT has not, under
    those of tensorflow/tensor2tensor.

    Attributes:
        num_hidden_layers: how many steps apply the one layer.
        recurrence_type: "basic", all steps for all positions, or "act", adaptive halting.
        step_timing_signal_type: the signal of a step, "learned" or "sinusoid".
        act_type: how adaptive halting mixes the steps' outputs with weights u: "basic",
            new * u + old * (1 - u), or "accumulated", their sum, as in arXiv:1603.08983.
        act_max_steps: the most steps of adaptive halting; None: twice `num_hidden_layers`.
        act_epsilon: a position ends when its probability of having ended is above 1 minus this.
        act_loss_weight: what steps cost in the loss of pre-training.
        act_halting_bias_init: first value of the bias of a step's probability to be the last.

    Raises:
        InputError: a value has the wrong type or can't be built; names the key.
    """

    whole_numbers: ClassVar = {
        name: EncoderConfig.whole_numbers[name] for name in (
            "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
            "intermediate_size", "max_position_embeddings", "type_vocab_size")} | {
                "act_max_steps": 1_024}
    fractions: ClassVar = {**EncoderConfig.fractions, "act_epsilon": 1, "act_loss_weight": 100,
                           "act_halting_bias_init": 100}
    choices: ClassVar = {"hidden_act": ACTIVATIONS, "model_type": ("universal",),
                         "recurrence_type": ("basic", "act"),
                         "step_timing_signal_type": ("learned", "sinusoid"),
                         "act_type": ("basic", "accumulated")}
    optional: ClassVar = ("act_max_steps",)
    unused_keys: ClassVar = ()
    distinctive_keys: ClassVar = ("recurrence_type", "step_timing_signal_type")
    unseen_keys: ClassVar = (*EncoderConfig.unseen_keys, "num_hidden_layers", "recurrence_type",
                             "step_timing_signal_type", "act_type", "act_max_steps", "act_epsilon")
    # As of an encoder whose layers share all their weights, and that knows no tasks.
    shares_layers: ClassVar = True
    inner_group_num: ClassVar = 1
    task_types: ClassVar = 0

    vocab_size: int
    hidden_size: int = 1024
    num_hidden_layers: int = 6
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    hidden_act: str = "relu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-6
    model_type: str = "universal"
    recurrence_type: str = "basic"
    step_timing_signal_type: str = "learned"
    act_type: str = "basic"
    act_max_steps: int | None = None
    act_epsilon: float = 0.01
    act_loss_weight: float = 0.01
    act_halting_bias_init: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        _check_sizes(self)

    @property
    def num_weights(self) -> int:
        """The number of weights in the matrices, which are nearly all."""
        return self.hidden_size * (self.vocab_size + self.type_vocab_size + self.depth
                                   + 5 * self.hidden_size + 2 * self.intermediate_size)

    @property
    def halts(self) -> bool:
        """Whether each position ends by itself."""
        return self.recurrence_type == "act"

    @property
    def depth(self) -> int:
        """T, the most steps that a position takes."""
        return (self.act_max_steps or 2 * self.num_hidden_layers) if self.halts else (
            self.num_hidden_layers)

    @property
    def layer_weights(self) -> list[tuple[int, int]]:
        """For each step the numbers of its weights (see `EncoderSizes`)."""
        return [(0, 0)] * self.depth

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def embedding_width(self) -> int:
        """The width of the embeddings."""
        return self.hidden_size

    @property
    def learned_heads(self) -> int:
        """The number of heads that have queries and keys."""
        return self.num_attention_heads

    preset: ClassVar[Any] = classmethod(_preset)


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


@dataclasses.dataclass(frozen=True)
class GPTConfig(EncoderSizes):
    """The sizes of GPT (Radford et al. 2018); the defaults are those of the released model.

    Attributes:
        vocab_size: V, the special tokens _start_, _delimiter_ and _classify_ included.
        embedding_dropout_prob: dropout of the table of words and positions itself.

    Raises:
        InputError: a value has the wrong type or can't be built; names the key.
    """

    whole_numbers: ClassVar = {
        name: EncoderConfig.whole_numbers[name] for name in (
            "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
            "intermediate_size", "max_position_embeddings")}
    fractions: ClassVar = {"embedding_dropout_prob": 1, **EncoderConfig.fractions}
    choices: ClassVar = {"hidden_act": ACTIVATIONS, "model_type": ("openai-gpt",)}
    unused_keys: ClassVar = ()

    vocab_size: int = 40481
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    embedding_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-5
    model_type: str = "openai-gpt"

    # What else `EncoderSizes` and the layers ask for, which GPT has not.
    type_vocab_size, inner_group_num, use_task_id = 0, 1, False
    embedding_size = num_hidden_groups = task_type_vocab_size = None
    shared_parts, pooler_type, directionality = "all", "first_token", "left_to_right"
    truncates_initializer, has_tied_lm = False, True

    def __post_init__(self):
        super().__post_init__()
        _check_sizes(self)

    preset: ClassVar[Any] = classmethod(_preset)


# What google-research/albert takes for a key that its file lacks.
ALBERT = {"model_type": "albert", "embedding_size": 128, "hidden_size": 4096,
          "num_hidden_groups": 1, "num_attention_heads": 64, "intermediate_size": 16384,
          "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "type_vocab_size": 2}

# The configuration of each `model_type`; the first is that of files which name none.
CONFIGS: dict[str, Any] = {
    **dict.fromkeys(EncoderConfig.choices["model_type"], EncoderConfig),
    "fixed_patterns": FixedPatternConfig, "universal": UniversalConfig, "openai-gpt": GPTConfig}


def published(name: str, sizes: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]],
              **overrides: Any) -> Sizes:
    """The size `name` of a recipe; see `EncoderConfig.preset`.

    Raises:
        InputError: there is no such size, or a value is refused.
    """
    kind: Any = CONFIGS[sizes.get("model_type", next(iter(CONFIGS)))]
    return kind.preset(name, sizes, presets, **overrides)


def config_from_dict(values: dict[str, Any]) -> Sizes:
    """The configuration that `values` describe: that of their `model_type`, else of their keys.

    Raises:
        InputError: the model type is unknown, or a value is refused.
    """
    model_type = values.get("model_type", next(
        (name for name, cls in CONFIGS.items()
         if any(key in values for key in cls.distinctive_keys)), next(iter(CONFIGS))))
    if not isinstance(model_type, str) or model_type not in CONFIGS:
        raise InputError(f"model_type {model_type!r} is unknown; choose from "
                         f"{', '.join(CONFIGS)}.")
    return CONFIGS[model_type].from_dict(values)


def read_config(path: str | os.PathLike) -> Sizes:
    """The configuration in a file such as `bert_config.json`.

    Raises:
        InputError: see `read_json` and `config_from_dict`; names the file.
    """
    return read_file(path, config_from_dict)
