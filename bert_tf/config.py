"""The sizes of a network, under the names of the original's JSON file."""

import dataclasses
import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from bert_tf.errors import InputError
from bert_tf.files import write_json

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


def read_json(path: str | os.PathLike) -> dict[str, Any]:
    """The JSON object in the file `path`, as a dict.

    Raises:
        InputError: the file is absent, isn't JSON (names the line), or holds no object.
    """
    try:
        with open(path, "rb") as file:
            return parse_json(file.read(), path)
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror}).") from error


def parse_json(content: bytes, source: str | os.PathLike) -> dict[str, Any]:
    """The JSON object in `content`, as a dict; errors call it `source`.

    Raises:
        InputError: `content` isn't JSON (names the line), or holds no object.
    """
    try:
        value = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: is not UTF-8 text.") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{source}, line {error.lineno}: is not valid JSON ({error.msg}).") from error
    except (ValueError, RecursionError) as error:   # a number or a nesting without end
        raise InputError(f"{source}: is not valid JSON ({error}).") from error
    if not isinstance(value, dict):
        raise InputError(f"{source}: must hold a JSON object such as {{\"vocab_size\": 30522}}.")
    return value


def differing_options(mine: dict, theirs: dict, defaults: dict) -> list[str]:
    """The names of the options in which two descriptions of a job differ.

    Jobs keep on disk what their results depend on, so that the next start can tell whether it goes
    on with the same work. A later version may know more options than the one that wrote the file,
    or fewer. An absent name therefore means its default, on either side.

    Args:
        mine: JSON values by name, those of this start.
        theirs: JSON values by name, those on disk.
        defaults: JSON values by name; a name that has no default means None where it is absent.

    Returns:
        Names, in the order of `mine`, then those only `theirs` has.
    """
    def value(options, name):
        return options[name] if name in options else defaults.get(name)

    # Through JSON, tuples become lists.
    mine, theirs, defaults = (json.loads(json.dumps(o)) for o in (mine, theirs, defaults))
    return [name for name in dict.fromkeys([*mine, *theirs])
            if value(mine, name) != value(theirs, name)]


