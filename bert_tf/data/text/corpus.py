"""A corpus in pieces of whole documents, and a piece as documents of token ids. The files are read
as one text, as by the original: a document that no blank line ends continues in the next file.

A piece is named by its places, and whoever does it reads it. To find where a piece ends, 64 KiB
before its end are read, or more where documents are longer.
"""

import array
import bisect
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.files import open_unpacked

# The line that marks the end of a file: no other line holds a newline.
FILE_END = "\n"
BLANK_LINE = re.compile(rb"\n[ \t\r\v\f]*\n")
LINE_END = re.compile(rb"\n")
# The end of a file where it ends a document: bytes that are not UTF-8, and then a blank line, where
# pieces may be cut.
FILE_END_BYTES = b"\xff\xfe\xff\n\n"
# A byte-order mark, and the rest of its line if that is blank: the line ends no document.
_MARK = re.compile(rb"\xef\xbb\xbf(?:[ \t\r\v\f]*\n)?")
_BLOCK = 1 << 20
_WINDOW = 1 << 16
_NEWLINES = 3       # of the boundary with the most


class Place(NamedTuple):
    """Bytes of a file, from `start` to `end`, and bytes that are added behind them."""

    path: str
    start: int
    end: int
    added: bytes
    packed: bool    # whether the file is packed, as by gzip; positions are in unpacked bytes
    version: str    # text that changes with the file, see `identity`


# The places of a piece's bytes, in order.
Piece = tuple[Place, ...]


def size(piece: Piece) -> int:
    return sum(place.end - place.start + len(place.added) for place in piece)


def read_piece(piece: Piece) -> bytes:
    """Returns the bytes of a piece; InputError for a file that can't be read or became shorter."""
    parts = []
    for place in piece:
        try:
            if place.packed:
                read = files.unpacked_range(place.path, place.version, place.start, place.end)
            else:
                read = files.read_range(place.path, place.start, place.end)
        except files.READ_ERRORS as error:
            raise InputError(f"{place.path}: can't be read ({error}); is it damaged?") from error
        if len(read) != place.end - place.start:
            raise InputError(f"{place.path} became shorter while it was read; run the same command "
                             "again when nothing writes to the file.")
        parts += filter(None, (read, place.added))
    return b"".join(parts)


def without_marks(piece: Piece, read: bytes) -> bytes:
    """Returns the bytes of a piece, which were read, without byte-order marks where files begin."""
    start = 0
    for place in piece:
        marked = None if place.start else _MARK.match(read, start)
        if marked:
            read = read[:start] + read[marked.end():]
            start -= marked.end() - marked.start()
        start += size((place,))
    return read


def find_pieces(paths: Sequence[str], piece_bytes: int, by_file: bool = False,
                boundary: re.Pattern[bytes] = BLANK_LINE) -> "Pieces":
    """Returns the places of pieces of at most `piece_bytes`, each whole documents. A piece is
    larger only if one document is. The files are one text, as the original reads them: each ends
    with a newline. With `by_file`, the end of a file ends a document; `corpus.decode` marks it."""
    text = _Text(paths, by_file)
    return Pieces(text, [0, *(end for _, end in _cuts(text, piece_bytes, boundary))])


def read_pieces(paths: Sequence[str], piece_bytes: int, by_file: bool = False,
                boundary: re.Pattern[bytes] = BLANK_LINE) -> Iterator[bytes]:
    """Yields the bytes of the pieces that `find_pieces` finds, each when it is found, without
    byte-order marks."""
    text = _Text(paths, by_file)
    pieces = (text.places(*ends) for ends in _cuts(text, piece_bytes, boundary))
    return (without_marks(piece, read_piece(piece)) for piece in pieces)


class Pieces(Sequence[Piece]):
    """The pieces of a text; each takes 8 bytes until it is asked for."""

    def __init__(self, text: "_Text", cuts: Sequence[int]) -> None:
        self._text, self._cuts = text, array.array("q", cuts)

    def __len__(self):
        return len(self._cuts) - 1

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._text.places(*self._cuts[index:index + 2])

    @property
    def versions(self) -> dict[str, str]:
        return self._text.versions


