"""Streams of text for XLNet: files, one after the other, cut into rows of equal length that are
read side by side (zihangdai/xlnet, data_utils.py, _create_data and create_tfrecords).

Shapes: T tokens, R rows, N tokens of a row.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass
class Stream:
    """A text; a flag that changes between sentences separates them.

    Attributes:
        ids: int32 [T].
        flags: bool [T].
        lines: number of lines in the text.
        documents: number of blank lines, plus one.
    """

    ids: np.ndarray
    flags: np.ndarray
    lines: int = 0
    documents: int = 1


def read_stream(lines: Sequence[str], tokenizer, eod_id: int | None, holds_ids: bool = False
                ) -> Stream:
    """Returns the stream of one file: every line is a sentence.

    Args:
        eod_id: the token that a blank line becomes, a sentence of its own; None leaves blank lines
            out.
        holds_ids: whether the lines hold ids, not text.

    Raises:
        ValueError: a line does not hold ids.
    """
    # TensorFlow's reader of lines drops carriage returns wherever they are.
    lines = [line.replace("\r", "") for line in lines]
    blank = np.array([not line.strip() for line in lines], bool)
    if holds_ids:
        rows = [np.array(line.split(), np.int32) for line in lines]
        ids = np.concatenate([np.zeros(0, np.int32), *rows])
        lengths = np.array([len(row) for row in rows], np.int64)
    else:
        ids, lengths = tokenizer.encode_lines(lines)
    # The flag starts at True, and changes after every line that is not blank.
    flags = (np.cumsum(~blank) - ~blank) % 2 == 0
    if eod_id is not None:
        ends = np.cumsum(lengths)[blank] - lengths[blank]
        ids = np.insert(ids, ends, eod_id)
        lengths = np.where(blank, 1, lengths)
        flags ^= blank
    return Stream(ids.astype(np.int32), np.repeat(flags, lengths), len(lines), 1 + int(blank.sum()))


def join(streams: Sequence[Stream], order: np.ndarray) -> Stream:
    """Streams one after the other in some order; a file begins another sentence than the last of
    the file before."""
    ids, flags = [np.zeros(0, np.int32)], [np.zeros(0, bool)]
    for index in order:
        found = streams[index]
        if not len(found.ids):
            continue
        ids.append(found.ids)
        flags.append(found.flags ^ (len(flags[-1]) > 0 and bool(found.flags[0] == flags[-1][-1])))
    return Stream(np.concatenate(ids), np.concatenate(flags), sum(s.lines for s in streams),
                  sum(s.documents for s in streams))


def cut_rows(stream: Stream, rows: int, cores: int, bi_data: bool
             ) -> tuple[np.ndarray, np.ndarray]:
    """The stream in rows of equal length; the remaining tokens at its end are left out.

    Args:
        cores: how many devices share the rows.
        bi_data: whether the second half of each device's rows is the first half read backward.

    Returns:
        ids, int32 [R, N], and flags, bool [R, N].
    """
    forward = rows // (1 + bi_data)
    length = len(stream.ids) // forward

    def cut(values):
        values = values[:forward * length].reshape(cores, 1, forward // cores, length)
        both = [values, values[..., ::-1]] if bi_data else [values]
        return np.concatenate(both, 1).reshape(rows, length)

    return cut(stream.ids), cut(stream.flags)


def is_backward(row, rows: int, cores: int, bi_data: bool):
    """Returns whether a row, int or array or tensor, reads the text backward."""
    per_core = rows // cores
    return (row % per_core >= per_core // 2) & bi_data
