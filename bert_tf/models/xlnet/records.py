"""XLNet's records (zihangdai/xlnet, data_utils.py, _create_data and create_tfrecords): files, one
after the other, are cut into rows of equal length that are read side by side. A record has a part
of a row, the text after it in two segments, and the tokens that are predicted.

Shapes: T tokens, R rows, N tokens of a row, S sequence, M records.
"""

import dataclasses
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass
class Stream:
    """A text; a flag that changes between sentences separates them."""

    ids: np.ndarray
    flags: np.ndarray
    lines: int = 0
    documents: int = 1


def read_stream(lines: Sequence[str], tokenizer, eod_id: int | None, holds_ids: bool = False
                ) -> Stream:
    """The stream of one file: every line is a sentence. `eod_id` is the token of a blank line, a
    sentence of its own; None leaves blank lines out. With `holds_ids` lines hold ids, not text;
    ValueError if they do not."""
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
    """Streams one after the other in some order; each file begins a sentence of its own."""
    ids, flags = [np.zeros(0, np.int32)], [np.zeros(0, bool)]
    for index in order:
        stream = streams[index]
        if not len(stream.ids):
            continue
        ids.append(stream.ids)
        flags.append(stream.flags ^ (len(flags[-1]) > 0 and bool(stream.flags[0] == flags[-1][-1])))
    return Stream(np.concatenate(ids), np.concatenate(flags), sum(s.lines for s in streams),
                  sum(s.documents for s in streams))