def _cuts(text, piece_bytes, boundary):
    start = 0
    while text.reaches(start + piece_bytes + 1):
        limit = start + piece_bytes
        cut = last_cut(text.read, start, limit, boundary) or _next_cut(text, start, limit, boundary)
        if cut is None:
            break
        yield start, cut
        start = cut
    if start < text.size:
        yield start, text.size


class _Text:
    """The files one after the other, each looked at when the `size` bytes before are too few."""

    def __init__(self, paths, by_file):
        self._waiting, self._by_file = iter(list(paths)), by_file
        self._files: list[Place] = []
        self._starts: list[int] = []
        self.size = 0

    @property
    def versions(self):
        return {file.path: file.version for file in self._files}

    def reaches(self, size):
        while self.size < size:
            path = next(self._waiting, None)
            if path is None:
                return False
            self._add(str(path))
        return True

    def _add(self, path):
        packed, version = files.is_packed(path), files.identity(path)
        size = files.unpacked_size(path, version) if packed else files.file_size(path)
        whole = Place(path, 0, size, b"", packed, version)
        # The original drops carriage returns: a last line of these alone is none.
        end = size
        while (last := read_piece((whole._replace(start=max(end - 1, 0), end=end),))) == b"\r":
            end -= 1
        added = b"" if last in (b"", b"\n") else b"\n"
        if self._by_file:
            added += FILE_END_BYTES
        self._files.append(whole._replace(added=added))
        self._starts.append(self.size)
        self.size += size + len(added)

    def places(self, start, end):
        parts = []
        for number in range(bisect.bisect_right(self._starts, start) - 1, len(self._files)):
            first, file = self._starts[number], self._files[number]
            low, high = max(start - first, 0), end - first
            if high <= 0:
                break
            added = file.added[max(low - file.end, 0):max(high - file.end, 0)]
            if low < min(high, file.end) or added:
                parts.append(file._replace(start=min(low, file.end), end=min(high, file.end),
                                           added=added))
        return tuple(parts)

    def read(self, start, end):
        return read_piece(self.places(start, end))


def last_cut(read: Callable[[int, int], bytes], start: int, limit: int,
             boundary: re.Pattern[bytes]) -> int | None:
    """The end of the last boundary between two places of a text, which `read` reads, or None."""
    window = _WINDOW
    while True:
        low = max(start, limit - window)
        cuts = [cut.end() for cut in boundary.finditer(read(low, limit))]
        if cuts:
            return low + cuts[-1]
        if low == start:
            return None
        window *= 8


def _next_cut(text, start, limit, boundary):
    """The end of the first boundary that ends after `limit`, which none before it does; or None."""
    window = _WINDOW
    while True:
        low = max(start, limit - window)
        held = bytearray(text.read(low, limit))
        if held.count(b"\n") >= _NEWLINES or low == start:
            break
        window *= 8
    at = limit
    while text.reaches(at + 1):
        # Boundaries may begin before the end of the searched text.
        done = len(held)
        for _ in range(_NEWLINES):
            done = max(held.rfind(b"\n", 0, done), 0)
        del held[:done]
        end = min(at + _BLOCK, text.size)
        held += text.read(at, end)
        at = end
        if match := boundary.search(held):
            return at - len(held) + match.end()
    return None


def decode(piece: bytes, paths: Sequence[str]) -> list[str]:
    """Returns the lines of a piece; the line `FILE_END` marks the end of a file, if asked for.
    InputError names file, line and byte that are not UTF-8."""
    try:
        first, *others = (part.decode("utf-8").split("\n") for part in piece.split(FILE_END_BYTES))
        return [*first, *(line for part in others for line in (FILE_END, *part))]
    except UnicodeDecodeError as error:
        raise InputError(_locate_bad_line(paths)) from error


