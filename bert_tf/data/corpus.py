"""A corpus cut into pieces: whole documents, a fixed size, whatever the number of workers.

The files are read as one text, one after the other, as the original reads them: a document that
is not closed by a blank line goes on in the next file.
"""

import re

from bert_tf.errors import InputError
from bert_tf.files import open_unpacked

_BLANK_LINE = re.compile(rb"\n[ \t\r\v\f]*\n")
_BLOCK = 1 << 20


def _read_blocks(paths):
    """The bytes of all files in blocks; each file ends with a newline."""
    for path in paths:
        last = b"\n"
        with open_unpacked(path) as file:
            while block := file.read(_BLOCK):
                last = block
                yield block
        if not last.endswith(b"\n"):
            yield b"\n"


def read_pieces(paths, piece_bytes):
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
            yield bytes(buffer[:cut])
            del buffer[:cut]
            searched = 0
    if buffer:
        yield bytes(buffer)


def _last_cut(buffer, limit):
    """The end of the last blank line that ends at or before `limit`, or None."""
    window = 1 << 16
    while True:
        start = max(0, limit - window)
        cut = None
        for cut in _BLANK_LINE.finditer(buffer, start, limit):
            pass
        if cut:
            return cut.end()
        if start == 0:
            return None
        window *= 8


def decode(piece, paths):
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
