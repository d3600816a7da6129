"""Converts a checkpoint: reads it in our names, makes the requested changes, writes it in theirs.
Numbers go from file to file as they are, in their own dtype, unless the target is Keras: float32.
"""

import dataclasses
import os
import tempfile
from collections.abc import Callable, Sequence

import numpy as np

from bert_tf.checkpoints import names, sentence_modules
from bert_tf.checkpoints.loading import FORMATS, config_of, read_source
from bert_tf.checkpoints.rules import Source
from bert_tf.checkpoints.weights import FLOATS, Account, Weights, to_table, translate
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError, counted
from bert_tf.files import (
    check_free,
    copy_file,
    exists,
    files_under,
    folder_aside,
    make_folders,
    read_json,
    relative,
    write_json,
)
from bert_tf.heads import HEADS
from bert_tf.tokenization import open_tokenizer
from bert_tf.tokenization.library_settings import SETTINGS_FILE
from bert_tf.tokenization.vocabulary import Vocabulary, is_unused
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

# The heads of every pre-trained BERT; the account lists the heads that a file lacks.
_USUAL_HEADS = ("pooler", "masked_lm", "next_sentence")


@dataclasses.dataclass(frozen=True)
class Changes:
    """Changes on the way; none by default."""

    vocab_file: str | None = None
    do_lower_case: bool | None = None
    max_position_embeddings: int | None = None
    vocab_size: int | None = None
    hidden_act: str | None = None
    dtype: str | None = None
    task: str | None = None
    leave_out: tuple = ()
    generator: bool = False


def _without(weights, heads, task):
    for flag, named in (("leave_out", heads), ("task", [task] if task else [])):
        if unknown := sorted(set(named) - set(weights.heads)):
            raise InputError(f"--{flag}: {weights.source} has no head {', '.join(unknown)}; its "
                             f"heads are {', '.join(weights.heads) or 'none'}.")
    tensors, ignored = {}, {**weights.ignored}
    for name, tensor in weights.tensors.items():
        if names.head(name) in heads:
            ignored[tensor.name] = "left out as asked for"
        else:
            tensors[name] = tensor
    return dataclasses.replace(weights, tensors=tensors, ignored=ignored)


def _change(weights, changes):
    """The changed `Weights`, and sentences on the changes."""
    config, notes = weights.config, [*weights.notes]
    known = {field.name for field in dataclasses.fields(config)}
    for flag, key in (("hidden_act", config.activation_key), *zip(TABLES, TABLES)):
        if getattr(changes, flag) is not None and key not in known:
            raise InputError(f"--{flag}: {weights.source} has the type {config.model_type}, which "
                             "has no such setting; leave the flag out.")
    weights = _without(weights, changes.leave_out, changes.task)
    if changes.hidden_act:
        weights = dataclasses.replace(weights, config=dataclasses.replace(
            config, **{config.activation_key: changes.hidden_act}))
    for step in (cut, grow, round_to):
        weights, more = step(weights, changes)
        notes += more
    if changes.do_lower_case is not None:
        weights = dataclasses.replace(weights, do_lower_case=changes.do_lower_case)
    if weights.tokenizer:
        weights = dataclasses.replace(weights, do_lower_case=weights.tokenizer.do_lower_case)
    if weights.generator:
        its, _ = _change(weights.generator, dataclasses.replace(changes, leave_out=(), task=None))
        weights = dataclasses.replace(weights, generator=its)
    return weights, notes