def defaults_of(dataclass: type) -> dict:
    """The defaults of a dataclass's fields by name; fields without one are left out."""
    found = {}
    for field in dataclasses.fields(dataclass):
        if field.default is not dataclasses.MISSING:
            found[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory()
    return found


def settle(given: dict, *others: dict) -> dict:
    """Every option of `given` from the first dict that has it: the flags, then what was saved with
    a model, then the defaults. An option is None where a dict does not have it."""
    return {name: next((source[name] for source in (given, *others)
                        if source.get(name) is not None), None) for name in given}


def same_options(mine: dict, theirs: dict, defaults: dict) -> bool:
    """Whether two descriptions of a job have equal options; see `differing_options`."""
    return not differing_options(mine, theirs, defaults)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What describes a network: a frozen dataclass whose fields are the keys of a JSON file.

    Base of `EncoderConfig` and of the configurations of other networks.

    Attributes:
        whole_numbers: the largest value of each field that is a whole number of 1 or more; a
            larger one is a slip that would exhaust the memory.
        fractions: what each field that is a number of 0 or more must be below.
        choices: the values of each field that has a few.
        optional: the fields among `whole_numbers` that may be None.
        added_keys: fields that the original's code doesn't know; written only where the value is
            not the default.
        unused_keys: keys of released files that change nothing, and may have any value.
        fixed_keys: keys of released files for which one value only is built.
        distinctive_keys: keys that no other network's file has; none for the default network.

    Raises:
        InputError: a value has the wrong type or can't be built; names the key.
    """

    whole_numbers: ClassVar[dict[str, int]] = {}
    fractions: ClassVar[dict[str, float]] = {}
    choices: ClassVar[dict[str, tuple]] = {}
    optional: ClassVar[tuple[str, ...]] = ()
    added_keys: ClassVar[tuple[str, ...]] = ()
    unused_keys: ClassVar[tuple[str, ...]] = ("model_type",)
    fixed_keys: ClassVar[dict[str, Any]] = {}
    distinctive_keys: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self):
        for name, largest in self.whole_numbers.items():
            value = getattr(self, name)
            if value is None and name in self.optional:
                continue
            if type(value) is not int or not 1 <= value <= largest:
                raise InputError(f"{name} must be a whole number from 1 to {largest:,}, "
                                 f"not {value!r}.")
        for name, end in self.fractions.items():
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value < end:
                raise InputError(f"{name} must be a number from 0 to below {end}, not {value!r}.")
            object.__setattr__(self, name, float(value))
        for name, choices in self.choices.items():
            if getattr(self, name) not in choices:
                raise InputError(f"{name} must be one of {', '.join(choices)}, "
                                 f"not {getattr(self, name)!r}.")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From the original's keys; those of released files that change nothing are dropped.

        Raises:
            InputError: a key is unknown or missing, or its value is refused.
        """
        values = {key: value for key, value in values.items() if key not in cls.unused_keys}
        for key, only in cls.fixed_keys.items():
            if values.pop(key, only) != only:
                raise InputError(f"{key} must be {only!r}: no other form is built.")
        fields = dataclasses.fields(cls)
        known = [field.name for field in fields]
        for key in values:
            if key not in known:
                raise InputError(f"unknown key {key!r}; the keys are {', '.join(known)}.")
        for field in fields:
            if field.default is dataclasses.MISSING and field.name not in values:
                raise InputError(f"{field.name} is missing.")
        return cls(**values)

    @classmethod
    def from_json_file(cls, path: str | os.PathLike) -> Self:
        """From a file such as `bert_config.json`.

        Raises:
            InputError: see `read_json` and `from_dict`; names the file.
        """
        return _from_file(path, cls.from_dict)

    def to_dict(self) -> dict[str, Any]:
        """The original's keys and values, and `added_keys` that are not at their defaults."""
        return {name: value for name, value in dataclasses.asdict(self).items()
                if name not in self.added_keys or value != getattr(type(self), name)}

    def to_json_file(self, path: str | os.PathLike) -> None:
        """Writes the file that `from_json_file` reads, whole or not at all."""
        write_json(path, self.to_dict())


@dataclasses.dataclass(frozen=True)
class EncoderConfig(Sizes):
    """The sizes of a BERT encoder, or of a relative's; the defaults are those of
    google-research/bert's BertConfig.

    Attributes:
        model_type: Hugging Face's name of the architecture, a key of `CONFIGS`.
        embedding_size: E, the width of the embeddings; H if None. Where they differ, a dense layer
            leads from one to the other (arXiv:1909.11942, section 3.1).
        num_hidden_groups: into how many groups the layers fall; those of a group share weights.
            None: each layer has weights of its own.
        inner_group_num: how many blocks a layer is, each with weights of its own.
        shared_parts: what the layers of a group share: "all", "attention" or "feed_forward"
            (arXiv:1909.11942, table 4).
        pooler_type: "first_token_transform", a dense layer with tanh on the vector of the first
            token, or "first_token", that vector itself.

    Raises:
        InputError: a value has the wrong type or can't be built; names the key.
    """

    whole_numbers: ClassVar = {
        "vocab_size": 10_000_000, "hidden_size": 65_536, "num_hidden_layers": 1_024,
        "num_attention_heads": 1_024, "intermediate_size": 1_048_576,
        "max_position_embeddings": 1_048_576, "type_vocab_size": 65_536,
        "embedding_size": 65_536, "num_hidden_groups": 1_024, "inner_group_num": 64}
    fractions: ClassVar = {"hidden_dropout_prob": 1, "attention_probs_dropout_prob": 1,
                           "initializer_range": 10, "layer_norm_eps": 1}
    choices: ClassVar = {"hidden_act": ACTIVATIONS,
                         "model_type": ("bert", "roberta", "albert", "electra"),
                         "shared_parts": ("all", "attention", "feed_forward"),
                         "pooler_type": ("first_token_transform", "first_token")}
    optional: ClassVar = ("embedding_size", "num_hidden_groups")
    added_keys: ClassVar = ("layer_norm_eps", "model_type", *optional, "inner_group_num",
                            "shared_parts", "pooler_type")
    # These describe a pooler that the original never builds, and parts of ALBERT that
    # google-research/albert never reads.
    unused_keys: ClassVar = ("pooler_fc_size", "pooler_num_attention_heads",
                             "pooler_num_fc_layers", "pooler_size_per_head", "down_scale_factor",
                             "net_structure_type", "gap_size", "num_memory_blocks", "ln_type")
    fixed_keys: ClassVar = {"directionality": "bidi"}

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

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_size % self.num_attention_heads:
            raise InputError(f"num_attention_heads ({self.num_attention_heads}) must divide "
                             f"hidden_size ({self.hidden_size}).")
        if self.num_weights > _MOST_WEIGHTS:
            raise InputError(f"these sizes make {self.num_weights:,} weights, more than any BERT's "
                             f"({_MOST_WEIGHTS:,}).")

    @property
    def num_weights(self) -> int:
        """The number of weights in the encoder's matrices, which are nearly all."""
        tables = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        width, hidden = self.embedding_width, self.hidden_size
        attentions, feed_forwards = map(len, map(set, zip(*self.layer_weights)))
        return (tables * width + hidden * (
            4 * hidden * attentions + 2 * self.intermediate_size * feed_forwards
            + (width if self.projects else 0) + (hidden if self.has_pooler else 0)))

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def embedding_width(self) -> int:
        """E, the width of the embeddings."""
        return self.embedding_size or self.hidden_size

    @property
    def projects(self) -> bool:
        """Whether a dense layer leads from the embeddings to the first layer."""
        return self.embedding_width != self.hidden_size

    @property
    def has_segments(self) -> bool:
        """Whether segments are told apart. RoBERTa's code has none; its files in Hugging Face's
        format hold one row for them, of zeros."""
        return self.model_type != "roberta"

    @property
    def has_pooler(self) -> bool:
        """Whether the pooled output has weights of its own."""
        return self.pooler_type == "first_token_transform"

    @property
    def depth(self) -> int:
        """How many blocks a sequence passes: L, times `inner_group_num`."""
        return self.num_hidden_layers * self.inner_group_num

    @property
    def shares_layers(self) -> bool:
        """Whether some layers share weights."""
        return any(len(set(numbers)) < self.depth for numbers in zip(*self.layer_weights))

    @property
    def layer_weights(self) -> list[tuple[int, int]]:
        """For each block that a sequence passes, the numbers of the weights of its attention and
        of its feed-forward network: those of `encoder/layer_{i}` in their names.

        As google-research/albert finds the group of a layer, modeling.py: by a division in floating
        point, which for some sizes, such as 22 layers in 22 groups, uses one group twice and
        another never. A part that the blocks share beside one that they do not has the number of
        the first of them.
        """
        groups, inner, passed = self.num_hidden_groups, self.inner_group_num, range(self.depth)
        if groups is None:
            return [(i, i) for i in passed]
        shared = [int(layer / self.num_hidden_layers * groups) * inner + i
                  for layer in range(self.num_hidden_layers) for i in range(inner)]
        if self.shared_parts == "all":
            return [(i, i) for i in shared]
        pairs = list(zip(map(shared.index, shared), passed))
        return pairs if self.shared_parts == "attention" else [(b, a) for a, b in pairs]

    def filled(self) -> Self:
        """The same sizes with numbers in place of None, as the files of ALBERT have them."""
        return dataclasses.replace(
            self, embedding_size=self.embedding_width,
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

    @classmethod
    def preset(cls, name: str, sizes: Mapping[str, Any] = MappingProxyType({}),
               presets: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
               **overrides: Any) -> Self:
        """The published size `name`, uncased English.

        Args:
            name: of a size of BERT (tiny, mini, small, medium, base, large), or in `presets`.
            sizes: values that come before BERT's, those of `Recipe.sizes`.
            presets: by name, values that come before both, those of `Recipe.presets`.
            overrides: values that come before all of these.

        Raises:
            InputError: there is no such size, or a value is refused.
        """
        values: dict[str, Any] = {"vocab_size": 30522, "type_vocab_size": 2, "model_type": "bert"}
        if name in PRESETS:
            layers, width = PRESETS[name]
            values |= {"hidden_size": width, "num_hidden_layers": layers,
                       "num_attention_heads": width // 64, "intermediate_size": 4 * width}
        elif name not in presets:
            raise InputError(f"there is no size {name!r}; choose from "
                             f"{', '.join(dict.fromkeys([*PRESETS, *presets]))}.")
        return cls.from_dict({**values, **sizes, **presets.get(name, {}), **overrides})


# What google-research/albert takes for a key that its file lacks.
ALBERT = {"model_type": "albert", "embedding_size": 128, "hidden_size": 4096,
          "num_hidden_groups": 1, "num_attention_heads": 64, "intermediate_size": 16384,
          "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "type_vocab_size": 2}

# The configuration of each `model_type`; the first is that of files which name none.
CONFIGS: dict[str, type[Sizes]] = dict.fromkeys(EncoderConfig.choices["model_type"], EncoderConfig)


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
    return _from_file(path, config_from_dict)


def _from_file(path, make):
    """What `make` makes of the JSON object in a file; an InputError names the file."""
    values = read_json(path)
    try:
        return make(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
