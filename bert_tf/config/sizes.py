"""The configuration of a network: a JSON file of sizes, or the name of a published size."""

import dataclasses
import math
import numbers as number_types
import os
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from bert_tf.errors import InputError, choose_from, naming
from bert_tf.files import read_json, write_json

T = TypeVar("T")
# The weights of an LSTM.
LSTM = {"kernel": "BG", "bias": "G", "projection_kernel": "UW"}
# Values of sizes that a network lacks, whatever their type in others.
_ABSENT: Any = None
_NOTHING: Any = ()

# "gelu" is the tanh approximation of google-research/bert, whatever other libraries mean by it;
# the exact form, which Hugging Face calls "gelu", is "gelu_erf" here.
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "relu6", "tanh", "silu", "linear")

# The tokens that a token attends to: all, or itself and the tokens on its left.
DIRECTIONS = ("bidi", "left_to_right")

# name: layers, width. Heads are 64 wide and the feed-forward layer is four times the width
# (arXiv:1908.08962, table 1; base and large as in arXiv:1810.04805).
PRESETS = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512), "medium": (8, 512),
           "base": (12, 768), "large": (24, 1024)}

# More weights than this are a slip that would exhaust the memory.
_MOST_WEIGHTS = 50_000_000_000
# The largest sizes, by what they count; a larger one is a slip that would exhaust the memory.
_LARGEST = {"tokens": 10_000_000, "width": 65_536, "inner width": 1_048_576, "layers": 1_024,
            "heads": 1_024, "positions": 1_048_576}
# Keys that the shapes of a network's weights do not show.
UNSEEN_KEYS = ("num_attention_heads", "hidden_act", "layer_norm_eps")


def whole(default: Any = dataclasses.MISSING, most: int | str = "width", least: int = 1) -> Any:
    """Returns a field that is a whole number of at most `most`, a number or a key of `_LARGEST`; if
    None is the default, it may be None."""
    largest = most if isinstance(most, int) else _LARGEST[most]

    def check(name, value):
        if value is None and default is None:
            return None
        if isinstance(value, number_types.Integral) and type(value) is not bool:     # of numpy
            value = int(value)
        if type(value) is not int or not least <= value <= largest:
            raise InputError(f"{name} must be a whole number from {least} to {largest:,}, not "
                             f"{value!r}.")
        return value

    return dataclasses.field(default=default, metadata={"check": check, "least": least})


def fraction(default: float, below: float = 1) -> Any:
    """Returns a field that is a number of 0 or more, such as a share."""
    def check(name, value):
        if not isinstance(value, number_types.Real) or type(value) is bool or not (
                0 <= value < below):
            raise InputError(f"{name} must be a number of at least 0 and below {below}, not "
                             f"{value!r}.")
        return float(value)

    return dataclasses.field(default=default, metadata={"check": check})


def one_of(default: Any, choices: Sequence) -> Any:
    def check(name, value):
        if value not in choices:
            raise InputError(f"{name} must be one of {', '.join(map(str, choices))}, not "
                             f"{value!r}.")
        return value

    return dataclasses.field(default=default, metadata={"check": check})


def switch(default: bool) -> Any:
    return one_of(default, (False, True))


def fitted(default: Any, fit: Callable[[Any], Any], write: Callable[[Any], Any] | None = None
           ) -> Any:
    """Returns a field whose values other than the default depend on other fields: `fit` checks a
    configuration that has one, and returns the value to keep. `write` makes it a JSON value."""
    return dataclasses.field(default=default, metadata={"fit": fit, "write": write or with_lists})


def read_file(path: str | os.PathLike, make: Callable[[dict[str, Any]], T]) -> T:
    """`make`'s result for the JSON object in the file `path`; an InputError names the file."""
    values = read_json(path)
    with naming(path):
        return make(values)


class Changes:
    """What was cut from a network, and whether its numbers are rounded; by default nothing.

    Attributes:
        pruned_keys: the fields that describe removed heads and units, with sizes of single layers.
        can_be_rounded: whether the network takes a `quantisation`.
    """

    pruned_keys: ClassVar[tuple[str, ...]] = ()
    can_be_rounded = False
    quantisation = intermediate_sizes = _ABSENT
    pruned_heads = _NOTHING

    def kept_heads(self: Any, number: int) -> list[int]:
        """The remaining heads of the attention `number`, by their original numbers."""
        pruned = dict(self.pruned_heads).get(number, ())
        return [head for head in range(self.num_attention_heads) if head not in pruned]

    def feed_forward_size(self: Any, number: int) -> int:
        """F of the feed-forward network `number`."""
        if self.intermediate_sizes is None:
            return self.intermediate_size
        numbers = sorted({feed_forward for _, feed_forward in self.layer_weights})
        return self.intermediate_sizes[numbers.index(number)]

    @property
    def is_cut(self) -> bool:
        """Returns whether some layers lack heads or units that others have."""
        return bool(self.pruned_heads or self.intermediate_sizes)

    @property
    def is_rounded(self) -> bool:
        """Returns whether numbers are rounded to a few bits."""
        return self.quantisation is not None


