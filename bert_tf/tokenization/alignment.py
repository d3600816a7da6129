"""Which character of the original text each character of a normalised word comes from.

The steps are those of `words.split_words`, character by character: each works on pairs
(character, position in the text).
"""

import itertools
import re
import unicodedata

from bert_tf.tokenization import characters

_CHUNK = re.compile(f"[^{characters.SPACES}]+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+|.")


def aligned_words(text, lower):
    """Cuts `text` into the words that WordPiece works on.

    Args:
        text: str.
        lower: whether to lower-case and drop accents.

    Yields:
        word: the normalised word, without spaces.
        positions: sequence of int [len(word)], where in `text` each of its characters comes from.
    """
    table = characters.SPLIT_LOWER if lower else characters.SPLIT_CASED
    for chunk in _CHUNK.finditer(text):
        raw, start = chunk.group(), chunk.start()
        if raw.isascii() and raw.isprintable():
            for word in _ASCII_WORD.finditer(raw.lower() if lower else raw):
                yield word.group(), range(start + word.start(), start + word.end())
            continue
        for pairs in _words(_translate(zip(raw, itertools.count(start)), characters.CLEAN)):
            if lower:
                pairs = _decompose(_lower(pairs))
            for word in _words(_translate(pairs, table)):
                chars, positions = zip(*word)
                yield "".join(chars), positions


def _translate(pairs, table):
    return [(new, position) for char, position in pairs for new in table[ord(char)]]


def _words(pairs):
    for is_space, group in itertools.groupby(pairs, lambda pair: pair[0] == " "):
        if not is_space:
            yield list(group)


def _lower(pairs):
    """Lower-cases the word as a whole: a final sigma depends on what stands around it."""
    positions = [position for char, position in pairs for _ in char.lower()]
    return zip("".join(char for char, _ in pairs).lower(), positions)


def _decompose(pairs):
    """NFD: each character decomposed, then every run of marks sorted by combining class."""
    parts = [(part, position) for char, position in pairs
             for part in unicodedata.normalize("NFD", char)]
    ordered = []
    for _, run in itertools.groupby(parts, lambda pair: unicodedata.combining(pair[0]) > 0):
        ordered += sorted(run, key=lambda pair: unicodedata.combining(pair[0]))
    return ordered
