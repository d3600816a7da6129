"""Encoding of much text: lines in blocks of bounded size, and each word's ids computed once."""

import array
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

_REMEMBERED_WORDS = 1 << 18      # entries of a memory before it starts afresh
REMEMBERED_CHARS = 40           # longer "words" are unspaced scripts and seldom come again
_BLOCK_LINES = 4096
BLOCK_CHARS = 1 << 20
_SURROGATE = re.compile("[\ud800-\udfff]")


def slices(text: str, boundary: re.Pattern) -> Iterator[str]:
    """Cuts a long text into parts of about `BLOCK_CHARS` characters; `boundary` begins a part."""
    start = 0
    while len(text) - start > BLOCK_CHARS:
        cut = boundary.search(text, start + BLOCK_CHARS)
        if not cut:
            break
        yield text[start:cut.start()]
        start = cut.start()
    yield text[start:] if start else text


def encode_blocks(lines: Sequence[str], boundary: re.Pattern,
                  encode: Callable[[list[str]], tuple[np.ndarray, np.ndarray]]
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Encodes lines in blocks and long lines in slices, so that memory grows with the ids only.
    `boundary`: where a line may be cut without changing its ids. Returns the ids of all lines,
    int32 [T], and their lengths, int32 [lines]."""
    ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]

    def add(texts):
        block_ids, block_lengths = encode(texts)
        ids.append(block_ids)
        lengths.append(block_lengths)

    def add_block(block):
        if sum(map(len, block)) <= BLOCK_CHARS:
            add(block)
        elif len(block) > 1:
            middle = len(block) // 2
            add_block(block[:middle])
            add_block(block[middle:])
        else:
            first = len(lengths)
            for part in slices(block[0], boundary):
                add([part])
            lengths[first:] = [np.sum(lengths[first:], 0, np.int32)]

    for start in range(0, len(lines), _BLOCK_LINES):
        add_block(lines[start:start + _BLOCK_LINES])
    return np.concatenate(ids), np.concatenate(lengths)


def whole(text: str) -> str:
    """A text without halves of surrogate pairs, which UTF-8 can't hold."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def pack(ids: Iterable[int]) -> bytes:
    return array.array("i", ids).tobytes()


def unpack(packed: bytes) -> list[int]:
    return memoryview(packed).cast("i").tolist()


class Memory(dict):
    """word -> its ids as int32 bytes, computed when first asked for; of bounded size."""

    def __init__(self, compute: Callable[[str], bytes], **fixed: bytes):
        super().__init__(fixed)
        self._compute, self._fixed = compute, fixed

    def __missing__(self, word):
        packed = self._compute(word)
        if len(word) <= REMEMBERED_CHARS:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
                self.update(self._fixed)
            self[word] = packed
        return packed
