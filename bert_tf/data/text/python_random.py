"""The stream of `random.Random(seed)`, from which the original draws every choice, read in blocks.

Most draws are the swaps of one shuffle per instance, whose order only matters later. So the 32-bit
words of the generator stand in an array with a position: `skip_shuffle` finds where a shuffle's
draws end without doing it, and `take_shuffles` does thousands of skipped ones at once.

How CPython (3.2 and later) turns words into numbers:
    random()    two words a, b: ((a >> 5) * 2**26 + (b >> 6)) / 2**53
    below(n)    the top n.bit_length() bits of a word, drawn again until they are less than n
    shuffle(x)  for i from len(x) - 1 down to 1: swap x[i] with x[below(i + 1)]
"""

import functools
import random
import re
from collections.abc import Sequence

import numpy as np

_BLOCK = 1 << 19        # words that are drawn at once; at first fewer, for streams that end soon
_FIRST_BLOCK = 1 << 13
_SPARE = 256        # words beyond the average need of the draws
_SHUFFLED_AT_ONCE = 1 << 12
# Words are matched by their top 15 bits, as characters below the surrogates.
_TEXT_BITS = 15
_SEGMENT = 32


class PythonRandom:
    """Draws the same numbers as `random.Random(seed)`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        key = random.Random(seed).getstate()[1]
        self._generator = np.random.MT19937()
        self._generator.state = {"bit_generator": "MT19937",
                                 "state": {"key": np.array(key[:-1], np.uint32), "pos": key[-1]}}
        self._words = np.zeros(0, np.uint32)
        self._position = 0          # index of the next unread word of the block
        self._skipped: list[tuple[int, int]] = []   # (start, size) of shuffles in this block
        self._orders: list[np.ndarray] = []         # of the skipped shuffles in earlier blocks
        self._size = min(_FIRST_BLOCK, _BLOCK)
        self._refill()

    def _refill(self) -> None:
        """Drops the words already read and adds fresh words; the first unread word is at 0 then."""
        self._do_skipped()
        fresh = self._generator.random_raw(self._size).astype(np.uint32)
        self._size = min(2 * self._size, _BLOCK)
        self._words = np.concatenate([self._words[self._position:], fresh])
        self._position = 0
        high, low = self._words[:-1] >> 5, self._words[1:] >> 6
        self._view, self._end = memoryview(self._words), len(self._words)
        # uniforms[i] is the result of `random()` at position i.
        self._uniforms = memoryview((high * 67108864.0 + low) * (1.0 / 9007199254740992.0))
        self._heads = (self._words < (1 << 31)).tobytes()
        self._text = (self._words >> (32 - _TEXT_BITS)).astype("<u2").tobytes().decode("utf-16-le")

    def random(self) -> float:
        """A float in [0, 1), as `random.Random.random`."""
        if self._position + 2 > self._end:
            self._refill()
        self._position += 2
        return self._uniforms[self._position - 2]

    def below(self, n: int) -> int:
        """An int in [0, n), as `random.Random._randbelow`: `randint(1, n)` is 1 + below(n)."""
        shift = 32 - n.bit_length()
        while True:
            if self._position >= self._end:
                self._refill()
            value = self._view[self._position] >> shift
            self._position += 1
            if value < n:
                return value

    def heads(self, count: int) -> bytes:
        """bytes [count]: 1 where each of the next `count` `random()` is less than 0.5."""
        drawn = []
        while count:
            if self._position + 2 > self._end:
                self._refill()
            part = min(count, (self._end - self._position) // 2)
            drawn.append(self._heads[self._position:self._position + 2 * part:2])
            self._position += 2 * part
            count -= part
        return b"".join(drawn)

    def throws(self, count: int, limits: Sequence[float], items: Sequence[int]) -> list[int]:
        """Returns `count` throws of a biased die, in one call, since many method calls would be
        slow: -2 where a first `random()` is less than limits[0], else -1 where a second one is less
        than limits[1], else one of `items`, drawn by `below`."""
        while self._position + 8 * count + _SPARE > self._end:
            self._refill()
        first, second = limits
        uniforms, position, thrown = self._uniforms, self._position, []
        note = thrown.append
        for _ in range(count):
            if uniforms[position] < first:
                note(-2)
                position += 2
            elif uniforms[position + 2] < second:
                note(-1)
                position += 4
            else:
                self._position = position + 4
                note(items[self.below(len(items))])
                uniforms, position = self._uniforms, self._position
        self._position = position
        return thrown

    def shuffle(self, items: list) -> None:
        """Shuffles a list in place, as `random.Random.shuffle`."""
        left = len(items)
        while left > 1:
            # The draws `below(left)`, ... that shift words alike, without a call for each.
            bits = left.bit_length()
            last = max(left - _SHUFFLED_AT_ONCE, 1 << bits - 1, 2) - 1
            while self._position + 4 * (left - last) + _SPARE > self._end:
                self._refill()
            view, position, shift = self._view, self._position, 32 - bits
            for i in range(left - 1, last - 1, -1):
                j = view[position] >> shift
                position += 1
                while j > i:
                    j = view[position] >> shift
                    position += 1
                items[i], items[j] = items[j], items[i]
            self._position, left = position, last

    def skip_shuffle(self, n: int, longest: int) -> None:
        """Moves past a shuffle of n items, at least one, whose order `take_shuffles` gives later.
        `longest` is the largest n of this job, below 32,768; its shuffles are the fastest."""
        start = self.pass_shuffle(n, longest)       # which may begin another block
        self._skipped.append((start, n))

    def pass_shuffle(self, n: int, longest: int) -> int:
        """Moves past a shuffle whose order nobody asks for, see `skip_shuffle`; returns where it
        began in this block."""
        # A draw takes 2 words on average at most; the block must hold them all.
        while self._position + 4 * longest + _SPARE > self._end:
            self._refill()
        start = self._position
        first, matches = _plan(n, longest)
        for size in range(n, first, -1):
            self.below(size)
        position = self._position
        for match in matches:
            position = match(self._text, position).end()
        self._position = position
        return start

    def take_shuffles(self, most: int) -> np.ndarray:
        """Returns the orders of the shuffles skipped since the last call, uint16 [M, most]: row m
        begins with the first items of 0 .. n - 1 as shuffle m orders them."""
        self._do_skipped()
        taken = np.zeros((sum(orders.shape[1] for orders in self._orders), most), np.uint16)
        row = 0
        for orders in self._orders:
            first = orders[:most].T
            taken[row:row + len(first), :first.shape[1]] = first
            row += len(first)
        self._orders = []
        return taken

    def _do_skipped(self):
        if self._skipped:
            starts, sizes = np.array(self._skipped, np.int64).T
            self._orders.append(_do_shuffles(self._words, starts, sizes))
            self._skipped = []


def _do_shuffles(words, starts, sizes):
    """The orders that shuffles leave, thousands of them at once, as arrays.

    Args:
        words: uint32, the block.
        starts, sizes: int [M], where each shuffle begins in the block, and its number of items.

    Returns:
        uint16 [max(sizes), M]: column m holds 0 .. sizes[m] - 1 shuffled, then the rest.
    """
    count, longest = len(starts), int(sizes.max())
    numbers = np.arange(longest + 1, dtype=np.uint32)
    shifts = np.array([32 - max(n.bit_length(), 1) for n in range(longest + 1)], np.uint32)
    bounds = numbers << shifts       # a word is accepted for below(n) if it is less than this
    bounds[:2] = 0                   # a finished shuffle accepts nothing more

    # Row s of `picks` gets the accepted word of step s: a rejected one is overwritten.
    picks = np.zeros((longest, count), np.uint32)
    flat, slot, word, left = picks.reshape(-1), np.arange(count), starts.copy(), sizes.copy()
    while left.max() > 1:
        drawn = words[word]
        flat[slot] = drawn
        accepted = drawn < bounds[left]
        left -= accepted
        slot += accepted * count
        word += 1

    order = np.repeat(numbers[:longest, None].astype(np.uint16), count, 1)
    flat, column = order.reshape(-1), np.arange(count)
    for step in range(longest - 1):
        left = np.maximum(sizes - step, 1)
        i = (left - 1) * count + column
        j = np.where(left > 1, picks[step] >> shifts[left], 0) * count + column
        flat[i], flat[j] = flat[j], flat[i]
    return order


@functools.cache
def _plan(n, longest):
    """Plans how to skip a shuffle of n items: draw below(n) .. below(first + 1), then match."""
    bounds = [*range(longest, 1, -_SEGMENT), 1]
    first = max(bound for bound in bounds if bound <= n)
    return first, [_draws(high, low).match for high, low in zip(bounds, bounds[1:])
                   if high <= first]


@functools.cache
def _draws(high, low):
    """A pattern for the draws below(high), below(high - 1), ... below(low + 1).

    Each draw is any number of rejected words, then an accepted one. Possessive repetition makes
    the match the single pass that the generator itself would make.
    """
    parts = []
    for n in range(high, low, -1):
        first_rejected = n << (_TEXT_BITS - n.bit_length())
        parts.append(f"[\\u{first_rejected:04x}-\\u{(1 << _TEXT_BITS) - 1:04x}]*+.")
    return re.compile("".join(parts), re.DOTALL)
