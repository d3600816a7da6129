"""New words for a model: each new row is the mean of the rows of its old sub-words."""

import dataclasses
import functools

import numpy as np

from bert_tf.conversion.resizing import TABLES
from bert_tf.errors import InputError
from bert_tf.tokenization.vocabulary import Vocabulary, is_unused


def looks_lower_case(vocabulary):
    """Whether no token but the special ones has a capital letter."""
    return all(token == token.lower() or token.startswith("[") for token in vocabulary.tokens)


def pieces(token, vocabulary):
    """The ids of a token's longest sub-words in `vocabulary`, from left to right; [UNK] if it
    can't be cut.
    """
    ids, mark, rest = [], "", token
    if token.startswith("##") and len(token) > 2:
        mark, rest = "##", token[2:]
    while rest:
        end = next((end for end in range(len(rest), 0, -1) if mark + rest[:end] in vocabulary.ids),
                   None)
        if end is None:
            return [vocabulary.unk_id]
        ids.append(vocabulary.ids[mark + rest[:end]])
        mark, rest = "##", rest[end:]
    return ids or [vocabulary.unk_id]


def new_rows(old, new, path):
    """A dict: id of a token that `new` has and `old` has not -> ids of its sub-words in `old`.

    Raises:
        InputError: `new`, the vocabulary at `path`, isn't `old` with tokens added at its end or in
            unused slots.
    """
    if new.size < old.size:
        raise InputError(f"{path} has {new.size} tokens, fewer than the checkpoint's own "
                         f"{old.size}; give that vocabulary with words added.")
    for index, (before, after) in enumerate(zip(old.tokens, new.tokens)):
        if before != after and not is_unused(before):
            raise InputError(f"{path}, line {index + 1}: is {after!r}, but the checkpoint's own "
                             f"vocabulary has {before!r}; give that vocabulary with words added.")
    return {index: pieces(token, old) for index, token in enumerate(new.tokens)
            if index >= old.size or token != old.tokens[index]}


def _grown(tensor, size, rows):
    """A `Tensor` of `size` rows: the old ones, and means of these."""

    def read():
        old = tensor.read()
        new = np.zeros((size, *old.shape[1:]), old.dtype)
        new[:len(old)] = old
        for index, ids in rows.items():
            new[index] = old[ids].astype("float64").mean(axis=0).astype(old.dtype)
        return new

    return dataclasses.replace(tensor, shape=(size, *tensor.shape[1:]), read=read)


def apply(weights, changes):
    """The `Weights` with the vocabulary that is asked for, and sentences on its new words.

    Raises:
        InputError: the vocabulary doesn't belong to the checkpoint.
    """
    path = changes.vocab_file or weights.vocab_file
    if not path:
        return weights, ["There is no vocabulary; give --vocab_file to have one written."]
    new = Vocabulary.from_file(path)
    held, rows = weights.config.vocab_size, {}
    if changes.vocab_file and weights.vocab_file:
        old = Vocabulary.from_file(weights.vocab_file)
        rows = new_rows(old, new, path)
    elif new.size > held:
        raise InputError(f"{path} has {new.size} tokens, but the model only {held}; give the "
                         "vocabulary of the checkpoint.")
    size = max(held, new.size)
    grow = functools.partial(_grown, size=size, rows=rows)
    tensors = {name: grow(tensor) if rows and name in TABLES["vocab_size"] else tensor
               for name, tensor in weights.tensors.items()}
    notes = [f"{len(rows)} rows are new, means of their old sub-words:"] if rows else []
    notes += [f"    {index} {new.tokens[index]}: {' '.join(old.tokens[i] for i in ids)}"
              for index, ids in rows.items()]
    if size > new.size:
        notes.append(f"{size - new.size} rows pad the vocabulary of {new.size} tokens to {size}.")
    config = dataclasses.replace(weights.config, vocab_size=size)
    return dataclasses.replace(weights, tensors=tensors, config=config, vocab_file=path), notes
