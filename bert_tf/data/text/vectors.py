"""Texts as ids, some lines at a time, and files of their vectors, written piece by piece;
docs/using_a_model.md has the formats.

A line is one text, or two with " ||| " between them (google-research/bert, extract_features.py). N
is the number of texts, T the number of tokens of all texts one after another, H hidden.
"""

import codecs
import contextlib
import dataclasses
import itertools
import json
import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterable, Iterator

import numpy as np

from bert_tf.data.records.features import pack_pairs, truncate_pairs
from bert_tf.data.records.tfrecord import write_shard
from bert_tf.data.text import corpus
from bert_tf.errors import InputError
from bert_tf.files import is_remote, open_unpacked, write_aside
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.vocabulary import Vocabulary

SEPARATOR = " ||| "     # between two texts of a line

_ENDINGS = {".jsonl": "jsonl", ".npz": "npz", ".safetensors": "safetensors",
            ".tfrecord": "tfrecord", ".tfrecord.gz": "tfrecord"}
FORMATS = tuple(dict.fromkeys(_ENDINGS.values()))
_SAFETENSORS_TYPES = {"float32": "F32", "int32": "I32"}


def read_lines(path: str, count: int) -> Iterator[list[str]]:
    """Yields all lines of a file, plain or gzip, empty ones too, in lists of at most `count`,
    without a byte-order mark; InputError names a line that is not UTF-8."""
    mark = codecs.BOM_UTF8
    with open_unpacked(path) as file:
        while lines := list(itertools.islice(file, count)):
            yield corpus.decode(b"".join(lines).removeprefix(mark).removesuffix(b"\n"), [path])
            mark = b""


@dataclasses.dataclass
class Rows:
    """Sequences to compute, and where the vectors of their tokens go: int [R]."""

    rows: np.ndarray    # as `Texts.pack` takes them
    lengths: np.ndarray     # tokens of each
    owners: np.ndarray  # the text of each, counted from the first one
    begins: np.ndarray  # the columns that are kept of each, from and to before
    ends: np.ndarray
    places: np.ndarray  # of the first of these among the tokens of the text


