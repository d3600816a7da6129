"""What the original does to single characters, as tables for `str.translate`.

The classes are those of the running Python's `unicodedata`, as in google-research/bert's
tokenization.py; a table looks a character up once and remembers it.
"""

import sys
import unicodedata

_CJK_BLOCKS = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
               (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def is_deleted(char):
    """Whether cleaning drops `char`: controls, formats, U+FFFD; not tab and line ends."""
    return char == "\ufffd" or (unicodedata.category(char) in ("Cc", "Cf")
                                and char not in "\t\n\r")


def is_cjk(char):
    """Whether `char` is an ideograph that stands as a word of its own."""
    return any(first <= ord(char) <= last for first, last in _CJK_BLOCKS)


def is_punctuation(char):
    """Whether words are cut before and after `char`: ASCII symbols and every category P."""
    return char in _ASCII_PUNCTUATION or unicodedata.category(char).startswith("P")


def is_mark(char):
    """Whether `char` is an accent that lower-casing vocabularies drop after NFD."""
    return unicodedata.category(char) == "Mn"


def members(predicate):
    """The characters that satisfy `predicate`, in order (a tenth of a second or more)."""
    return [char for char in map(chr, range(sys.maxunicode + 1)) if predicate(char)]


class _Table(dict):
    """Code point -> text in its place; filled as characters are met."""

    def __init__(self, deleted, isolated):
        super().__init__()
        self._deleted, self._isolated = deleted, isolated

    def __missing__(self, code):
        char = chr(code)
        self[code] = value = ("" if self._deleted(char)
                              else f" {char} " if self._isolated(char) else char)
        return value


CLEAN = _Table(is_deleted, is_cjk)
SPLIT_CASED = _Table(lambda char: False, is_punctuation)
SPLIT_LOWER = _Table(is_mark, is_punctuation)
# All of str.split()'s separators lie below U+3001; those that are controls are deleted, not cut at.
SPACES = "".join(c for c in map(chr, range(0x3001)) if c.isspace() and not is_deleted(c))
DELETED_SPACES = "".join(c for c in map(chr, range(0x3001)) if c.isspace() and is_deleted(c))
