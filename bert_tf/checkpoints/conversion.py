"""Converts a checkpoint: reads it in our names, changes what is asked for, writes it in theirs.

Numbers go from file to file as they are, in their own dtype, unless the target is Keras, which
holds float32.
"""

import dataclasses

from bert_tf.checkpoints import names, resizing
from bert_tf.checkpoints.loading import FORMATS, config_of, read_source
from bert_tf.checkpoints.weights import Account, to_table, translate
from bert_tf.errors import InputError
from bert_tf.files import folder_aside
from bert_tf.tokenization import open_tokenizer

# The heads of every pre-trained BERT; the account lists those that a file lacks.
_USUAL_HEADS = ("pooler", "masked_lm", "next_sentence")


@dataclasses.dataclass(frozen=True)
class Changes:
    """What to change on the way; nothing by default.

    Attributes:
        vocab_file: the vocabulary to write: the old one with words added, which get rows of their
            own, or the one that belongs to a checkpoint without any.
        do_lower_case: whether its tokenizer lower-cases; as in the checkpoint, or as the
            vocabulary suggests, if None.
        max_position_embeddings: how many positions to keep.
        vocab_size: how many rows of the vocabulary to keep, to cut padding off.
        hidden_act: the activation to write, in place of the configuration's.
        dtype: the type to round all tensors to.
        task: the head that a classifier is, where the files leave it open.
        leave_out: heads not to write.
    """

    vocab_file: str | None = None
    do_lower_case: bool | None = None
    max_position_embeddings: int | None = None
    vocab_size: int | None = None
    hidden_act: str | None = None
    dtype: str | None = None
    task: str | None = None
    leave_out: tuple = ()


def _read(path, changes):
    """The `Weights` at `path` as they are, but for the sizes that are to change anyway."""
    source = read_source(path, changes.task)
    return translate(source, resizing.adopt(config_of(source), source, changes))


def _without(weights, heads):
    """`weights` without some heads."""
    unknown = sorted(set(heads) - set(weights.heads))
    if unknown:
        raise InputError(f"{weights.source} has no {', '.join(unknown)} to leave out; its heads "
                         f"are {', '.join(weights.heads) or 'none'}.")
    kept = {name: tensor for name, tensor in weights.tensors.items()
            if names.head(name) not in heads}
    left = {tensor.name: "left out as asked for" for name, tensor in weights.tensors.items()
            if name not in kept}
    return dataclasses.replace(weights, tensors=kept, ignored={**weights.ignored, **left})


def _change(weights, changes):
    """The changed `Weights`, and sentences on what was changed."""
    notes = []
    weights = _without(weights, changes.leave_out)
    if changes.hidden_act:
        weights = dataclasses.replace(weights, config=dataclasses.replace(
            weights.config, hidden_act=changes.hidden_act))
    for step in (resizing.cut, resizing.grow, resizing.round_to):
        weights, more = step(weights, changes)
        notes += more
    if weights.vocab_file:
        lower = weights.do_lower_case if changes.do_lower_case is None else changes.do_lower_case
        tokenizer = open_tokenizer(weights.vocab_file, lower)
        weights = dataclasses.replace(weights, do_lower_case=tokenizer.do_lower_case)
    return weights, notes


def _account(weights, tensors, table, name, notes):
    """The `Account` of a conversion to the format `name`."""
    written = {rule.ours for rule in table.rules(weights.config) if rule.theirs in tensors}
    torn = {names.head(ours) for ours in set(weights.tensors) - written} & set(
        map(names.head, written))
    if torn:
        raise InputError(f"the format {name} has no place for all of {', '.join(sorted(torn))} of "
                         f"{weights.source}; give --leave_out={','.join(sorted(torn))}.")
    left = {tensor.name: f"the format {name} has no {names.head(ours)}"
            for ours, tensor in weights.tensors.items() if ours not in written}
    return Account(
        weights.source, {ours: weights.tensors[ours].name for ours in sorted(written)},
        {**weights.ignored, **left},
        [head for head in _USUAL_HEADS if head not in weights.heads], "so not converted",
        tuple(notes))


def convert(path: str, output: str, form: str, changes: Changes = Changes(),
            dry_run: bool = False) -> Account:
    """Converts the checkpoint at `path` to a folder of another format.

    Args:
        path: a folder of any format, or the checkpoint in it.
        output: the folder to write; it must be absent or empty, and is whole or absent afterwards.
        form: the name of a format, among those of `FORMATS` that are written.
        changes: `Changes`.
        dry_run: check everything, write nothing.

    Returns:
        An `Account`; print it.

    Raises:
        InputError: the checkpoint can't be used, or the format can't hold it.
    """
    writable = [name for name, candidate in FORMATS.items() if candidate.writable]
    if form not in writable:
        raise InputError(f"there is no format {form!r} to write; choose from "
                         f"{', '.join(writable)}.")
    weights, notes = _change(_read(path, changes), changes)
    writer = FORMATS[form].module
    table = writer.table_for(weights)
    tensors = to_table(weights, table)
    account = _account(weights, tensors, table, form, notes)
    if not dry_run:
        with folder_aside(output) as folder:
            writer.write(folder, weights, tensors)
    return account
