"""Rounding of an encoder's weights and activations to a few bits."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from bert_tf.errors import InputError, counted

SCHEMES = ("symmetric", "groupwise", "affine")
ACTIVATIONS = ("none", "dynamic", "ema")
FLOAT_BITS = 32     # numbers that are not rounded
_BITS = (*range(2, 9), FLOAT_BITS)

# In the scheme affine, all parts outside the encoder's layers stay in float.
_AFFINE = {"embedding_bits": FLOAT_BITS, "position_bits": FLOAT_BITS, "pooler_bits": FLOAT_BITS,
           "head_bits": FLOAT_BITS, "head_start_step": 0}


def _are_bits(value):
    """Returns whether this is a number of bits, or a tuple of such numbers."""
    values = value if isinstance(value, tuple) else (value,)
    return all(type(bits) is int and bits in _BITS for bits in values)


def _is_whole_from(least):
    return lambda value: type(value) is int and value >= least


# For each key, whether a value is allowed, and how the others are refused: "KEY must be ...".
_ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "scheme": (SCHEMES.__contains__, f"one of {', '.join(SCHEMES)}"),
    "activations": (ACTIVATIONS.__contains__, f"one of {', '.join(ACTIVATIONS)}"),
    **dict.fromkeys(("weight_bits", "embedding_bits", "position_bits", "pooler_bits", "head_bits",
                     "activation_bits"), (_are_bits, f"from 2 to 8, or {FLOAT_BITS} for float")),
    "groups": (_is_whole_from(1), "a whole number from 1"),
    **dict.fromkeys(("start_step", "head_start_step"),
                    (_is_whole_from(0), "a whole number from 0")),
    "ema_decay": (lambda value: type(value) in (int, float) and 0 <= value <= 1,
                  "a number from 0 to 1"),
}


@dataclasses.dataclass(frozen=True)
class Quantisation:
    """Tensors that are rounded, and the method; the defaults are Q8BERT's (arXiv:1910.06188).

    Bits are 2 to 8, or 32 for numbers that stay as they are.

    Attributes:
        scheme: "symmetric", one scale for a matrix and no zero point, as Q8BERT; or "groupwise", a
            scale and a zero point for each group of columns, as Q-BERT (arXiv:1909.05840); or
            "affine", all tensors between the layers too, as MobileBERT's code.
        weight_bits: bits of the encoder layers' dense layers: one number, or one for each layer.
        groups: number of equal runs of columns of a kernel and an embedding table ("groupwise").
        embedding_bits: bits of the word embeddings.
        position_bits: bits of the position embeddings.
        pooler_bits: bits of the dense layers before and after the encoder's layers.
        head_bits: bits of the dense layers of a task's head.
        activations: range of a dense layer's input: "ema", a moving average of the maxima in
            training; "dynamic", the batch's own; "none", inputs are not rounded.
        activation_bits: bits of the inputs of dense layers, and of queries and keys.
        ema_decay: decay of the moving average.
        start_step: training steps before anything is rounded.
        head_start_step: the same for a task's head.
    """

    scheme: str = "symmetric"
    weight_bits: int | tuple[int, ...] = 8
    groups: int = 1
    embedding_bits: int = 8
    position_bits: int = 8
    pooler_bits: int = 8
    head_bits: int = 8
    activations: str = "ema"
    activation_bits: int = 8
    ema_decay: float = 0.9999
    start_step: int = 0
    head_start_step: int = 200

    def __post_init__(self):
        if isinstance(self.weight_bits, list):
            object.__setattr__(self, "weight_bits", tuple(self.weight_bits))
        for name, (is_allowed, what) in _ALLOWED.items():
            value = getattr(self, name)
            if not is_allowed(value):
                raise InputError(f"quantisation: {name} must be {what}, not {value!r}.")
        if self.scheme == "affine":
            for name, only in {**_AFFINE, "activations": "ema", "start_step": 0}.items():
                if getattr(self, name) != only:
                    raise InputError(f"quantisation: with the scheme affine, {name} must be "
                                     f"{only}, not {getattr(self, name)!r}.")
        if self.groups > 1 and self.scheme != "groupwise":
            raise InputError("quantisation: groups are only for the scheme groupwise; leave them "
                             "out.")

    def __str__(self):
        return self.scheme

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        if not isinstance(values, Mapping):
            raise InputError(f"quantisation must be an object, not {values!r}.")
        known = [field.name for field in dataclasses.fields(cls)]
        for key in values:
            if key not in known:
                raise InputError(f"quantisation: unknown key {key!r}; the keys are "
                                 f"{', '.join(known)}.")
        return cls(**values)

    @property
    def keeps_ranges(self) -> bool:
        """Returns whether layers have further variables: ranges, and a count of steps."""
        return self.activations != "none" or bool(self.start_step or self.head_start_step)

    def bits_of_layer(self, number: int) -> int:
        bits = self.weight_bits
        return bits if isinstance(bits, int) else bits[number]

    def of_layers(self, layers: Sequence[int]) -> Self:
        """The quantisation of a network with some layers of another, in this order."""
        return self if isinstance(self.weight_bits, int) else dataclasses.replace(
            self, weight_bits=tuple(self.weight_bits[layer] for layer in layers))

    def check(self, config: Any) -> None:
        """Raises InputError if an encoder of the sizes `config` can't be rounded so."""
        if isinstance(self.weight_bits, tuple):
            if len(self.weight_bits) != config.num_hidden_layers:
                numbers = counted(len(self.weight_bits), "number")
                raise InputError(f"quantisation: weight_bits has {numbers}, but the network has "
                                 f"{counted(config.num_hidden_layers, 'layer')}; give one number "
                                 "per layer.")
            if config.shares_layers:
                raise InputError("quantisation: layers that share weights have the same "
                                 "weight_bits; give one number.")
        norm = getattr(config, "normalization_type", "layer_norm")
        if self.scheme == "affine" and (norm, config.hidden_act) != ("no_norm", "relu6"):
            raise InputError("quantisation: the scheme affine is only for MobileBERT with "
                             "normalization_type no_norm and hidden_act relu6.")
        for name in ("hidden_size", "intermediate_size", "embedding_width", "inner_size"):
            self.check_groups(getattr(config, name, 0), name)

    def check_groups(self, size: int, what: str) -> None:
        """Raises InputError if `size` columns, of `what`, can't be divided into the groups."""
        if size % self.groups:
            raise InputError(f"quantisation: groups ({self.groups}) must divide {what} ({size}); "
                             f"give a divisor, such as {math.gcd(size, self.groups)} "
                             "(--weight_groups).")


def parse_quantisation(config: Any) -> Quantisation:
    """Returns the `Quantisation` of a new configuration, which may have it as a dict."""
    how = config.quantisation
    if not isinstance(how, Quantisation):
        how = Quantisation.from_dict(how)
    if not config.can_be_rounded:
        raise InputError(f"quantisation: a {config.model_type} can't be rounded; leave it out.")
    how.check(config)
    return how


# By the names of the systems. The last layer of a task stays in float in Q-BERT.
QUANTISATIONS: dict[str, dict[str, Any]] = {
    "q8bert": {},
    "qbert": {"scheme": "groupwise", "groups": 128, "head_bits": FLOAT_BITS},
    "mobilebert": {"scheme": "affine", "ema_decay": 0.999, **_AFFINE},
}
