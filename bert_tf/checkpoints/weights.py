"""A checkpoint in our names: the strict matching of a file's tensors with a table, and back."""

import dataclasses

from bert_tf.checkpoints import names
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError

FLOATS = ("float16", "bfloat16", "float32", "float64")


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


def check(tensor, expected, source):
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
            check(tensor, [sizes[letter] for letter in rule.their_shape], source.file)
            sizes |= dict(zip(rule.their_shape, tensor.shape))
            if "C" in rule.shape:
                labels[names.head(rule.ours)] = sizes["C"]
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