def cut_rows(stream: Stream, rows: int, cores: int, bi_data: bool) -> tuple[np.ndarray, np.ndarray]:
    """The stream in rows of equal length, ids, int32 [R, N], and flags, bool [R, N]; the remaining
    tokens at its end are left out. `cores` devices share the rows; with `bi_data` the second half
    of each device's rows is the first half read backward."""
    forward = rows // (1 + bi_data)
    length = len(stream.ids) // forward

    def cut(values):
        values = values[:forward * length].reshape(cores, 1, forward // cores, length)
        both = [values, values[..., ::-1]] if bi_data else [values]
        return np.concatenate(both, 1).reshape(rows, length)

    return cut(stream.ids), cut(stream.flags)


def is_backward(row, rows: int, cores: int, bi_data: bool):
    """Whether a row, int or array or tensor, reads the text backward."""
    per_core = rows // cores
    return (row % per_core >= per_core // 2) & bi_data


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of records, and the shares of predicted tokens.

    Attributes:
        reuse_len: tokens of the part that the network keeps for the next batch.
        num_predict: predictions of a record, as many in each half; None for all that are drawn.
        bsz_per_host, num_core_per_host, bi_data: see `cut_rows`.
        mask_alpha, mask_beta: n tokens are predicted in alpha / beta * n.
        whole_grams: whether runs consist of words. The original counts sub-words by mistake: it
            asks whether a word begins at the first token, not at the last.
    """

    max_seq_length: int
    reuse_len: int
    num_predict: int | None
    bsz_per_host: int
    num_core_per_host: int = 1
    bi_data: bool = True
    mask_alpha: int = 6
    mask_beta: int = 1
    max_gram: int = 5
    whole_grams: bool = False


@dataclasses.dataclass(frozen=True)
class Pair:
    """Segments A and B of a row: their slices, and 1 if B follows A, 0 if it is random."""

    a: slice
    b: slice
    label: int


def split_a_and_b(edges: list[int], begin: int, total: int, draws: random.Random) -> Pair | None:
    """`_split_a_and_b`: a run of sentences and the text after it, or text elsewhere in the row,
    with `total` tokens together; None where the row ends too early, also for the token after B.
    `edges` are the places where sentences begin in the row, and its length."""
    length = edges[-1]
    if begin + total >= length:
        return None
    first, last = bisect_right(edges, begin), bisect_left(edges, begin + total)
    cuts, end = edges[first:last], edges[last]
    label = 0
    if not cuts or draws.random() < 0.5:
        a_end = draws.choice(cuts) if cuts else end
        b_length = max(1, total - (a_end - begin))
        b_begin = draws.randint(0, length - 1 - b_length)
        b_end = b_begin + b_length
        b_begin = edges[bisect_right(edges, b_begin) - 1]
        b_end = min(edges[bisect_left(edges, b_end)], length - 1)
    else:
        label = 1
        a_end = b_begin = draws.choice(cuts)
        b_end = end
    a_length, b_length = a_end - begin, b_end - b_begin
    while a_length + b_length > total:
        if a_length > b_length:
            a_length -= 1
        else:
            b_length -= 1
    a_end, b_end = begin + a_length, b_begin + b_length
    if a_end >= length or b_end >= length:
        return None
    return Pair(slice(begin, a_end), slice(b_begin, b_end), label)


class MaskSampler:
    """Draws runs of tokens to predict, each in a context that is not predicted (the original's
    `_sample_mask`). `continues`, bool [V], says whether each token continues a word."""

    def __init__(self, shape: Shape, continues: np.ndarray, draws: np.random.RandomState) -> None:
        self._shape, self._begins, self._draws = shape, ~continues, draws
        shares = 1.0 / np.arange(1, shape.max_gram + 1)
        cumulative = (shares / shares.sum()).cumsum()
        self._cumulative = cumulative / cumulative[-1]      # as np.random.choice draws

    def sample(self, ids: np.ndarray, reverse: bool, goal: int | None) -> np.ndarray:
        """Which tokens of `ids`, int [n], are predicted, bool [n]. `reverse`: whether the text runs
        backward; `goal`: the number of predictions; None: all that are drawn."""
        step = -1 if reverse else 1
        begins = self._begins[ids[::step]]
        starts, size = np.flatnonzero(begins).tolist(), len(ids)
        mask = np.zeros(size, bool)
        draws, shape = self._draws, self._shape
        place = done = 0
        while place < size and (goal is None or done < goal):
            count = 1 + int(self._cumulative.searchsorted(draws.random_sample(), "right"))
            if goal is not None:
                count = min(count, goal - done)
            context = count * shape.mask_alpha // shape.mask_beta
            left = int(draws.randint(context))
            index = bisect_left(starts, place + left)
            if index == len(starts):
                break
            begin = starts[index]
            end = begin + count
            if shape.whole_grams:
                end = starts[index + count] if index + count < len(starts) else size
                if goal is not None:
                    end = min(end, begin + goal - done)
            if end >= size:
                break
            mask[begin:end] = True
            done += end - begin
            place = end + context - left
        while goal is not None and done < goal:
            index = int(draws.randint(size))
            done += not mask[index]
            mask[index] = True
        return mask[::step]


class StreamRecords:
    """The records of `make_records`, as `instances_of` names them."""

    @staticmethod
    def feature_names(recipe: Any) -> list[str]:
        return ["input", "is_masked", "target", "seg_id", "label"]


def make_records(ids: np.ndarray, flags: np.ndarray, shape: Shape, cls_id: int, sep_id: int,
                 sampler: MaskSampler, draws: random.Random) -> Iterator[dict[str, np.ndarray]]:
    """Yields the records of a stream, ids int [R, N] and flags bool [R, N], a batch at a time:
    input, target and seg_id, int32 [R, S], is_masked, bool [R, S], and label, int32 [R, 1]. Row r
    of each batch begins `reuse_len` tokens after row r of the last batch."""
    rows, length = ids.shape
    size, reuse = shape.max_seq_length, shape.reuse_len
    goals: tuple = None, None
    if shape.num_predict is not None:
        goals = shape.num_predict - shape.num_predict // 2, shape.num_predict // 2
    edges = [[0, *(np.flatnonzero(row[1:] != row[:-1]) + 1).tolist(), length] for row in flags]
    backward = [bool(is_backward(row, rows, shape.num_core_per_host, shape.bi_data))
                for row in range(rows)]
    for place in range(0, length - size + 1, reuse):
        batch: dict[str, list] = {name: [] for name in (
            "input", "is_masked", "target", "seg_id", "label")}
        for row in range(rows):
            text = ids[row]
            pair = split_a_and_b(edges[row], place + reuse, size - reuse - 3, draws)
            if pair is None:
                return
            reused, a, b = text[place:place + reuse], text[pair.a], text[pair.b]
            rest = np.concatenate([a, [sep_id], b, [sep_id, cls_id]])
            batch["input"].append(np.concatenate([reused, rest]))
            batch["is_masked"].append(np.concatenate([
                sampler.sample(part, backward[row], goal)
                for part, goal in zip((reused, rest), goals)]))
            # At A's separator the target is B's first token.
            batch["target"].append(np.concatenate([
                text[place + 1:place + reuse + 1], text[pair.a.start + 1:pair.a.stop + 1],
                text[pair.b.start:pair.b.stop + 1], [cls_id, cls_id]]))
            batch["seg_id"].append(np.repeat([0, 1, 2], [reuse + len(a) + 1, len(b) + 1, 1]))
            batch["label"].append([pair.label])
        yield {name: np.array(values, bool if name == "is_masked" else np.int32)
               for name, values in batch.items()}
