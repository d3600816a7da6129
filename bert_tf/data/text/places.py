"""Pieces of a text of several files, named by their places: whoever does a piece reads it. To find
where a piece ends, 64 KiB before its end are read, or more where documents are longer."""

import array
import bisect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bert_tf import files
from bert_tf.errors import InputError

BLANK_LINE = re.compile(rb"\n[ \t\r\v\f]*\n")
LINE_END = re.compile(rb"\n")
# The end of a file where it ends a document: bytes that are not UTF-8, and then a blank line, where
# pieces may be cut.
FILE_END = b"\xff\xfe\xff\n\n"
# A byte-order mark, and the rest of its line if that is blank: the line ends no document.
_MARK = re.compile(rb"\xef\xbb\xbf(?:[ \t\r\v\f]*\n)?")
_BLOCK = 1 << 20
_WINDOW = 1 << 16
_NEWLINES = 3       # of the boundary with the most


class Place(NamedTuple):
    """Bytes of a file, from `start` to `end`, and bytes that are added behind them.

    Attributes:
        packed: whether the file is packed, as by gzip; positions are in unpacked bytes.
        version: text that changes with the file, see `identity`.
    """

    path: str
    start: int
    end: int
    added: bytes
    packed: bool
    version: str


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


def check_versions(versions: Mapping[str, str]) -> None:
    """Raises InputError if a file is not of the version that is known by its path; names it."""
    for path, version in versions.items():
        if files.identity(path) != version:
            raise InputError(f"{path} was changed while its records were made; run the same "
                             "command again: pieces that did not change are kept.")


def find_pieces(paths: Sequence[str], piece_bytes: int, by_file: bool = False,
                boundary: re.Pattern[bytes] = BLANK_LINE) -> "Pieces":
    """Returns the places of pieces of at most `piece_bytes`, each whole documents. A piece is
    larger only if one document is.

    The files are one text, as the original reads them: each ends with a newline. With `by_file`,
    the end of a file ends a document; `corpus.decode` marks it.
    """
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
        added = b"\n" * (last not in (b"", b"\n")) + FILE_END * self._by_file
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
