"""Alignment of a text's characters with its tokens' characters (google-research/albert,
squad_utils.py).

SentencePiece tokenises a prepared text: blanks joined, accents dropped, letters lower-cased. The
longest common subsequence of both leads back to the characters as written.

Shapes: N characters of the text, M characters of the tokens.
"""

import unicodedata

import numpy as np

NONE = -1               # a character without a counterpart
_ABSENT, _UP, _LEFT, _MATCH = range(4)
_LEAST_SHARE = 0.8      # of the text that must have counterparts
_SLACK = 5


def _codes(text, lower):
    """Returns each character's code once prepared, int [N]; -1 if it is no longer one character."""
    def prepared(char):
        parts = "".join(part for part in unicodedata.normalize("NFKD", char)
                        if not unicodedata.combining(part))
        if lower:
            parts = parts.lower()
        return ord(parts) if len(parts) == 1 else -1

    known = {char: prepared(char) for char in set(text)}
    return np.array([known[char] for char in text], np.int64)


def align(text: str, tokens: str, lower: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns the counterparts of a text's and its tokens' characters.

    Args:
        text: as it was written.
        tokens: its tokens joined, with blanks where words begin.
        lower: whether preparing lower-cases.

    Returns:
        int [N] and int [M]: each character's counterpart, or `NONE`; None if too few have one.
    """
    size, goal = len(text), len(tokens)
    if not (size and goal):
        return None
    written, pieces = _codes(text, lower), np.array([ord(char) for char in tokens], np.int64)
    if goal == size + 1 and tokens[0] == " " != text[0] and (written == pieces[1:]).all():
        return np.arange(1, goal), np.arange(-1, size)      # then no other alignment is as long
    reach = abs(size - goal) + _SLACK
    for width in (reach, 2 * reach):
        length, steps = _longest(written, pieces, width)
        if length > _LEAST_SHARE * size:
            break
    if length < _LEAST_SHARE * size:
        return None
    pairs = np.array(list(_trace(steps, size, goal, width)), np.int64).reshape(-1, 2)
    if not len(pairs):
        return None
    forth, back = np.full(size, NONE), np.full(goal, NONE)
    forth[pairs[:, 0]], back[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return forth, back


def _longest(written, pieces, reach):
    """Finds the longest common subsequence in the band -reach <= j - i < reach. Returns its length,
    and the steps to it, int8 [N, 2 * reach]: column k of row i is j = i - reach + k."""
    size, goal = len(written), len(pieces)
    steps = np.zeros((size, 2 * reach), np.int8)
    padded = np.full(size + goal + 4 * reach, -2, np.int64)     # a code that matches nothing
    padded[reach:reach + goal] = pieces                         # j is at reach + j
    last = np.zeros(2 * reach + 1, np.int64)                    # row i - 1, and a 0 behind it
    valid = padded >= 0
    for i, code in enumerate(written.tolist()):
        window = slice(i, i + 2 * reach)
        is_valid = valid[window]
        up, longer = last[1:], last[:-1] + 1
        matches = padded[window] == code
        row = np.maximum.accumulate(np.where(is_valid, np.maximum(
            up, np.where(matches, longer, 0)), 0))
        left = np.concatenate([[0], row[:-1]])
        step = np.where(left > up, _LEFT, _UP if i else _ABSENT)
        step[matches & (longer > np.maximum(up, left))] = _MATCH
        steps[i] = np.where(is_valid, step, _ABSENT)
        last[:-1] = np.where(is_valid, row, 0)
    return int(last[goal - 1 - (size - 1) + reach]), steps


def _trace(steps, size, goal, reach):
    """Yields the matching pairs (i, j) from the end on, as far as the band reaches."""
    i, j = size - 1, goal - 1
    while i >= 0 and j >= 0 and 0 <= j - i + reach < 2 * reach:
        step = steps[i, j - i + reach]
        if step == _ABSENT:
            return
        if step == _MATCH:
            yield i, j
        i, j = i - (step != _LEFT), j - (step != _UP)


def counterpart(others: np.ndarray, place: int, is_start: bool, end: int | None = None) -> int:
    """A character's counterpart, or if it is missing a place between its neighbours' counterparts.

    Args:
        others: int [N], see `align`; one of them is known.
        is_start: whether the character begins an answer; it then moves to the left end of the gap.
        end: number of the other side's characters; None: not beyond the last counterpart.
    """
    if others[place] != NONE:
        return int(others[place])
    known = np.flatnonzero(others != NONE)
    after, before = known[known > place], known[known < place]
    if not len(before):
        first = int(others[after[0]])
        if first < 1:
            return first
        return 0 if is_start else first - 1
    low = int(others[before[-1]])
    if not len(after):
        if end is None or low >= end - 1:
            return low
        return low + 1 if is_start else end - 1
    high = int(others[after[0]])
    if high > low + 1:
        return low + 1 if is_start else high - 1
    return high if is_start else low