@dataclasses.dataclass(frozen=True)
class Sizes(Changes):
    """Base of all configurations: a frozen dataclass whose fields are the keys of a JSON file, most
    of them made by `whole`, `fraction`, `one_of` or `switch`.

    Attributes:
        added_keys: fields that the original's code doesn't know; written only where the value is
            not the default.
        unused_keys: keys of released files that change nothing, and may have any value.
        distinctive_keys: keys that no other network's file has; empty for the default network.
        unseen_keys: fields that make another network without changing a weight's shape.
        activation_key: the field that is the activation of feed-forward networks.
        dropout_keys: the fields that are rates of dropout.
        common_names: the network's own name of each of BERT's sizes.
        absent_names: BERT's sizes that the network lacks, and that presets leave out.
        own_presets: published sizes of the network that are not BERT's, by name.
        has_bert_presets: whether layers and widths of BERT's sizes make sense for the network.
        uncased: values of presets that differ from the fields' defaults.
        vocab_multiple: presets make `vocab_size` a multiple of it.
        truncates_initializer: whether initial matrices follow a truncated normal distribution.
        has_tied_lm: whether a language model needs no weights beyond the network's.
        ties_masked_lm: whether the table of words also predicts masked words, unless an objective
            says otherwise.
        has_memory: whether the network remembers the rows before.
        is_plain: whether the network is BERT itself.
        has_local_layers: whether a token sees near tokens only, in some layers.
        adds_positions: whether embeddings of positions are added to those of words.
        skips_padding: whether positions count tokens alone, and not the padding before them.
        prediction_act: the activation of the masked language model's hidden layer; None: that of
            feed-forward networks.
        head_initializer: the initial distribution of matrices of heads, and of the projection of
            embeddings; None: as the network's.
    """

    added_keys: ClassVar[tuple[str, ...]] = ()
    unused_keys: ClassVar[tuple[str, ...]] = ()
    distinctive_keys: ClassVar[tuple[str, ...]] = ()
    unseen_keys: ClassVar[tuple[str, ...]] = ()
    activation_key: ClassVar[str] = "hidden_act"
    dropout_keys: ClassVar[tuple[str, ...]] = ("hidden_dropout_prob",
                                               "attention_probs_dropout_prob")

    common_names: ClassVar[Mapping[str, str]] = MappingProxyType({})
    absent_names: ClassVar[tuple[str, ...]] = ()
    own_presets: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    has_bert_presets: ClassVar[bool] = True
    uncased: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    vocab_multiple: ClassVar[int] = 1
    truncates_initializer: ClassVar[bool] = True
    has_tied_lm: ClassVar[bool] = False
    ties_masked_lm: ClassVar[bool] = True
    has_memory = is_plain = has_local_layers = skips_padding = False
    adds_positions = True
    head_initializer: ClassVar[str | None] = None

    # Defaults of configurations that do not say otherwise: there is no longest sequence, segments
    # and tasks have no vectors, and layers share no weights.
    max_position_embeddings = _LARGEST["positions"]
    type_vocab_size = intermediate_size = num_attention_heads = 0
    task_types, inner_group_num = 0, 1
    shares_layers = shares_values = use_task_id = False
    has_segments = True
    embedding_size = num_hidden_groups = prediction_act = _ABSENT
    stacks: ClassVar[Any] = MappingProxyType({})
    shared_parts, pooler_type, directionality = "all", "first_token", "bidi"
    # Weights of the table of heads that the network's heads lack; sizes of further letters of
    # `checkpoints.names`.
    absent_weights: ClassVar[Any] = ()
    own_letters: ClassVar[Any] = MappingProxyType({})
    # All have these.
    hidden_size = num_hidden_layers = model_type = _ABSENT

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if check := field.metadata.get("check"):
                object.__setattr__(self, field.name, check(field.name, getattr(self, field.name)))
        for field in dataclasses.fields(self):
            if "fit" in field.metadata and getattr(self, field.name) is not field.default:
                object.__setattr__(self, field.name, field.metadata["fit"](self))

    @property
    def further_features(self) -> tuple[str, ...]:
        """Returns the features that the network needs in addition to ids, mask and segments."""
        return ()

    def check_reads_texts(self, source: str) -> None:
        """Raises InputError if the network of `source` reads features that no tokenizer makes."""
        if self.further_features:
            raise InputError(f"{source}: the network reads {', '.join(self.further_features)}, but "
                             "only pre-training records hold this feature; take a model with "
                             "pattern_units tokens.")

    def check_takes_heads(self, source: str) -> None:
        """Raises InputError if the network of `source` takes no task's head."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Makes it from the original's keys; drops keys of released files that change nothing."""
        values = {key: value for key, value in values.items() if key not in cls.unused_keys}
        known = [field.name for field in dataclasses.fields(cls)]
        for key in values:
            if key not in known:
                raise InputError(f"unknown key {key!r}; {choose_from(key, known)}")
        for field in dataclasses.fields(cls):
            if field.default is dataclasses.MISSING and field.name not in values:
                raise InputError(f"{field.name} is missing; add it.")
        return cls(**values)

    @classmethod
    def from_json_file(cls, path: str | os.PathLike) -> Self:
        """Reads a file such as `bert_config.json`; errors name the file."""
        return read_file(path, cls.from_dict)

    def to_dict(self) -> dict[str, Any]:
        """The original's keys and values, and `added_keys` that are not at their defaults; lists as
        JSON has them."""
        values = dataclasses.asdict(self)
        return {field.name: field.metadata.get("write", with_lists)(values[field.name])
                for field in dataclasses.fields(self)
                if field.name not in self.added_keys or values[field.name] != field.default}

    @classmethod
    def preset(cls, name: str, sizes: Mapping[str, Any] = MappingProxyType({}),
               presets: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
               **overrides: Any) -> Self:
        """Returns the published size `name`, uncased English.

        Args:
            name: a size in `own_presets`, in `presets`, or of BERT
                (tiny, mini, small, medium, base, large).
            sizes: values that come before the size's own, `Recipe.sizes`.
            presets: by name, values that come before both, `Recipe.presets`.
            overrides: values that come before all of these. Names of BERT's sizes mean the
                network's own everywhere.
        """
        bert: dict[str, tuple[int, int]] = PRESETS if cls.has_bert_presets else {}
        known: Mapping[str, Any] = cls.own_presets.get(name, {})
        if name not in cls.own_presets and name in bert:
            layers, width = bert[name]
            known = {"hidden_size": width, "num_hidden_layers": layers,
                     "num_attention_heads": width // 64, "intermediate_size": 4 * width}
        elif name not in cls.own_presets and name not in presets:
            raise InputError(f"there is no size {name!r}; " + choose_from(
                name, dict.fromkeys([*bert, *cls.own_presets, *presets])))
        values: dict[str, Any] = {}
        for given in (cls.uncased, known, sizes, presets.get(name, {}), overrides):
            values |= {cls.common_names.get(key, key): value for key, value in given.items()
                       if key not in cls.absent_names}
        if type(values.get("vocab_size")) is int:
            values["vocab_size"] += -values["vocab_size"] % cls.vocab_multiple
        return cls.from_dict(values)

    def weights(self) -> dict[str, str]:
        """The shapes of the network's weights by their names, the paths of its variables.

        Shapes are in the letters of `bert_tf/checkpoints/names.py`. "{i}" is the number of a layer.
        "dense HI" means a kernel [H, I] and a bias [I], "norm H" for gamma [H] and beta [H].
        """
        raise NotImplementedError

    @property
    def num_weights(self) -> int:
        """The number of the network's weights; 0 where the configuration doesn't give a shape."""
        total, known = 0, letters(self)
        for name, shape in self.weights().items():
            kind, _, axes = shape.rpartition(" ")
            for number in numbers(self, name):
                if self.is_cut:
                    known = letters(self, name.replace("{i}", str(number)))
                sizes: list[Any] = [known[axis] for axis in axes]
                if None in sizes:
                    return 0
                total += math.prod(sizes) * (1 + (kind == "norm")) + sizes[-1] * (kind == "dense")
        return total

    def filled(self) -> Self:
        """The same sizes with numbers in place of None, as the original's files have them."""
        return self

    def to_json_file(self, path: str | os.PathLike) -> None:
        """Writes the file that `from_json_file` reads, whole or not at all."""
        write_json(path, self.to_dict())

    @property
    def prediction_width(self) -> int:
        """The width of the vectors that predict hidden tokens."""
        return self.embedding_width

    def layers_without(self, name: str) -> set[int]:
        """Returns the numbers of the layers that lack the weight `name`, a key of `weights`."""
        return set()

    def of_layers(self, layers: Sequence[int]) -> dict[str, Any]:
        """Returns the fields, beside their number, that change in a network of some of its layers.
        InputError if they can't be the layers of a network."""
        return {}

    @property
    def is_causal(self) -> bool:
        """Returns whether a token attends to itself and to the tokens on its left only."""
        return self.directionality == "left_to_right"

    @property
    def head_size(self) -> int:
        heads = self.num_attention_heads
        return self.hidden_size // heads if heads else 0

    @property
    def attention_width(self) -> int:
        return self.num_attention_heads * self.head_size

    @property
    def learned_heads(self) -> int:
        """The number of heads of a layer that have queries and keys."""
        return self.num_attention_heads

    @property
    def embedding_width(self) -> int:
        """E, the width of the embeddings."""
        return self.embedding_size or self.hidden_size

    @property
    def projects(self) -> bool:
        """Returns whether a dense layer projects the embeddings for the first layer."""
        return self.embedding_width != self.hidden_size

    @property
    def embedding_output_width(self) -> int:
        return self.embedding_width if self.projects else self.hidden_size

    @property
    def segment_types(self) -> int:
        """The rows of the table of segments; 0 where there is no table."""
        return self.type_vocab_size

    @property
    def position_rows(self) -> int:
        """The rows of the table of positions; 0 where there is no table."""
        return self.max_position_embeddings * self.adds_positions

    @property
    def has_pooler(self) -> bool:
        """Returns whether the pooled output has weights of its own."""
        return self.pooler_type != "first_token"

    @property
    def depth(self) -> int:
        """Returns the number of blocks that a sequence passes: L, times `inner_group_num`."""
        return self.num_hidden_layers * self.inner_group_num

    @property
    def layer_weights(self) -> list[tuple[int, int]]:
        """Returns, for each block that a sequence passes, the numbers of the weights of its
        attention and of its feed-forward network: i in their names, `encoder/layer_{i}`."""
        return [(i, i) for i in range(self.depth)]


def check_sizes(config):
    """Raises InputError unless all heads of attention have one width and the weights fit."""
    if config.hidden_size % config.num_attention_heads:
        raise InputError(f"num_attention_heads ({config.num_attention_heads}) must divide "
                         f"hidden_size ({config.hidden_size}).")
    check_weights(config)


def check_weights(config):
    """Raises InputError if there are more weights than any computer holds."""
    if config.num_weights > _MOST_WEIGHTS:
        raise InputError(f"these sizes give {config.num_weights:,} weights, more than any BERT has "
                         f"({_MOST_WEIGHTS:,}); correct them.")


def letters(config: Any, name: str = "") -> dict[str, int | None]:
    """The number for each letter of `checkpoints.names`; None where the configuration has none.

    Args:
        name: of the weight; heads and units may be cut from its layer alone.
    """
    sizes = {
        "V": config.vocab_size, "T": config.type_vocab_size, "M": config.task_types,
        "P": config.max_position_embeddings, "E": config.embedding_width, "H": config.hidden_size,
        "I": config.intermediate_size, "N": config.num_attention_heads, "D": config.head_size,
        "A": config.learned_heads * config.head_size, "Z": config.attention_width,
        "O": getattr(config, "relative_attention_num_buckets", None),
        "X": config.prediction_width, "Y": config.prediction_width - config.embedding_width,
        "S": getattr(config, "transformed_size", None), "J": 2 * config.hidden_size,
        "L": config.depth, "1": 1, "2": 2, **dict.fromkeys("CFUGKQRWB"),
        **config.own_letters}
    if config.is_cut and (layer := re.match(r"encoder/layer_(\d+)/", name)):
        number = int(layer[1])
        if "/attention/" in name:
            heads = len(config.kept_heads(number))
            sizes |= {"N": heads, **dict.fromkeys("AZ", heads * config.head_size)}
        else:
            sizes["I"] = config.feed_forward_size(number)
    return sizes


def numbers(config: Any, name: str) -> list[int]:
    """The numbers of the layers that have the weight `name`, a key of `Sizes.weights`, of their
    own; [0] where `name` has no "{i}"."""
    if "{i}" not in name:
        return [0]
    stack = name.split("/")[0]
    if stack in config.stacks:
        return list(range(config.stacks[stack]))
    attentions, feed_forwards = zip(*config.layer_weights)
    if "/attention/self/" in name and config.pruned_heads:
        attentions = tuple(i for i in attentions if config.kept_heads(i))
    having = set(attentions if "/attention/" in name else feed_forwards)
    return sorted(having - config.layers_without(name))


def with_lists(value: Any) -> Any:
    """Returns a value whose tuples are lists, as JSON has them."""
    if isinstance(value, dict):
        return {name: with_lists(each) for name, each in value.items()}
    return [with_lists(each) for each in value] if isinstance(value, tuple) else value
