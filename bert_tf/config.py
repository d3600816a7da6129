"""The sizes of an encoder, under the names of Google's `bert_config.json`."""

import dataclasses
import json

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

# The largest value that can be meant; more is a slip of the pen that would exhaust the memory.
_LARGEST = {
    "vocab_size": 10_000_000,
    "hidden_size": 65_536,
    "num_hidden_layers": 1_024,
    "num_attention_heads": 1_024,
    "intermediate_size": 1_048_576,
    "max_position_embeddings": 1_048_576,
    "type_vocab_size": 65_536,
}

_MOST_WEIGHTS = 50_000_000_000

# Keys of released configs that describe a pooler the original never builds; any value will do.
_UNUSED_KEYS = ("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                "pooler_size_per_head")
# Keys of released configs that name the one thing the original builds; no other value will do.
_FIXED_KEYS = {"directionality": "bidi", "pooler_type": "first_token_transform"}


def read_json(path):
    """The JSON object in the file `path`, as a dict.

    Raises:
        InputError: the file is absent, isn't JSON (names the line), or holds no object.
    """
    try:
        with open(path, "rb") as file:
            return parse_json(file.read(), path)
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror}).") from error


def parse_json(content, source):
    """The JSON object in bytes, as a dict; `source` is what errors call them.

    Raises:
        InputError: they aren't JSON (names the line), or hold no object.
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


def same_options(mine: dict, theirs: dict, defaults: dict) -> bool:
    """Whether two descriptions of a job have equal options; see `differing_options`."""
    return not differing_options(mine, theirs, defaults)


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """The sizes of a BERT encoder; the defaults are those of google-research/bert's BertConfig.

    Raises:
        InputError: a value has the wrong type or can't be built; names the key.
    """

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
        for name, largest in _LARGEST.items():
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= largest:
                raise InputError(f"{name} must be a whole number from 1 to {largest:,}, "
                                 f"not {value!r}.")
        for name, end in (("hidden_dropout_prob", 1), ("attention_probs_dropout_prob", 1),
                          ("initializer_range", 10), ("layer_norm_eps", 1)):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value < end:
                raise InputError(f"{name} must be a number from 0 to below {end}, not {value!r}.")
            object.__setattr__(self, name, float(value))
        if self.hidden_act not in ACTIVATIONS:
            raise InputError(f"hidden_act must be one of {', '.join(ACTIVATIONS)}, "
                             f"not {self.hidden_act!r}.")
        if self.hidden_size % self.num_attention_heads:
            raise InputError(f"num_attention_heads ({self.num_attention_heads}) must divide "
                             f"hidden_size ({self.hidden_size}).")
        if self.num_weights > _MOST_WEIGHTS:
            raise InputError(f"these sizes make {self.num_weights:,} weights, more than any BERT's "
                             f"({_MOST_WEIGHTS:,}).")

    @property
    def num_weights(self):
        """The number of weights in the encoder's matrices, which are nearly all."""
        tables = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        layer = 4 * self.hidden_size + 2 * self.intermediate_size
        return self.hidden_size * (tables + self.num_hidden_layers * layer + self.hidden_size)

    @property
    def head_size(self):
        """The width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def preset(cls, name, **overrides):
        """The published size `name` (tiny, mini, small, medium, base, large), uncased English."""
        if name not in PRESETS:
            raise InputError(f"there is no preset {name!r}; choose from {', '.join(PRESETS)}.")
        layers, width = PRESETS[name]
        return cls.from_dict({
            "vocab_size": 30522, "type_vocab_size": 2, "hidden_size": width,
            "num_hidden_layers": layers, "num_attention_heads": width // 64,
            "intermediate_size": 4 * width, **overrides})

    @classmethod
    def from_dict(cls, values):
        """From Google's key names; those of released configs that change nothing are dropped.

        Raises:
            InputError: a key is unknown or missing, or its value is refused.
        """
        values = dict(values)
        for key in _UNUSED_KEYS:
            values.pop(key, None)
        for key, only in _FIXED_KEYS.items():
            if values.pop(key, only) != only:
                raise InputError(f"{key} must be {only!r}: no other form is built.")
        known = [field.name for field in dataclasses.fields(cls)]
        for key in values:
            if key not in known:
                raise InputError(f"unknown key {key!r}; the keys are {', '.join(known)}.")
        if "vocab_size" not in values:
            raise InputError("vocab_size is missing.")
        return cls(**values)

    @classmethod
    def from_json_file(cls, path):
        """From a `bert_config.json`; an InputError names the file."""
        values = read_json(path)
        try:
            return cls.from_dict(values)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def to_dict(self):
        """Google's keys and values; `layer_norm_eps`, which Google's code doesn't know, only
        where it isn't Google's."""
        values = dataclasses.asdict(self)
        if self.layer_norm_eps == type(self).layer_norm_eps:
            del values["layer_norm_eps"]
        return values

    def to_json_file(self, path):
        """Writes a `bert_config.json`, whole or not at all."""
        write_json(path, self.to_dict())
