"""Tables of names, and the strict matching of a file's tensors with a model's variables.

Our names are variable paths relative to the network, as Google's are; a head's names begin with
its objective's. "{i}" stands for the number of a layer.
"""

import collections
import dataclasses
import re
from collections.abc import Callable

import numpy as np

from bert_tf.errors import InputError

# Each is its own inverse, so a table serves reading and writing.
TRANSFORMS = {"same": lambda x: x, "transpose": np.transpose}
_FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclasses.dataclass(frozen=True)
class Rule:
    """One variable of ours and the tensor of the other format that holds the same numbers."""

    ours: str
    theirs: str
    transform: str = "same"


@dataclasses.dataclass(frozen=True)
class Format:
    """The names of a format.

    Attributes:
        rows: (our prefix, their prefix, endings); endings are (ours, theirs[, transform]).
        ignored: (pattern of their names, reason) of tensors that no encoder needs.
    """

    rows: tuple
    ignored: tuple

    def rules(self, layers):
        """The table written out for a network of `layers` layers."""
        rules = []
        for ours, theirs, endings in self.rows:
            for i in range(layers if "{i}" in ours else 1):
                rules += [Rule(ours.format(i=i) + end, theirs.format(i=i) + their_end, *transform)
                          for end, their_end, *transform in endings]
        return rules

    def reason_to_ignore(self, name):
        """Why the tensor `name` isn't needed, or None if it is."""
        return next((reason for pattern, reason in self.ignored if re.fullmatch(pattern, name)),
                    None)


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a file: its name there, its shape and dtype, and how to read it."""

    name: str
    shape: tuple
    dtype: str
    read: Callable[[], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Account:
    """What became of every tensor of a file and of every variable of a model.

    Attributes:
        source: the file.
        mapped: the file's tensor by the name of our variable.
        ignored: the reason by the name of the file's tensor.
        missing: our variables that the file doesn't hold, left at their initial values.
    """

    source: str
    mapped: dict
    ignored: dict
    missing: list

    def __str__(self):
        lines = [f"{self.source}: {len(self.mapped)} tensors loaded."]
        for reason, count in collections.Counter(self.ignored.values()).items():
            lines.append(f"{count} ignored: {reason}.")
        if self.missing:
            lines.append(f"{len(self.missing)} not in the file, left at their initial values: "
                         f"{', '.join(self.missing)}.")
        return "\n".join(lines)


def variables(model):
    """A dict of the variables of an encoder, or of a Learner, by our names."""
    encoder = getattr(model, "encoder", model)
    named = {v.path.removeprefix(f"{encoder.path}/"): v for v in encoder.weights}
    for objective in getattr(model, "objectives", ()):
        named |= {v.path.removeprefix(objective.path.removesuffix(objective.name)): v
                  for v in objective.weights}
    return named


def _check(variable, tensor, rule, source):
    expected = tuple(TRANSFORMS[rule.transform](np.broadcast_to(0, variable.shape)).shape)
    if tensor.shape != expected:
        raise InputError(
            f"{source}: tensor {tensor.name!r} has shape {list(tensor.shape)} where the model's "
            f"configuration asks for {list(expected)}; use the configuration of the checkpoint.")
    if tensor.dtype not in _FLOATS:
        raise InputError(f"{source}: tensor {tensor.name!r} has type {tensor.dtype}, "
                         "which is no type of weights.")


def assign(model, tensors, form, source):
    """Gives the model the file's values: all of them, or, if anything is wrong, none.

    Args:
        model: an encoder or a Learner.
        tensors: a dict of `Tensor` by the names of the format.
        form: the `Format`.
        source: the file, to be named in errors.

    Returns:
        An `Account`.

    Raises:
        InputError: a tensor is unknown or doesn't fit, or one that the encoder needs is absent.
    """
    named = variables(model)
    encoder = getattr(model, "encoder", model)
    rules = {rule.theirs: rule for rule in form.rules(encoder.config.num_hidden_layers)}
    pairs, ignored = [], {}
    for name, tensor in tensors.items():
        rule, reason = rules.get(name), form.reason_to_ignore(name)
        if rule and rule.ours in named:
            _check(named[rule.ours], tensor, rule, source)
            pairs.append((rule, tensor))
        elif rule:
            ignored[tensor.name] = f"the model has no {rule.ours.split('/')[0]}"
        elif reason:
            ignored[tensor.name] = reason
        else:
            raise InputError(f"{source}: nothing in the model takes tensor {tensor.name!r}; "
                             "use the configuration of the checkpoint, or another checkpoint.")
    mapped = {rule.ours: tensor.name for rule, tensor in pairs}
    missing = [name for name in named if name not in mapped]
    for rule in rules.values():
        if rule.ours in missing and rule.ours.startswith(("embeddings/", "encoder/")):
            raise InputError(f"{source}: tensor {rule.theirs!r}, which the encoder needs, "
                             "is missing.")
    values = [(named[rule.ours], TRANSFORMS[rule.transform](tensor.read()))
              for rule, tensor in pairs]
    for variable, value in values:
        variable.assign(np.asarray(value, "float32"))
    return Account(source, mapped, ignored, missing)
