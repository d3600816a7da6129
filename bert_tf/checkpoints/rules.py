"""Tables of names, each read in both directions, and the strict matching of a file with a table."""

import collections
import dataclasses
import re
from collections.abc import Callable

import numpy as np

from bert_tf.checkpoints import names
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError

FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a file: its name there, its shape and dtype, and how to read it."""

    name: str
    shape: tuple
    dtype: str
    read: Callable[[], np.ndarray]

    def transposed(self):
        """The same numbers with the axes in reverse order."""
        return dataclasses.replace(self, shape=self.shape[::-1], read=lambda: self.read().T)

    def reshaped(self, shape):
        """The same numbers in another shape."""
        return dataclasses.replace(self, shape=shape, read=lambda: self.read().reshape(shape))


@dataclasses.dataclass(frozen=True)
class Rule:
    """One variable of ours and the tensor of the other format that holds the same numbers.

    Attributes:
        ours: our name.
        theirs: the other format's.
        shape: our shape, in the letters of `names`.
        layout: the other's shape in the same letters, or "transpose"; ours if empty.
    """

    ours: str
    theirs: str
    shape: str
    layout: str = ""

    @property
    def their_shape(self):
        """The shape in the other format, in letters."""
        return self.shape[::-1] if self.layout == "transpose" else self.layout or self.shape

    def convert(self, tensor, shape):
        """`tensor` as it is on the other side, where its shape is `shape`; works both ways."""
        return tensor.transposed() if self.layout == "transpose" else tensor.reshaped(shape)


@dataclasses.dataclass(frozen=True)
class Format:
    """The names of a format.

    Attributes:
        rows: (our prefix, their prefix, endings); endings are (ours, theirs[, layout]).
        ignored: (pattern of their names, reason) of tensors that no encoder needs.
    """

    rows: tuple
    ignored: tuple = ()

    def rules(self, config):
        """The table written out for the network of `config`."""
        return [Rule(ours, theirs, names.SHAPES[our_prefix + end], *layout)
                for our_prefix, their_prefix, endings in self.rows
                for end, their_end, *layout in endings
                for ours, theirs in zip(names.expand(our_prefix + end, config),
                                        names.expand(their_prefix + their_end, config))]

    def reason_to_ignore(self, name):
        """Why the tensor `name` isn't needed, or None if it is."""
        return next((reason for pattern, reason in self.ignored if re.fullmatch(pattern, name)),
                    None)


@dataclasses.dataclass(frozen=True)
class Source:
    """What a checkpoint holds, in its own names.

    Attributes:
        file: what errors call it.
        config: the `EncoderConfig` beside it, or None.
        tensors: a dict of `Tensor` by the names of the table.
        table: the `Format`.
        vocab_file: the vocabulary beside it, or None.
        do_lower_case: whether its tokenizer lower-cases, or None if that is not written anywhere.
        labels: the names of the classes, if they are known.
    """

    file: str
    config: EncoderConfig | None
    tensors: dict
    table: Format
    vocab_file: str | None = None
    do_lower_case: bool | None = None
    labels: tuple = ()


@dataclasses.dataclass(frozen=True)
class Weights:
    """A checkpoint in our names and shapes, whatever its format.

    Attributes:
        source: the file.
        config: the `EncoderConfig`.
        tensors: a dict of `Tensor` by our names.
        ignored: the reason by the name of the file's tensor.
        vocab_file, do_lower_case, labels: as in `Source`.
    """

    source: str
    config: EncoderConfig
    tensors: dict
    ignored: dict
    vocab_file: str | None = None
    do_lower_case: bool | None = None
    labels: tuple = ()

    @property
    def heads(self):
        """The names among `names.HEADS` of which it has weights."""
        return [name for name in names.HEADS if name in set(map(names.head, self.tensors))]


@dataclasses.dataclass(frozen=True)
class Account:
    """What became of every tensor of a file and of every variable of a model or other format.

    Attributes:
        source: the file.
        mapped: the file's tensor by our name.
        ignored: the reason by the name of the file's tensor.
        missing: our names that the file doesn't hold.
        absent: what becomes of those that are missing.
        notes: further sentences.
    """

    source: str
    mapped: dict
    ignored: dict
    missing: list
    absent: str = "left at their initial values"
    notes: tuple = ()

    def __str__(self):
        lines = [f"{self.source}: {len(self.mapped)} tensors mapped."]
        for reason, count in collections.Counter(self.ignored.values()).items():
            lines.append(f"{count} ignored: {reason}.")
        if self.missing:
            lines.append(f"{len(self.missing)} not in the file, {self.absent}: "
                         f"{', '.join(self.missing)}.")
        return "\n".join((*lines, *self.notes))