def _account(weights, tensors, table, name, notes):
    rules = table.rules(weights.config)
    written = {rule.ours for rule in rules if rule.theirs in tensors}
    places = {names.head(rule.ours) for rule in rules}
    unheld = {names.head(ours) for ours in weights.tensors.keys() - written}
    if lost := sorted(unheld & set(names.NETWORK)):
        raise InputError(f"the format {name} can't hold {', '.join(lost)} of "
                         f"{weights.source}; choose another format.")
    if torn := sorted(unheld & set(map(names.head, written))):
        raise InputError(f"the format {name} can't hold all of {', '.join(torn)} of "
                         f"{weights.source}; give --leave_out={','.join(torn)}.")
    left = {tensor.name: f"of the head {names.head(ours)}, which the format {name} does not have"
            for ours, tensor in weights.tensors.items() if ours not in written}
    missing = [head for head in _USUAL_HEADS if head not in weights.heads and head in places]
    return Account(weights.source, {ours: weights.tensors[ours].name for ours in sorted(written)},
                   {**weights.ignored, **left}, missing, "so not converted",
                   tuple(dict.fromkeys((*notes, *table.notes))))


def _finite(weights):
    """The `Weights`, whose tensors raise InputError if they are read and hold NaN or infinity."""
    def checked(tensor):
        def check(values):
            if not np.isfinite(np.asarray(values)).all():
                raise InputError(f"{tensor.name} of {weights.source} holds NaN or infinity: the "
                                 "training diverged, the file is damaged, or --dtype is too "
                                 "narrow; take an earlier checkpoint, or --dtype=float32.")
            return values
        return tensor.changed(check)

    return dataclasses.replace(
        weights, tensors={name: checked(one) for name, one in weights.tensors.items()},
        generator=weights.generator and _finite(weights.generator))


def _fold(weights, table, form):
    """The `Weights`, whose regression contains the mean and the factor of its labels, for formats
    without a place for these, and sentences on that; InputError if both orders are added up."""
    held = {names.head(rule.ours) for rule in table.rules(weights.config)} & set(weights.heads)
    if form == "keras":
        return weights, []
    for head in sorted(held):
        if "orders" in weights.beside(head):
            raise InputError(f"{weights.source}: the head {head} reads each pair of texts in both "
                             f"orders, for which the format {form} has no place; choose keras, or "
                             f"give --leave_out={head}.")
    if "regression" not in held or not (beside := weights.beside("regression")):
        return weights, []
    scale, mean = beside.get("scale", 1), beside.get("mean", 0)

    def answering(name, tensor):
        shift = mean * name.endswith("/bias")
        return tensor.changed(lambda values: (values * scale + shift).astype(tensor.dtype))

    tensors, notes = {**weights.tensors}, []
    for name in ("regression/dense/kernel", "regression/dense/bias"):
        tensors[name] = answering(name, tensors[name])
    if scale != 1:
        notes.append(f"regression/dense is multiplied by {scale:.6g}, the factor of its answers.")
    if mean:
        notes.append(f"{mean:.6g}, the mean of its labels, is added to its bias.")
    return dataclasses.replace(weights, tensors=tensors), notes


def convert(path: str, output: str, form: str, changes: Changes = Changes(),
            dry_run: bool = False, finish: Callable[[str, Account], None] | None = None
            ) -> Account:
    """Converts the checkpoint at `path` to a folder of another format. Print the `Account`.

    Args:
        path: a folder of any format, or the checkpoint in it.
        output: the folder to write; it must be absent or empty, and is whole or absent afterwards.
        form: the name of a format in `FORMATS` that can be written.
        dry_run: check everything, write nothing.
        finish: writes further files into the folder, before it appears under its name.

    Raises:
        InputError: the checkpoint can't be used, or the format can't hold it.
    """
    writable = [name for name, candidate in FORMATS.items() if candidate.writable]
    if form not in writable:
        raise InputError(f"there is no format {form!r} to write; choose from "
                         f"{', '.join(writable)}.")
    if not dry_run:
        check_free(output, "config.json")       # before a model is downloaded
    source = read_source(path, changes.task, changes.generator)
    weights, its = (part and translate(part, adopt(config_of(part), part, changes))
                    for part in (source, source.generator))
    weights, notes = _change(dataclasses.replace(weights, generator=its), changes)
    weights = _finite(weights)
    writer = FORMATS[form].module
    table = writer.table_for(weights)
    weights, folded = _fold(weights, table, form)
    tensors = to_table(weights, table)
    account = _account(weights, tensors, table, form, (*notes, *folded))
    if weights.generator and hasattr(writer, "add_generator"):
        tensors, account = writer.add_generator(tensors, account, weights.generator)
    if dry_run:
        for tensor in tensors.values():
            tensor.read()
    else:
        with folder_aside(output, "config.json") as folder:
            writer.write(folder, weights, tensors)
            if form == "huggingface":
                sentence_modules.copy(os.path.dirname(source.file), folder, weights.config)
            if finish:
                finish(folder, account)
    return account