class Texts:
    """Texts as ids, cut to fit; any of them may be packed into a batch.

    Args:
        max_seq_length: the most tokens of a text, at least 3.

    Attributes:
        lengths: int [N], tokens of each, special tokens included.
    """

    def __init__(self, lines: list[str], tokenizer: Tokenizer, max_seq_length: int):
        self._vocabulary = tokenizer.vocabulary
        parts = (line.strip().rpartition(SEPARATOR) for line in lines)
        self._tokens, lengths = tokenizer.encode_lines([
            text for first, separator, second in parts
            for text in ((first, second) if separator else (second, ""))])
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        self._a_start, self._b_start = starts.reshape(-1, 2).T
        a_length, b_length = lengths.reshape(-1, 2).T
        layout = self._vocabulary.layout
        self._a_length, self._b_length = truncate_pairs(a_length, b_length, max_seq_length, layout)
        self.cut = int(((self._a_length < a_length) | (self._b_length < b_length)).sum())
        self.lengths = layout.length(self._a_length, self._b_length)
        self._whole = a_length, b_length

    def rows(self, start: int, end: int) -> Rows:
        lengths, owners = self.lengths[start:end], np.arange(end - start)
        nothing = np.zeros_like(owners)
        return Rows(start + owners, lengths, owners, nothing, lengths, nothing)

    def pack(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the features of the sequences `rows`, int [B], padded to the longest one: the
        names of `pack_pairs`, all int32."""
        runs = [run[rows] for run in (self._a_start, self._a_length, self._b_start, self._b_length)]
        longest = int(self._vocabulary.layout.length(runs[1], runs[3]).max())
        packed = pack_pairs(self._tokens, *runs, longest, self._vocabulary)
        return {name: values.astype(np.int32) for name, values in packed.items()}


class Windows(Texts):
    """Texts; long ones are read in windows that overlap by half. A token is taken from the first
    window where its shorter side has the most context (google-research/bert run_squad.py,
    _check_is_max_context). Long pairs are cut to fit."""

    def __init__(self, lines: list[str], tokenizer: Tokenizer, max_seq_length: int):
        super().__init__(lines, tokenizer, max_seq_length)
        layout, (a_length, b_length) = self._vocabulary.layout, self._whole
        room, windows = layout.room(max_seq_length, False), []
        for text, length in enumerate(self.lengths):
            if b_length[text] or a_length[text] <= room:
                windows.append((text, 0, self._a_length[text], 0, length, 0))
                continue
            self.cut -= 1
            self.lengths[text] = layout.length(a_length[text], 0)
            windows += [(text, start, room, *taken) for start, *taken in _windows(
                int(a_length[text]), room, layout.before, layout.after)]
        (self._owners, starts, sizes, self._begins, self._ends,
         self._places) = np.array(windows, int).T
        self._a_start = self._a_start[self._owners] + starts
        self._a_length = sizes
        self._b_start, self._b_length = (run[self._owners]
                                         for run in (self._b_start, self._b_length))
        self._row_lengths = layout.length(self._a_length, self._b_length)

    def rows(self, start: int, end: int) -> Rows:
        rows = np.flatnonzero((self._owners >= start) & (self._owners < end))
        return Rows(rows, self._row_lengths[rows], self._owners[rows] - start, self._begins[rows],
                    self._ends[rows], self._places[rows])


def _windows(count, size, before, after):
    """Yields the windows of `count` tokens: a window's first token, its kept columns, from and to
    before, and the place of the first kept column; special tokens go with the ends."""
    starts = np.linspace(0, count - size, -(-(count - size) // max(size // 2, 1)) + 1)
    starts = starts.round().astype(int)
    tokens = np.arange(count)
    left = tokens - starts[:, None]
    context = np.where((left >= 0) & (left < size), np.minimum(left, size - 1 - left), -1)
    best = context.argmax(0)
    for number, start in enumerate(starts):
        tokens_of_window = np.flatnonzero(best == number)
        first, last = tokens_of_window[[0, -1]] - start + before + [0, 1]
        if number == 0:
            first = 0
        if number == len(starts) - 1:
            last = before + size + after
        yield start, first, last, first + start


@dataclasses.dataclass
class Piece:
    """The vectors of texts that follow one another."""

    first: int  # the number of the first text, from 0
    vectors: dict   # layer (int or str) -> float32 [N, H], or [T, H] of tokens
    input_ids: np.ndarray | None = None     # int32 [T], or None if the vectors are pooled
    lengths: np.ndarray | None = None   # int32 [N], the tokens of each text; None likewise

    def arrays(self) -> dict[str, np.ndarray]:
        """A dict of everything by the names in the files."""
        arrays = {f"layer_{layer}" if isinstance(layer, int) else layer: rows
                  for layer, rows in self.vectors.items()}
        if self.lengths is not None:
            arrays |= {"input_ids": self.input_ids, "lengths": self.lengths}
        return arrays

    def spans(self) -> list[tuple[int, int]]:
        """The (start, end) in T of each text."""
        ends = np.cumsum(self.lengths).tolist()
        return list(zip([0, *ends], ends))


def format_of(path: str) -> str:
    """Returns the format that the ending of a file's name chooses; InputError if none has it."""
    for ending, form in _ENDINGS.items():
        if path.endswith(ending):
            return form
    raise InputError(f"--output_file: no format has the extension of {path}; give "
                     f"{', '.join(_ENDINGS)}, or --output_format.")


def write(path: str, form: str, pieces: Iterable[Piece], vocabulary: Vocabulary) -> None:
    """Writes vectors, whole or not at all; `pieces` are in order, at least one, and read once."""
    if form == "jsonl":
        with write_aside(path) as file:
            for piece in pieces:
                for index, line in enumerate(_lines(piece, vocabulary), piece.first):
                    file.write(json.dumps({"linex_index": index, **line}) + "\n")
    elif form == "tfrecord":
        write_shard(path, os.path.dirname(path), itertools.chain.from_iterable(
            map(_examples, pieces)))
    else:
        with write_aside(path, "wb") as file, _columns(os.path.dirname(path), pieces) as columns:
            {"npz": _write_npz, "safetensors": _write_safetensors}[form](file, columns)


def _lines(piece, vocabulary):
    def layers(row):
        # The same as Python's `round`: a float32 times 10**6 is exact in float64.
        return [{"index": layer, "values": np.round(rows[row].astype(np.float64), 6).tolist()}
                for layer, rows in piece.vectors.items()]

    if piece.lengths is None:
        for row in range(len(next(iter(piece.vectors.values())))):
            yield {"layers": layers(row)}
        return
    for start, end in piece.spans():
        yield {"features": [{"token": vocabulary.tokens[piece.input_ids[row]],
                             "layers": layers(row)} for row in range(start, end)]}


def _examples(piece):
    arrays = piece.arrays()
    if piece.lengths is None:
        texts = len(next(iter(arrays.values())))
        yield {"unique_id": piece.first + np.arange(texts)[:, None], **arrays}
        return
    del arrays["lengths"]
    for index, (start, end) in enumerate(piece.spans(), piece.first):
        yield {"unique_id": np.array([[index]]),
               **{name: rows[start:end].reshape(1, -1) for name, rows in arrays.items()}}


class _Column:
    """An array that grows by rows, in a file without a name until their number is known."""

    def __init__(self, file, rows):
        self.file, self.shape, self.dtype = file, (0, *rows.shape[1:]), rows.dtype

    def add(self, rows):
        self.file.write(np.ascontiguousarray(rows, self.dtype.newbyteorder("<")).data)
        self.shape = self.shape[0] + len(rows), *self.shape[1:]

    def move(self, out):
        """Writes the array to another file and forgets it, so that the disk holds it once."""
        self.file.seek(0)
        shutil.copyfileobj(self.file, out, 1 << 20)
        self.file.close()


@contextlib.contextmanager
def _columns(folder, pieces):
    with contextlib.ExitStack() as files:
        columns = {}
        for piece in pieces:
            for name, rows in piece.arrays().items():
                if name not in columns:
                    file = files.enter_context(tempfile.TemporaryFile(
                        dir=None if is_remote(folder) else folder or "."))
                    columns[name] = _Column(file, rows)
                columns[name].add(rows)
        yield columns


def _write_npz(file, columns):
    """Writes as `numpy.savez`, which would need the arrays in memory."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, column in columns.items():
            # A ZipInfo has no time: the same arrays, the same bytes.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, {
                    "descr": column.dtype.newbyteorder("<").str, "fortran_order": False,
                    "shape": column.shape})
                column.move(member)


def _write_safetensors(file, columns):
    """The length of the header as uint64, the header as JSON, the arrays one after another."""
    header, end = {}, 0
    for name, column in columns.items():
        start, end = end, end + column.file.tell()
        header[name] = {"dtype": _SAFETENSORS_TYPES[column.dtype.name],
                        "shape": list(column.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for column in columns.values():
        column.move(file)
