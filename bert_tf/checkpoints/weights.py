"""A checkpoint in our names: matched strictly with a table, given to a model, and written back."""

import collections
import dataclasses
import functools
import os
import re
from collections.abc import Collection, Mapping

import ml_dtypes  # noqa: F401 NumPy knows the name bfloat16 from then on
import numpy as np

from bert_tf.checkpoints import names, rules
from bert_tf.checkpoints.rules import Format, Source, Tensor
from bert_tf.config import EncoderConfig
from bert_tf.config.sizes import letters
from bert_tf.errors import InputError
from bert_tf.files import read_json
from bert_tf.heads import OBJECTIVES
from bert_tf.tokenization import Tokenizer, open_tokenizer

FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclasses.dataclass(frozen=True)
class Weights:
    """A checkpoint in our names and shapes, whatever its format.

    Attributes:
        ignored: for each tensor of the file `source` that is not used, the reason.
        vocab_file, do_lower_case, labels, notes: as in `Source`.
        generator: of a checkpoint of ELECTRA's pre-training, if it is to be written too.
        origin: the `Source` that they were translated from.
    """

    source: str
    config: EncoderConfig
    tensors: dict[str, Tensor] = dataclasses.field(repr=False)
    ignored: dict[str, str]
    vocab_file: str | None = None
    do_lower_case: bool | None = None
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    generator: "Weights | None" = None
    origin: Source | None = None

    @property
    def heads(self) -> list[str]:
        """The heads with weights here, the pooler included: those of `names.HEADS` in their order,
        then heads with names of their own."""
        held = dict.fromkeys(map(names.head, self.tensors))
        own = [name for name in held if name not in (*names.HEADS, *names.NETWORK)]
        return [name for name in (*names.HEADS, *own) if name in held]

    def beside(self, head: str) -> dict:
        """Returns the settings of a head that no weight shows, but a file of ours, or a task.json
        next to a checkpoint: `scale`, `mean` and `orders`, as in `bert_tf.objectives`, unless
        they change nothing."""
        settings, file = {}, self.source
        if self.origin:
            file = self.origin.file
            settings = next((options for name, options in self.origin.objectives
                             if OBJECTIVES[name].name == head), {})
        path = rules.beside(file, "task.json")
        if path and re.fullmatch(rules.OWN, os.path.basename(self.source)):
            saved = read_json(path)
            kind = saved.get("task", {}).get("kind")
            options = saved.get("options", {})
            settings = {"regression": {"scale": options.get("label_scale") or 1,
                                    "mean": options.get("label_mean") or 0},
                     "classification": {"orders": 1 + (kind == "similarity")}}.get(head, {})
        return {key: settings[key] for key, neutral in (("scale", 1), ("mean", 0), ("orders", 1))
                if settings.get(key, neutral) != neutral}

    @functools.cached_property
    def tokenizer(self) -> Tokenizer | None:
        if not self.vocab_file:
            return None
        return open_tokenizer(self.vocab_file, self.do_lower_case, self.config.vocab_size)


@dataclasses.dataclass(frozen=True)
class Account:
    """Account of every tensor of a file and of every variable of a model or other format.

    Attributes:
        mapped, missing: the tensors of the file `source` by our names; our names without one.
        ignored: for each tensor of the file that is not used, the reason.
        absent: a phrase on the fate of the missing weights.
    """

    source: str
    mapped: dict[str, str]
    ignored: dict[str, str]
    missing: list[str]
    absent: str = "left at their initial values"
    notes: tuple[str, ...] = ()

    def __str__(self):
        lines = [f"{self.source}: {len(self.mapped)} tensors read as weights of the model."]
        for reason, count in collections.Counter(self.ignored.values()).items():
            lines.append(f"{count} not used: {reason}.")
        if self.missing:
            lines.append(f"{len(self.missing)} not in the file, {self.absent}: "
                         f"{', '.join(self.missing)}.")
        return "\n".join((*lines, *self.notes))

    def joined(self, mapped: Mapping[str, str]) -> "Account":
        """The account with the tensors, by our names, of the model's generator."""
        whole = {**self.mapped, **{f"generator/{name}": mapped[name] for name in mapped}}
        used = {*whole.values()}
        return dataclasses.replace(
            self, mapped=whole,
            ignored={name: why for name, why in self.ignored.items() if name not in used},
            missing=[name for name in self.missing if name not in mapped])

    def listing(self) -> str:
        """Lists every tensor, a line each: our name and the file's, or why it is not used."""
        return "\n".join((
            *(f"{ours}: read from {name}" for ours, name in sorted(self.mapped.items())),
            *(f"{name}: not used ({why})" for name, why in sorted(self.ignored.items())),
            *(f"{ours}: not in the file ({self.absent})" for ours in sorted(self.missing))))


