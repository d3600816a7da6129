"""Reads the elements of a list in a JSON file, one in memory at a time."""

import io
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import open_unpacked, shown_name

_BLOCK = 1 << 20
_LONGEST_VALUE = 1 << 28    # characters; a small .gz may unpack to an element that fills the memory
_SPACE = re.compile(r"[ \t\n\r]*")
_AFTER_VALUE = frozenset(",:]} \t\n\r")
_DECODER = json.JSONDecoder()


class _Text:
    """The unread part of a file; memory holds no more than the value being read."""

    def __init__(self, file):
        self._file, self._text, self._at = file, "", 0
        self._line, self._counted = 1, 0

    def line(self, at=None):
        """Returns the number of the line, from 1, of the next character, or of the one at `at`."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line + (self._text.count("\n", self._at, at) if at else 0)

    def _more(self):
        """Reads at least as much again as is held; returns False at the end of the file."""
        self.line()     # counts what is dropped
        rest = self._text[self._at:]
        if len(rest) > _LONGEST_VALUE:
            raise ValueError(f"an element has more than {_LONGEST_VALUE >> 20} million characters")
        block = self._file.read(max(_BLOCK, len(rest)))
        self._text, self._at, self._counted = rest + block, 0, 0
        return bool(block)

    def next(self):
        while True:
            self._at = _SPACE.match(self._text, self._at).end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, *expected):
        """Reads one character, which must be one of `expected`."""
        char = self.next()
        if char not in expected:
            raise ValueError(f"{' or '.join(map(repr, expected))} expected"
                             f"{f', {char!r} found' if char else ', but the file ends'}")
        self._at += 1
        return char

    def value(self):
        """Reads one JSON value."""
        self.next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                # 1 and 1. may be the beginning of 1.5.
                complete = self._text[end:end + 1] in _AFTER_VALUE
            except ValueError:
                complete = False
            if complete or not self._more():
                value, self._at = _DECODER.raw_decode(self._text, self._at)
                return value


def read_elements(path: str | os.PathLike, key: str = "") -> Iterator[Any]:
    """Yields the elements that `read_numbered` reads."""
    return (value for _, value in read_numbered(path, key))


def read_numbered(path: str | os.PathLike, key: str = "") -> Iterator[tuple[int, Any]]:
    """Yields the elements of the list that a JSON object has under `key`, each after the number of
    its first line; other keys are dropped. Without a `key`, the file is the list. `path`: plain or
    gzip, UTF-8. Raises InputError if the file is not such JSON, which may show after elements were
    yielded."""
    with open_unpacked(path) as file:
        text = _Text(io.TextIOWrapper(file, "utf-8-sig", newline=""))
        kind, elements = "list", _array(text)
        if key:
            kind, elements = f"object with a list {key!r}", _elements(text, key)
        try:
            yield from elements
            if text.next():
                raise ValueError("something follows its end")
        except UnicodeDecodeError as error:
            raise InputError(f"{shown_name(path)} is not UTF-8 text; save it as UTF-8.") from error
        except (ValueError, RecursionError) as error:
            problem, line = getattr(error, "msg", error), text.line(getattr(error, "pos", None))
            raise InputError(f"{shown_name(path)} is not a JSON {kind} (line {line}: {problem}); "
                             "correct it, name the right file, or download it again.") from error


def _elements(text, key):
    is_there = False
    text.take("{")
    while True:
        name = text.value()
        text.take(":")
        if name != key:
            text.value()
        elif is_there:
            raise ValueError(f"{key!r} is there twice")
        else:
            is_there = True
            yield from _array(text)
        if text.take(",", "}") == "}":
            break
    if not is_there:
        raise ValueError(f"it has no {key!r}")


def _array(text):
    text.take("[")
    if text.next() == "]":
        text.take("]")
        return
    while True:
        text.next()
        yield text.line(), text.value()
        if text.take(",", "]") == "]":
            return