def _check(tensor, expected, source):
    """Raises InputError unless the tensor has the shape `expected`, where None is any size."""
    fits = len(tensor.shape) == len(expected) and all(
        wanted in (None, size) for wanted, size in zip(expected, tensor.shape))
    if not fits:
        asked = ", ".join("any" if size is None else str(size) for size in expected)
        raise InputError(
            f"{source}: tensor {tensor.name!r} has shape {list(tensor.shape)} where the "
            f"configuration asks for [{asked}]; use the configuration of the checkpoint.")
    if tensor.dtype not in FLOATS:
        raise InputError(f"{source}: tensor {tensor.name!r} has type {tensor.dtype}, "
                         "which is no type of weights.")


def _check_complete(tensors, rules, source):
    """Raises InputError if a tensor of the encoder, or of a head that is begun, is missing."""
    begun = set(map(names.head, tensors))
    for rule in rules:
        owner = names.head(rule.ours)
        if rule.ours not in (*tensors, *names.OPTIONAL) and (
                owner in begun or owner not in names.HEADS):
            raise InputError(f"{source}: tensor {rule.theirs!r}, which the "
                             f"{owner if owner in names.HEADS else 'encoder'} needs, is missing.")


def translate(source, config):
    """The `Weights` in a `Source`, for a network of `config`; nothing is read yet.

    Raises:
        InputError: a tensor is unknown or doesn't fit, or one that is needed is missing.
    """
    rules = source.table.rules(config)
    by_name, labels = {rule.theirs: rule for rule in rules}, {}
    tensors, ignored = {}, {}
    for name, tensor in source.tensors.items():
        rule, reason = by_name.get(name), source.table.reason_to_ignore(name)
        if rule:
            sizes = {**names.sizes(config), "C": labels.get(names.head(rule.ours))}
            _check(tensor, [sizes[letter] for letter in rule.their_shape], source.file)
            if "C" in rule.shape:
                found = tensor.shape[rule.their_shape.index("C")]
                sizes["C"] = labels[names.head(rule.ours)] = found
            tensors[rule.ours] = rule.convert(
                tensor, tuple(sizes[letter] for letter in rule.shape))
        elif reason:
            ignored[tensor.name] = reason
        else:
            raise InputError(f"{source.file}: nothing in the model takes tensor {tensor.name!r}; "
                             "use the configuration of the checkpoint, or another checkpoint.")
    _check_complete(tensors, rules, source.file)
    lower = source.do_lower_case if isinstance(source.do_lower_case, bool) else None
    return Weights(source.file, config, tensors, ignored, source.vocab_file, lower,
                   source.labels)


def to_table(weights, table):
    """The tensors of `weights` under the names and in the shapes of another format.

    Returns:
        A dict of `Tensor` by that format's names.
    """
    result = {}
    for rule in table.rules(weights.config):
        if rule.ours in weights.tensors:
            tensor = weights.tensors[rule.ours]
            sizes = {**names.sizes(weights.config), "C": tensor.shape[-1]}
            result[rule.theirs] = rule.convert(
                tensor, tuple(sizes[letter] for letter in rule.their_shape))
    return result


def variables(model):
    """A dict of the variables of an encoder, or of a Learner, by our names."""
    encoder = getattr(model, "encoder", model)
    named = {v.path.removeprefix(f"{encoder.path}/"): v for v in encoder.weights}
    for objective in getattr(model, "objectives", ()):
        named |= {v.path.removeprefix(objective.path.removesuffix(objective.name)): v
                  for v in objective.weights}
    return named


def assign(model, weights):
    """Gives the model the values of `weights`: all of them, or, if anything is wrong, none.

    Args:
        model: an encoder or a Learner.
        weights: `Weights`.

    Returns:
        An `Account`.

    Raises:
        InputError: a tensor doesn't fit the model, or can't be read.
    """
    named = variables(model)
    apart = sorted(set(names.OPTIONAL) & set(weights.tensors).difference(named))
    if any(names.head(name) in map(names.head, named) for name in apart):
        raise InputError(f"{weights.source} has {', '.join(apart)}, an output matrix that isn't "
                         "the embedding table; build MaskedLM with tied=False.")
    pairs = [(named[name], tensor) for name, tensor in weights.tensors.items() if name in named]
    for variable, tensor in pairs:
        _check(tensor, variable.shape, weights.source)
    values = [np.asarray(tensor.read(), "float32") for _, tensor in pairs]
    for (variable, _), value in zip(pairs, values):
        variable.assign(value)
    left = {tensor.name: f"the model has no {names.head(name)}"
            for name, tensor in weights.tensors.items() if name not in named}
    return Account(weights.source,
                   {name: tensor.name for name, tensor in weights.tensors.items() if name in named},
                   {**weights.ignored, **left},
                   [name for name in named if name not in weights.tensors])