def check(tensor: Tensor, expected: tuple, source: str) -> None:
    """Raises InputError unless the tensor has the shape `expected`, where None is any size."""
    fits = len(tensor.shape) == len(expected) and all(
        number in (None, size) for number, size in zip(expected, tensor.shape))
    if not fits:
        asked = ", ".join(map(str, expected)).replace("None", "any")
        raise InputError(
            f"{source}: tensor {tensor.name!r} has the shape {list(tensor.shape)}, but the "
            f"configuration asks for [{asked}]; use the configuration of the checkpoint.")
    if tensor.dtype not in FLOATS:
        raise InputError(f"{source}: tensor {tensor.name!r} has the type {tensor.dtype}, but "
                         "weights must be floats; use another checkpoint.")


def only_head(weights: Weights, known: Collection[str], reason: str) -> str | None:
    """The head of `weights` that `known` names. An InputError on several gives the `reason`."""
    heads = [name for name in known if name in weights.heads]
    if len(heads) > 1:
        raise InputError(f"{weights.source} has the heads {' and '.join(heads)}, but {reason}; "
                         "leave out all heads but one with --leave_out.")
    return next(iter(heads), None)


def check_heads(weights: Weights, form: str, known: Collection[str]) -> None:
    if others := ",".join(sorted(set(weights.heads).difference(known))):
        raise InputError(f"{weights.source}: the format {form} can't hold "
                         f"{others.replace(',', ', ')}; give --leave_out={others}.")


def check_parts(weights: Weights, own: Collection[str] = ()) -> None:
    """Raises InputError unless the network is built like BERT's, except for the parts that the keys
    `own` of its configuration describe."""
    config = weights.config
    is_equal = config.embedding_width == config.hidden_size
    differs = {"embedding_size": config.projects and not is_equal,
               "project_embeddings": config.projects and is_equal,
               "num_hidden_groups": config.shares_layers,
               "inner_group_num": config.inner_group_num > 1,
               "shared_parts": config.shares_layers and config.shared_parts != "all",
               "pooler_type": config.pooler_type != "first_token_transform",
               "use_task_id": bool(config.task_types),
               "directionality": config.is_causal,
               "prediction_act": config.prediction_act and "masked_lm" in weights.heads,
               "quantisation": bool(config.quantisation),
               **{key: bool(getattr(config, key)) for key in config.pruned_keys}}
    for key in (key for key in differs if differs[key] and key not in own):
        raise InputError(f"{weights.source}: {key} is {getattr(config, key)}, but this format's "
                         f"{config.model_type} has no such setting; choose another format.")


def _check_complete(tensors, rules, table, source):
    heads, begun = {*names.HEADS, *table.heads}, set(map(names.head, tensors))
    optional = names.optional(table.heads)
    for rule in rules:
        owner = names.head(rule.ours)
        if rule.ours not in tensors and rule.ours not in optional and (
                owner in begun or owner not in heads) and not names.is_range(rule.ours):
            raise InputError(f"{source}: tensor {rule.theirs!r}, which the "
                             f"{owner if owner in heads else 'encoder'} needs, is missing; use a "
                             "complete checkpoint.")


def translate(source: Source, config: EncoderConfig) -> Weights:
    """The `Weights` in a `Source`, for a network of `config`; nothing is read yet. InputError if a
    tensor is unknown or doesn't fit, or one that is needed is missing."""
    rules = source.table.rules(config)
    by_name, labels = {rule.theirs: rule for rule in rules}, {}
    file = names.resolve(source.file)[1]
    tensors, ignored = {}, {}
    # A dense layer on top of an LSTM has the LSTM's width.
    on_lstms = {names.head(rule.ours) for name, rule in by_name.items()
                if "/bilstm/" in rule.ours and name in source.tensors}
    for name, tensor in source.tensors.items():
        rule, reason = by_name.get(name), source.table.reason_to_ignore(name)
        if rule:
            sizes = {**letters(config, rule.ours), "C": labels.get(names.head(rule.ours))}
            if names.head(rule.ours) in on_lstms:
                sizes["H"] = None
            check(tensor, [sizes[letter] for letter in rule.their_shape], file)
            sizes |= dict(zip(rule.their_shape, tensor.shape))
            if "C" in rule.shape:
                labels[names.head(rule.ours)] = sizes["C"]
            tensors[rule.ours] = rule.convert(tensor, tuple(sizes[letter] for letter in rule.shape))
        elif reason:
            ignored[tensor.name] = reason
        else:
            raise InputError(f"{file}: the model has no place for tensor {tensor.name!r}; "
                             "use the configuration of the checkpoint, or another checkpoint.")
    _check_complete(tensors, rules, source.table, file)
    lower = source.do_lower_case if isinstance(source.do_lower_case, bool) else None
    return Weights(file, config, tensors, ignored, source.vocab_file, lower,
                   source.labels, source.notes, origin=source)


