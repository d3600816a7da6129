"""A corpus in pieces of whole documents, and a piece as documents of token ids.

The files are read as one text, one after the other, as the original reads them: a document that
is not closed by a blank line goes on in the next file. Pieces have a fixed size, which does not
depend on the number of workers.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import open_unpacked

_BLANK_LINE = re.compile(rb"\n[ \t\r\v\f]*\n")
_BLOCK = 1 << 20


def _read_blocks(paths: Sequence[str]) -> Iterator[bytes]:
    """The bytes of all files in blocks; each file ends with a newline."""
    for path in paths:
        last = b"\n"
        with open_unpacked(path) as file:
            while block := file.read(_BLOCK):
                last = block
                yield block
        if not last.endswith(b"\n"):
            yield b"\n"


def read_pieces(paths: Sequence[str], piece_bytes: int) -> Iterator[bytes]:
    """Yields the corpus as byte strings of at most `piece_bytes`, each whole documents.

    A piece is larger only if one document is. A corpus of up to `piece_bytes` is one piece.
    """
    buffer = bytearray()
    searched = 0        # how far an over-long document was searched for its end
    for block in _read_blocks(paths):
        buffer += block
        while len(buffer) > piece_bytes:
            cut = None if searched else _last_cut(buffer, piece_bytes)
            if cut is None:
                # A blank line may have begun before the end of what was searched.
                start = buffer.rfind(b"\n", 0, searched or piece_bytes)
                found = _BLANK_LINE.search(buffer, max(start, 0))
                searched = len(buffer)
                if not found:
                    break
                cut = found.end()
            yield _pop(buffer, cut)
            searched = 0
    if buffer:
        yield _pop(buffer, len(buffer))


def _pop(buffer, end):
    """Takes the first `end` bytes out of a bytearray."""
    with memoryview(buffer) as view:
        piece = bytes(view[:end])
    del buffer[:end]
    return piece


def _last_cut(buffer, limit):
    """The end of the last blank line that ends at or before `limit`, or None."""
    window = 1 << 16
    while True:
        start = max(0, limit - window)
        cuts = [cut.end() for cut in _BLANK_LINE.finditer(buffer, start, limit)]
        if cuts:
            return cuts[-1]
        if start == 0:
            return None
        window *= 8


def decode(piece: bytes, paths: Sequence[str]) -> list[str]:
    """The lines of a piece.

    Raises:
        InputError: not UTF-8; names file, line and byte.
    """
    try:
        return piece.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(_locate_bad_line(paths)) from error


def _locate_bad_line(paths):
    for path in paths:
        with open_unpacked(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    return (f"{path}, line {number}, byte {error.start + 1} is not UTF-8 "
                            f"(0x{line[error.start]:02x}): convert the file to UTF-8.")
    raise AssertionError("a piece was not UTF-8, but every line of the files is")


@dataclasses.dataclass
class Documents:
    """The sentences of a piece as token ids, grouped into documents.

    Attributes:
        tokens: int32 [T], the ids of all sentences, one after the other.
        sentence_starts: where each sentence begins in `tokens`, and T at the end (a list).
        ranges: (first sentence, last sentence + 1) of each document, none of them empty (a list).
        continues: uint8 [T], 1 where a token goes on with the word before it.
    """

    tokens: np.ndarray
    sentence_starts: list[int]
    ranges: list[tuple[int, int]]
    continues: np.ndarray


def tokenize_documents(lines: Sequence[str], tokenizer) -> Documents:
    """Documents from lines of text, as the original reads a file: a blank line ends a document.

    Lines that hold no token (control characters only, for example) are left out and end nothing.
    Carriage returns are dropped wherever they are, as TensorFlow's reader of lines drops them.

    Args:
        lines: list of str.
        tokenizer: has `encode_lines(lines) -> (ids int32 [T], lengths [number of lines])` and
            `continues`, bool [V].
    """
    lines = [line.replace("\r", "") for line in lines]
    tokens, lengths = tokenizer.encode_lines(lines)
    tokens, lengths = np.asarray(tokens, np.int32), np.asarray(lengths)
    blank = np.array([not line or line.isspace() for line in lines], bool)
    kept = lengths > 0
    document = np.cumsum(blank)[kept]           # equal for the sentences of one document
    starts = np.concatenate([[0], np.cumsum(lengths[kept])])
    edges = np.concatenate([[0], np.flatnonzero(np.diff(document)) + 1, [len(document)]])
    ranges = [(int(a), int(b)) for a, b in zip(edges, edges[1:]) if a < b]
    return Documents(tokens, starts.tolist(), ranges, tokenizer.continues[tokens].view(np.uint8))
