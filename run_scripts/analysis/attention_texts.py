"""The texts whose attention is shown, as batches of features."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_tf import analysis
from bert_tf.data.text.vectors import SEPARATOR, Texts, read_lines
from bert_tf.errors import InputError
from bert_tf.tasks import forms
from bert_tf.tokenization import Tokenizer

_LINES = 20_000


def _read_lines(job):
    """Returns the first --num_docs lines of --input_file that are not blank, by their numbers."""
    forms.check_lines(job.input_file)
    lines = itertools.chain.from_iterable(read_lines(job.input_file, _LINES))
    texts = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    if numbered := dict(itertools.islice(texts, job.num_docs)):
        return numbered
    raise InputError(f"--input_file: {job.input_file} gives no text: it must have one line.")


def read_features(job: Any, tokenizer: Tokenizer, max_seq_length: int) -> list[dict]:
    """Returns the features of each text of an `AttentionFlags`, int32 [1, n], without padding."""
    if job.texts == "lines":
        lines = list(_read_lines(job).values())
        texts = Texts(lines, tokenizer, max_seq_length)
        rows = [texts.pack(np.array([number])) for number in range(len(lines))]
    else:
        documents = analysis.encode_documents(job.input_file, tokenizer, _LINES)
        pairs = analysis.clark_segments(documents, max_seq_length, job.num_docs,
                                        random.Random(job.random_seed),
                                        tokenizer.vocabulary.layout.special(True))
        rows = [analysis.pack([pair], tokenizer) for pair in pairs]
    if not rows:
        room = tokenizer.vocabulary.layout.room(max_seq_length, True)
        raise InputError(f"--input_file: {job.input_file} gives no text: it must have a document "
                         f"whose first two lines have fewer than {room} tokens each; "
                         "give shorter lines, a larger --max_seq_length or --texts=lines.")
    for row in rows if job.zero_segments else ():
        row["segment_ids"][:] = 0
    return rows


def read_pairs(job: Any, tokenizer: Tokenizer, max_seq_length: int) -> list[dict]:
    """Returns the features of each source and target for T5, int32 [1, n]."""
    rows = []
    for number, line in _read_lines(job).items():
        texts = line.split(SEPARATOR)
        if len(texts) != 2:
            raise InputError(f"--input_file: line {number} of {job.input_file} must be two texts "
                             f"with {SEPARATOR!r} between them, for --maps={job.maps}.")
        source, target = (tokenizer.encode(text)[:max_seq_length - 1] for text in texts)
        rows.append({name: np.array([ids], np.int32) for name, ids in (
            ("encoder_input_tokens", [*source, tokenizer.vocabulary.sep_id]),
            ("decoder_input_tokens", [0, *target]))})
    return rows


def padded(rows: list[dict], size: int) -> Iterator[dict]:
    """Yields batches of `size` texts [1, n], each feature padded to its longest."""
    for start in range(0, len(rows), size):
        part = rows[start:start + size]
        longest = {name: max(row[name].shape[1] for row in part) for name in part[0]}
        yield {name: np.concatenate([
            np.pad(row[name], ((0, 0), (0, longest[name] - row[name].shape[1])))
            for row in part]) for name in part[0]}