def _locate_bad_line(paths):
    for path in paths:
        with open_unpacked(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    remedy = "convert the file to UTF-8"
                    if ".parquet" in str(path):
                        remedy = "make text of it with bert-extract-text"
                    return (f"{path}, line {number}, byte {error.start + 1} is not UTF-8 "
                            f"(0x{line[error.start]:02x}): {remedy}.")
    raise AssertionError("a piece was not UTF-8, but every line of the files is")


@dataclasses.dataclass
class Marks:
    """Marks of T tokens, bool [T]; None for marks that they do not have."""

    continues: np.ndarray   # whether a token continues the word of the token before it
    units: np.ndarray | None = None     # whether it continues a unit; None where all are words
    entities: np.ndarray | None = None  # whether it belongs to a tagged run or a phrase
    labels: np.ndarray | None = None    # labels from the text

    def insert(self, places: np.ndarray) -> "Marks":
        """Returns marks with tokens put in at some places, which begin words and units."""
        return Marks(*(None if values is None else np.insert(values, places, False)
                       for values in vars(self).values()))

    def bytes(self) -> dict[str, np.ndarray | None]:
        """The same as uint8, by the names of the attributes."""
        return {name: None if values is None else values.view(np.uint8)
                for name, values in vars(self).items()}


# A function that returns the `Marks` of the tokens of lines. Its arguments are the lines, the ids
# and lengths from `tokenizer.encode_lines`, and the array from `tokenizer.continuations`.
Marker = Callable[[Sequence[str], np.ndarray, np.ndarray, np.ndarray], Marks]


def _words(lines, ids, lengths, continues):
    return Marks(continues)


@dataclasses.dataclass
class Documents:
    """The sentences of a piece as token ids, grouped into documents; `Marks` as uint8 [T]."""

    tokens: np.ndarray  # int32 [T], the ids of all sentences, one after the other
    sentence_starts: list[int]  # where each sentence begins in `tokens`, and T at the end
    ranges: list[tuple[int, int]]   # (first sentence, last + 1) of each document; one at least
    continues: np.ndarray
    files: int = 0  # how many files end in the piece, where files end documents
    is_open: bool = False   # no blank line ends the last document, where blank lines end them
    units: np.ndarray | None = None
    entities: np.ndarray | None = None
    labels: np.ndarray | None = None
    pair_labels: Sequence[int] = ()     # of documents of two sentences, where a file gives them
    sep_id: int | None = None
    unk_id: int | None = None
    # int [], of the tokens after the text's T: the places that they repeat; -1 for separators.
    origins: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))
    _placed: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    _end: int = 0

    def place(self, sentences: Sequence[int]) -> int:
        """Returns where the tokens of some sentences, in this order, begin in the token array;
        `add_copies` adds a copy of them at its end if they are not one run of it."""
        starts = self.sentence_starts
        if sentences[-1] - sentences[0] == len(sentences) - 1:
            return starts[sentences[0]]
        start = self._end = self._end or starts[-1]
        for sentence in sentences:
            self._placed.append((starts[sentence], starts[sentence + 1]))
            self._end += starts[sentence + 1] - starts[sentence]
        return start

    def add_copies(self) -> None:
        """Adds the copies that `place` promised to `tokens` and to the other arrays by token."""
        self._extend(lambda name, array: [array[start:end] for start, end in self._placed])
        self.origins = np.concatenate(
            [self.origins, *(np.arange(start, end) for start, end in self._placed)])
        self._placed.clear()

    def append(self, parts: Sequence[np.ndarray], origins: Sequence[np.ndarray]) -> None:
        """Adds tokens without marks, which belong to no document, at the end of the arrays; for
        `origins` see the attribute."""
        self.origins = np.concatenate([self.origins, *origins])
        added = np.concatenate([self.tokens[:0], *parts])
        self._extend(lambda name, array: [
            added if name == "tokens" else np.zeros(len(added), array.dtype)])

    def _extend(self, parts_of):
        """Adds parts at the end of each array by token: `parts_of` of its name and its values."""
        for name in ("tokens", "continues", "units", "entities", "labels"):
            array = getattr(self, name)
            if array is not None:
                setattr(self, name, np.concatenate([array, *parts_of(name, array)]))

    def joins(self, units: str) -> np.ndarray | None:
        """Returns uint8 [T], 1 where a token continues the unit before it; None if each token is a
        unit. For `units` see `MaskTokens`."""
        if units == "subwords":
            return None
        return self.continues if self.units is None or units == "words" else self.units


