"""What describes a network: a JSON file of sizes, or the name of a published size."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from bert_tf.errors import InputError, choose_from
from bert_tf.files import write_json
from bert_tf.options import read_json

T = TypeVar("T")
S = TypeVar("S", bound="Sizes")

# "gelu" is the tanh approximation of google-research/bert, whatever other libraries mean by it;
# the exact form, which Hugging Face calls "gelu", is "gelu_erf" here.
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "relu6", "tanh", "linear")

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
# The largest values of sizes, and what shares and the like must be below.
WHOLE_NUMBERS = {
    "vocab_size": 10_000_000, "hidden_size": 65_536, "num_hidden_layers": 1_024,
    "num_attention_heads": 1_024, "intermediate_size": 1_048_576,
    "max_position_embeddings": 1_048_576}
FRACTIONS: dict[str, float] = {
    "hidden_dropout_prob": 1, "attention_probs_dropout_prob": 1, "initializer_range": 10,
    "layer_norm_eps": 1}
# Keys that the shapes of a network's weights do not show.
UNSEEN_KEYS = ("num_attention_heads", "hidden_act", "layer_norm_eps")


def read_file(path: str | os.PathLike, make: Callable[[dict[str, Any]], T]) -> T:
    """What `make` makes of the JSON object in the file `path`; an InputError names the file."""
    values = read_json(path)
    try:
        return make(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What describes a network: a frozen dataclass whose fields are the keys of a JSON file.

    Base of the configurations of all networks.

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
        unseen_keys: fields that make another network without changing a weight's shape.
        activation_key: the field that is the activation of feed-forward networks.
        dropout_keys: the fields that are rates of dropout.

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
    unseen_keys: ClassVar[tuple[str, ...]] = ()
    activation_key: ClassVar[str] = "hidden_act"
    dropout_keys: ClassVar[tuple[str, ...]] = ("hidden_dropout_prob",
                                               "attention_probs_dropout_prob")

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
                raise InputError(f"{name} must be one of {', '.join(map(str, choices))}, "
                                 f"not {getattr(self, name)!r}.")

    @property
    def further_features(self) -> tuple[str, ...]:
        """The features that the network must have beside ids, mask and segments."""
        return ()

    def check_reads_texts(self, source: str) -> None:
        """Raises InputError if the network of `source` reads features that no tokenizer makes."""
        if self.further_features:
            raise InputError(f"{source}: the network reads {', '.join(self.further_features)}, "
                             "which only pre-training records hold; take a model without it "
                             "(pattern_units tokens).")

    def check_takes_heads(self, source: str) -> None:
        """Raises InputError if no head of a task goes on top of the network of `source`."""

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
        return read_file(path, cls.from_dict)

    def to_dict(self) -> dict[str, Any]:
        """The original's keys and values, and `added_keys` that are not at their defaults."""
        return {name: value for name, value in dataclasses.asdict(self).items()
                if name not in self.added_keys or value != getattr(type(self), name)}

    # The fields that describe what was cut.
    pruned_keys: ClassVar[tuple[str, ...]] = ()
    # Whether initial matrices are of a normal distribution without its tails.
    truncates_initializer: ClassVar[bool] = True
    # Whether a language model on top of the network needs no weights of its own.
    has_tied_lm: ClassVar[bool] = False

    @property
    def prediction_width(self) -> int:
        """The width of the vectors from which hidden tokens are predicted."""
        return self.embedding_width     # type: ignore[attr-defined]

    @property
    def is_causal(self) -> bool:
        """Whether a token attends to itself and to the tokens on its left only."""
        return getattr(self, "directionality", "") == "left_to_right"

    def to_json_file(self, path: str | os.PathLike) -> None:
        """Writes the file that `from_json_file` reads, whole or not at all."""
        write_json(path, self.to_dict())


def check_sizes(config):
    """Raises InputError unless all heads of attention have one width and the weights fit."""
    if config.hidden_size % config.num_attention_heads:
        raise InputError(f"num_attention_heads ({config.num_attention_heads}) must divide "
                         f"hidden_size ({config.hidden_size}).")
    check_weights(config)


def check_weights(config):
    """Raises InputError if there are more weights than any computer holds."""
    if config.num_weights > _MOST_WEIGHTS:
        raise InputError(f"these sizes make {config.num_weights:,} weights, more than any BERT's "
                         f"({_MOST_WEIGHTS:,}).")


def preset(cls: type[S], name: str, sizes: Mapping[str, Any] = MappingProxyType({}),
           presets: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
           **overrides: Any) -> S:
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
        raise InputError(f"there is no size {name!r}; "
                         + choose_from(name, dict.fromkeys([*PRESETS, *presets])))
    return cls.from_dict({**values, **sizes, **presets.get(name, {}), **overrides})
