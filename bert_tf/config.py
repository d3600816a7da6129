"""The sizes of a network, under the names of the original's JSON file."""

import dataclasses
import json
import os
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
    added_keys: ClassVar[tuple[str, ...]] = ()
    unused_keys: ClassVar[tuple[str, ...]] = ()
    fixed_keys: ClassVar[dict[str, Any]] = {}
    distinctive_keys: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self):
        for name, largest in self.whole_numbers.items():
            value = getattr(self, name)
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
    """The sizes of a BERT encoder; the defaults are those of google-research/bert's BertConfig.

    Raises:
        InputError: a value has the wrong type or can't be built; names the key.
    """

    whole_numbers: ClassVar = {
        "vocab_size": 10_000_000, "hidden_size": 65_536, "num_hidden_layers": 1_024,
        "num_attention_heads": 1_024, "intermediate_size": 1_048_576,
        "max_position_embeddings": 1_048_576, "type_vocab_size": 65_536}
    fractions: ClassVar = {"hidden_dropout_prob": 1, "attention_probs_dropout_prob": 1,
                           "initializer_range": 10, "layer_norm_eps": 1}
    choices: ClassVar = {"hidden_act": ACTIVATIONS}
    added_keys: ClassVar = ("layer_norm_eps",)
    # These describe a pooler that the original never builds.
    unused_keys: ClassVar = ("pooler_fc_size", "pooler_num_attention_heads",
                             "pooler_num_fc_layers", "pooler_size_per_head")
    fixed_keys: ClassVar = {"directionality": "bidi", "pooler_type": "first_token_transform"}

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
        layer = 4 * self.hidden_size + 2 * self.intermediate_size
        return self.hidden_size * (tables + self.num_hidden_layers * layer + self.hidden_size)

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Self:
        """The published size `name` (tiny, mini, small, medium, base, large), uncased English.

        Raises:
            InputError: there is no such size, or a value of `overrides` is refused.
        """
        if name not in PRESETS:
            raise InputError(f"there is no preset {name!r}; choose from {', '.join(PRESETS)}.")
        layers, width = PRESETS[name]
        return cls.from_dict({
            "vocab_size": 30522, "type_vocab_size": 2, "hidden_size": width,
            "num_hidden_layers": layers, "num_attention_heads": width // 64,
            "intermediate_size": 4 * width, **overrides})


# The configuration of each `model_type`; the first is that of files which name none.
CONFIGS: dict[str, type[Sizes]] = {"bert": EncoderConfig}


def config_from_dict(values: dict[str, Any]) -> Sizes:
    """The configuration that `values` describe: that of their `model_type`, else of their keys.

    Raises:
        InputError: the model type is unknown, or a value is refused.
    """
    values = dict(values)
    model_type = values.pop("model_type", None)
    if model_type is None:
        model_type = next((name for name, cls in CONFIGS.items()
                           if any(key in values for key in cls.distinctive_keys)),
                          next(iter(CONFIGS)))
    if model_type not in CONFIGS:
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