# Our names of the tensors that have a row for each word or position, by the key of their size.
TABLES = {"vocab_size": ("embeddings/word_embeddings", "logits/kernel", *(
              f"{head.name}/{part}" for head in HEADS.values()
              for part, shape in head.shapes.items() if shape.startswith("V"))),
          "max_position_embeddings": ("embeddings/position_embeddings",)}


def adopt(config: EncoderConfig, source: Source, changes) -> EncoderConfig:
    """`config` with the sizes that the tables of a `Source` have, where these are to be cut."""
    names_there = {rule.ours: rule.theirs for rule in source.table.rules(config)}
    sizes = {}
    for key, (table, *_) in TABLES.items():
        tensor = source.tensors.get(names_there.get(table, ""))
        if getattr(changes, key) is not None and tensor and tensor.shape:
            sizes[key] = tensor.shape[0]
    return dataclasses.replace(config, **sizes)


def _with_rows(weights: Weights, key: str, count: int, change: Callable) -> Weights:
    """The `Weights` whose `TABLES` have `count` rows, which `change` makes of the rows that they
    have; "logits/kernel" has columns in place of rows."""
    tensors = {**weights.tensors}
    for name in tensors.keys() & {*TABLES[key]}:
        tensor, is_transposed = tensors[name], name == "logits/kernel"
        if is_transposed:
            tensor = tensor.transposed()
        tensor = tensor.changed(change, shape=(count, *tensor.shape[1:]))
        tensors[name] = tensor.transposed() if is_transposed else tensor
    return dataclasses.replace(weights, tensors=tensors, config=dataclasses.replace(
        weights.config, **{key: count}))


def cut(weights: Weights, changes) -> tuple[Weights, list[str]]:
    """The `Weights` with as few words and positions as asked for, and sentences on that; InputError
    if there are not so many."""
    notes = []
    for key in TABLES:
        asked, held = getattr(changes, key), getattr(weights.config, key)
        if asked in (None, held):
            continue
        if not 0 < asked < held:
            raise InputError(f"--{key}={asked}: {weights.source} has {held} rows; rows can be "
                             f"removed, but added rows would be untrained; give 1 to {held}.")
        weights = _with_rows(weights, key, asked, lambda values, rows=asked: values[:rows])
        notes.append(f"{key}: the first {asked} of {held} rows.")
    return weights, notes


def round_to(weights: Weights, changes) -> tuple[Weights, list[str]]:
    """The `Weights` in the requested type, and a sentence on that; InputError for others."""
    if not changes.dtype:
        return weights, []
    if changes.dtype not in FLOATS:
        raise InputError(f"--dtype must be one of {', '.join(FLOATS)}, not {changes.dtype}.")
    others = sum(tensor.dtype != changes.dtype for tensor in weights.tensors.values())
    tensors = {name: tensor.changed(lambda values: np.asarray(values).astype(changes.dtype),
                                    dtype=changes.dtype)
               for name, tensor in weights.tensors.items()}
    return (dataclasses.replace(weights, tensors=tensors),
            [f"{others} tensors converted to {changes.dtype}."])