def tokenize_sentences(lines: Sequence[str], tokenizer, blanks_separate_docs: bool = True,
                       marker: Marker | None = None) -> Documents:
    """Tokenizes documents whose sentences each end with a separator, as fairseq prepares a text. A
    blank line is a sentence of one separator, which belongs to no document; without
    `blanks_separate_docs` all is one document, and blank lines are left out, as in fairseq. The
    last of `lines` is the text after the last newline. Lines are stripped of white space."""
    if lines and not lines[-1]:
        lines = lines[:-1]
    if any("\r" in line for line in lines):     # which Python's reader of text takes for line ends
        lines = [part for line in lines for part in line.removesuffix("\r").split("\r")]
    lines = [line.strip() for line in lines]
    if not blanks_separate_docs:
        lines = list(filter(None, lines))
    tokens, lengths = tokenizer.encode_lines(lines)
    ends = np.cumsum(lengths)
    marks = (marker or _words)(lines, tokens, lengths, tokenizer.continues[tokens]).insert(ends)
    tokens = np.insert(tokens, ends, tokenizer.vocabulary.sep_id).astype(np.int32)
    starts = np.concatenate([[0], ends + np.arange(1, len(ends) + 1)])
    # Runs of sentences that are not blank.
    edges = np.flatnonzero(np.diff(np.concatenate([[0], lengths > 0, [0]])))
    ranges = list(zip(edges[::2].tolist(), edges[1::2].tolist()))
    return Documents(tokens, starts.tolist(), ranges, sep_id=tokenizer.vocabulary.sep_id,
                     **marks.bytes())


def with_blanks(lines: Sequence[str], blank: str) -> list[str]:
    """Returns the lines with `blank` before each that follows a line of the same document."""
    return [blank + line if line.strip() and before.strip() else line
            for before, line in zip(["", *lines], lines)]


def tokenize_documents(lines: Sequence[str], tokenizer, blanks_separate_docs: bool = True,
                       marker: Marker | None = None) -> Documents:
    """Tokenizes lines to documents, as the original reads a file: a document ends at `FILE_END`, at
    a blank line, and at a line that is empty after the tokenizer's preparation. Lines that hold no
    token (control characters only, for example) are left out and end nothing. Carriage returns are
    dropped wherever they are, as TensorFlow's reader of lines drops them."""
    file_ends = np.array([line == FILE_END for line in lines], bool)
    lines = [line.replace("\r", "") for line in lines]
    # White space alone would be tokens of byte-level BPE.
    tokens, lengths = tokenizer.encode_lines(["" if line.isspace() else line for line in lines])
    tokens, lengths = np.asarray(tokens, np.int32), np.asarray(lengths)
    ends = file_ends
    if blanks_separate_docs:
        ends = lengths == 0
        for number in np.flatnonzero(ends):
            ends[number] = tokenizer.is_blank(lines[number])
    has_tokens = lengths > 0
    # An empty text after the last newline is not a line.
    after = ends
    if has_tokens.any():
        after = ends[has_tokens.nonzero()[0][-1]:len(lines) - (not lines[-1])]
    document = np.cumsum(ends)[has_tokens]      # equal for the sentences of one document
    starts = np.concatenate([[0], np.cumsum(lengths[has_tokens])])
    edges = np.concatenate([[0], np.flatnonzero(np.diff(document)) + 1, [len(document)]])
    ranges = [(int(a), int(b)) for a, b in zip(edges, edges[1:]) if a < b]
    marks = (marker or _words)(lines, tokens, lengths,
                               tokenizer.continuations(lines, tokens, lengths))
    return Documents(tokens, starts.tolist(), ranges, files=int(file_ends.sum()),
                     is_open=blanks_separate_docs and not after.any(),
                     sep_id=tokenizer.vocabulary.sep_id, unk_id=tokenizer.vocabulary.unk_id,
                     **marks.bytes())