def to_table(weights: Weights, table: Format) -> dict[str, Tensor]:
    """The tensors of `weights` by the names, and in the shapes, of another format."""
    result = {}
    for rule in table.rules(weights.config):
        if rule.ours in weights.tensors:
            tensor = weights.tensors[rule.ours]
            sizes = {**letters(weights.config, rule.ours), **dict(zip(rule.shape, tensor.shape))}
            result[rule.theirs] = rule.convert(
                tensor, tuple(sizes[letter] for letter in rule.their_shape))
    return result


def variables(model, held: Collection[str] = ()) -> dict:
    """The variables of an encoder, or of a Learner, by our names. A task's objective that is not in
    `held`, the heads of a file, takes the name of its row in `heads.HEADS`, if `held` has that and
    it is the only one of its class."""
    encoder = getattr(model, "encoder", model)
    # Embeddings that are shared have the name of the network that they were made in.
    shared = encoder.embeddings.path.removesuffix("embeddings")
    named = {v.path.removeprefix(f"{encoder.path}/").removeprefix(shared): v
             for v in encoder.weights}
    objectives = getattr(model, "objectives", ())
    classes = [type(objective).__name__ for objective in objectives]
    for objective, kind in zip(objectives, classes):
        name = objective.name
        if (kind in OBJECTIVES and OBJECTIVES[kind].task and name not in held
                and OBJECTIVES[kind].name in held and classes.count(kind) == 1):
            name = OBJECTIVES[kind].name
        for v in objective.weights:
            path = v.path.removeprefix(objective.path.removesuffix(objective.name))
            if name != objective.name:
                path = name + path.removeprefix(objective.name)
            named[path] = v
    return named


def _check_fits(named, weights, encoder):
    optional = names.optional()
    apart = sorted(optional & set(weights.tensors).difference(named))
    if any(names.head(name) in map(names.head, named) for name in apart):
        raise InputError(f"{weights.source} has {', '.join(apart)}, which the model does not have; "
                         "build the head as in training: MaskedLM with tied=False, FeatureTagging "
                         "with the same layers, other heads with the same bilstm_size.")
    empty = [name for name in variables(encoder) if name not in weights.tensors and name not in
             optional and names.head(name) != "pooler" and not names.is_range(name)]
    if empty:
        raise InputError(f"{weights.source} lacks {empty[0]}, which the encoder needs "
                         f"({len(empty)} weights are missing); load the file into a model with the "
                         "same network.")


def assign(model, weights: Weights) -> Account:
    """Gives the model the values of `weights`: all of them, or none, and an InputError, if a tensor
    doesn't fit or can't be read, or the encoder has a variable that no tensor fills."""
    named = variables(model, set(map(names.head, weights.tensors)))
    _check_fits(named, weights, getattr(model, "encoder", model))
    pairs = [(named[name], tensor) for name, tensor in weights.tensors.items() if name in named]
    for variable, tensor in pairs:
        check(tensor, variable.shape, weights.source)
    values = [np.asarray(tensor.read(), "float32") for _, tensor in pairs]
    for (variable, _), value in zip(pairs, values):
        variable.assign(value)
    why = "as the encoder alone is loaded"
    if hasattr(model, "encoder"):
        why = "which the model does not have"
    left = {tensor.name: f"of the head {names.head(name)}, {why}"
            for name, tensor in weights.tensors.items() if name not in named}
    missing = [name for name in named if name not in weights.tensors]
    notes = weights.notes
    if not any(map(names.is_range, weights.tensors)) and any(map(names.is_range, missing)):
        missing = [name for name in missing if not names.is_range(name)]
        notes = (*notes, "The model was never trained with rounding; training finds the "
                 "ranges of its numbers.")
    return Account(weights.source,
                   {name: tensor.name for name, tensor in weights.tensors.items() if name in named},
                   {**weights.ignored, **left}, missing, notes=notes)


def as_float32(tensor: Tensor, source: str) -> np.ndarray:
    """The values as float32, the type of our files of Keras; InputError if one would change."""
    value = tensor.read()
    result = np.asarray(value, "float32", order="C")
    if not np.array_equal(result.astype(value.dtype), value, equal_nan=True):
        raise InputError(f"{source}: tensor {tensor.name!r} is {tensor.dtype} and would change in "
                         "float32, the type of this format; give --dtype=float32 to round it.")
    return result