def new_rows(tokenizer: WordpieceTokenizer, new: Vocabulary, path: str) -> dict[int, list[int]]:
    """For the id of each token that only `new` has, the ids of its sub-words in a tokenizer.
    InputError if `new`, the vocabulary at `path`, isn't the tokenizer's with tokens added at its
    end or in unused slots."""
    old = tokenizer.vocabulary
    if new.size < old.size:
        raise InputError(f"{path} has {new.size} tokens, fewer than the {old.size} of the "
                         "checkpoint's vocabulary; give the checkpoint's vocabulary with words "
                         "added.")
    for index, (before, after) in enumerate(zip(old.tokens, new.tokens)):
        if before != after and not is_unused(before):
            raise InputError(f"{path}, line {index + 1} is {after!r}, but the checkpoint's "
                             f"vocabulary has {before!r} there; give the checkpoint's vocabulary "
                             "with words added.")
    added = {index: token for index, token in enumerate(new.tokens)
             if index >= old.size or token != old.tokens[index]}
    return {index: tokenizer.match(token.removeprefix("##"), token.startswith("##"))
            for index, token in added.items()}


def grow(weights: Weights, changes) -> tuple[Weights, list[str]]:
    """The `Weights` with the vocabulary that is asked for, and sentences on its new words;
    InputError if it doesn't belong to the checkpoint."""
    path = changes.vocab_file or weights.vocab_file
    if not path:
        return weights, ["There is no vocabulary; give --vocab_file to have one written."]
    tokenizer = open_tokenizer(path, rows=weights.config.vocab_size)
    new, held, rows = tokenizer.vocabulary, weights.config.vocab_size, {}
    if changes.vocab_file and weights.vocab_file:
        own = open_tokenizer(weights.vocab_file, rows=held)
        old = own.vocabulary
        if old.tokens != new.tokens and not own.name == tokenizer.name == "wordpiece":
            raise InputError(f"{path} is not the vocabulary of the checkpoint, "
                             f"{weights.vocab_file}; words can only be added to a WordPiece "
                             "vocabulary.")
        rows = new_rows(own, new, path)
    elif new.size > held:
        raise InputError(f"{path} has {new.size} tokens, but the model has only {held}; give the "
                         "vocabulary of the checkpoint.")
    size = max(held, new.size)

    def add_means(values):
        more = np.zeros((size, *values.shape[1:]), values.dtype)
        more[:len(values)] = values
        for index, ids in rows.items():
            more[index] = values[ids].astype("float64").mean(axis=0).astype(values.dtype)
        return more
    notes = []
    if rows:
        weights = _with_rows(weights, "vocab_size", size, add_means)
        notes.append(f"{counted(len(rows), 'new row')}, each the mean of its old sub-words:")
        notes += [f"    {index} {new.tokens[index]}: {' '.join(old.tokens[i] for i in ids)}"
                  for index, ids in rows.items()]
    if size > new.size:
        notes.append(f"{size - new.size} rows pad the vocabulary of {new.size} tokens to {size}.")
    config = dataclasses.replace(weights.config, vocab_size=size)
    return dataclasses.replace(weights, config=config, vocab_file=path), notes


def write_around(folder: str, path: str, changes: Changes, labels: Sequence[str] = ()) -> None:
    """Writes what Hugging Face's libraries read beside a model in ONNX: the files of the format
    huggingface, except the weights. `labels` are names of the classes for `config.json`; none: as
    the checkpoint at `path` has them."""
    with tempfile.TemporaryDirectory() as aside:
        written = os.path.join(aside, "model")
        convert(path, written, "huggingface", changes)
        if labels:
            config, numbered = os.path.join(written, "config.json"), dict(enumerate(labels))
            write_json(config, {
                **read_json(config), "id2label": {str(i): numbered[i] for i in numbered},
                "label2id": {label: i for i, label in numbered.items()}})
        settings, special_tokens = (os.path.join(written, name) for name in (
            SETTINGS_FILE, "special_tokens_map.json"))      # fastembed reads the second one
        if exists(settings) and not exists(special_tokens):
            named = {key: value for key, value in read_json(settings).items()
                     if key.endswith("_token")}
            for value in named.values():
                if isinstance(value, dict):
                    value.pop("__type")
            write_json(special_tokens, named)
        for path in files_under(written):
            if not path.endswith(".safetensors"):
                target = os.path.join(folder, relative(path, written))
                make_folders(os.path.dirname(target))
                copy_file(path, target)
