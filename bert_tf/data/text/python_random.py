"""The stream of `random.Random(seed)`, from which the original draws every choice, read in blocks.

Most draws are the swaps of one shuffle per instance, and the throws of its masks, whose results
only matter later. So the 32-bit words of the generator stand in an array with a position:
`skip_shuffle` and `skip_throws` find where the draws end without doing them, and `take_shuffles`
and `take_throws` do thousands of skipped ones at once.

How CPython (3.2 and later) turns words into numbers:
    random()    two words a, b: ((a >> 5) * 2**26 + (b >> 6)) / 2**53
    below(n)    the top n.bit_length() bits of a word, drawn again until they are less than n
    shuffle(x)  for i from len(x) - 1 down to 1: swap x[i] with x[below(i + 1)]
"""

import functools
import math
import random
import re
from collections.abc import MutableSequence, Sequence

import numpy as np

_BLOCK = 1 << 19        # words that are drawn at once; at first fewer, for streams that end soon
_FIRST_BLOCK = 1 << 13
_SPARE = 256        # words beyond the average need of the draws
_SHUFFLED_AT_ONCE = 1 << 12
# Words are matched by their top bits, as characters below the surrogates. The patterns of few bits
# are made in less time; the shuffles of a long sequence need more.
_FEW_BITS, _MOST_BITS = 12, 15
_SEGMENT, _LONG_SEGMENT = 32, 512


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
        # Of shuffles and throws skipped in this block: where each begins, how many it has, and so
        # on. Tuples would cost passes of the garbage collector.
        self._skipped: list[int] = []
        self._unthrown: list[int] = []
        # What those of earlier blocks gave.
        self._orders: list[np.ndarray] = []
        self._thrown: list[np.ndarray] = []
        self._most, self._bits = 0, _FEW_BITS
        self._size = min(_FIRST_BLOCK, _BLOCK)
        self._refill()

    def _refill(self) -> None:
        """Drops the words already read and adds fresh words; the first unread word is at 0 then."""
        self._do_skipped()
        fresh = self._generator.random_raw(self._size).astype(np.uint32)
        self._size = min(2 * self._size, _BLOCK)
        self._words = np.concatenate([self._words[self._position:], fresh])
        self._position = 0
        self._view, self._end = memoryview(self._words), len(self._words)
        # uniforms[i] is the result of `random()` at position i.
        uniforms = (self._words[:-1] >> 5) * 67108864.0
        uniforms += self._words[1:] >> 6
        uniforms *= 1.0 / 9007199254740992.0
        self._uniforms = memoryview(uniforms)
        self._heads = (self._words < (1 << 31)).tobytes()
        self._write_text(self._bits)

    def _write_text(self, bits):
        self._bits = bits
        self._text = (self._words >> (32 - bits)).astype("<u2").tobytes().decode("utf-16-le")

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

    def set_die(self, limits: Sequence[float], items: Sequence[int]) -> None:
        """Sets what `skip_throws` throws: -2 where a first `random()` is less than limits[0], else
        -1 where a second one is less than limits[1], else one of `items`, drawn by `below`."""
        self._limits, self._items = tuple(limits), np.array(items, np.int32)

    def skip_throws(self, count: int) -> None:
        """Moves past `count` throws of the die, which `take_throws` gives later."""
        while self._position + 8 * count + _SPARE > self._end:
            self._refill()
        position = self._position
        self._unthrown += position, count
        match = _throws(self._limits, len(self._items), self._bits, count)(self._text, position)
        if match:
            self._position = match.end()
            return
        for _ in range(count):      # the first bits of a word do not decide
            if self.random() >= self._limits[0] and self.random() >= self._limits[1]:
                self.below(len(self._items))

    def take_throws(self) -> np.ndarray:
        """Returns the throws skipped since the last call, int32 [N]."""
        self._do_skipped()
        thrown, self._thrown = self._thrown, []
        return np.concatenate([np.zeros(0, np.int32), *thrown])

    def shuffle(self, items: MutableSequence) -> None:
        """Shuffles items in place, as `random.Random.shuffle`."""
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

    def skip_shuffle(self, n: int, longest: int, most: int) -> None:
        """Moves past a shuffle of n items, at least one, of which `take_shuffles` gives the first
        `most` later. `longest` is the largest n of this job, below 32,768; its shuffles are the
        fastest. `most` is the same between two calls of `take_shuffles`."""
        self._most = most
        start = self.pass_shuffle(n, longest)       # which may begin another block
        self._skipped += start, n

    def pass_shuffle(self, n: int, longest: int) -> int:
        """Moves past a shuffle whose order nobody asks for, see `skip_shuffle`; returns where it
        began in this block."""
        # A draw takes 2 words on average at most; the block must hold them all.
        while self._position + 4 * longest + _SPARE > self._end:
            self._refill()
        if longest >> self._bits:
            self._write_text(_MOST_BITS)
        start = self._position
        first, matches = _plan(n, longest, self._bits)
        view, position = self._view, start
        for size in range(n, first, -1):
            shift = 32 - size.bit_length()
            while view[position] >> shift >= size:
                position += 1
            position += 1
        for match in matches:
            position = match(self._text, position).end()
        self._position = position
        return start

    def take_shuffles(self) -> np.ndarray:
        """Returns the orders of the shuffles skipped since the last call, uint16 [M, most]: row m
        begins with the first items of 0 .. n - 1 as shuffle m orders them."""
        self._do_skipped()
        orders, self._orders = self._orders, []
        return np.concatenate([np.zeros((0, self._most), np.uint16), *orders])

    def _do_skipped(self):
        if self._skipped:
            skipped = np.array(self._skipped, np.int64)
            self._orders.append(_do_shuffles(self._words, skipped[::2], skipped[1::2], self._most))
            self._skipped = []
        if self._unthrown:
            unthrown = np.array(self._unthrown, np.int64)
            self._thrown.append(self._do_throws(unthrown[::2], unthrown[1::2]))
            self._unthrown = []

    def _do_throws(self, starts, counts):
        """The throws that begin at some words, int [M], `counts` of each: thousands at once."""
        uniforms, words, items = np.asarray(self._uniforms), self._words, self._items
        shift = np.uint32(32 - len(items).bit_length())
        word, slot = starts.copy(), np.cumsum(counts) - counts
        thrown = np.full(counts.sum(), -2, np.int32)
        for step in range(counts.max()):
            turn = np.flatnonzero(counts > step)
            shown = turn[uniforms[word[turn]] >= self._limits[0]]
            word[turn] += 2
            thrown[slot[shown] + step] = -1
            drawn = shown[uniforms[word[shown]] >= self._limits[1]]
            word[shown] += 2
            picked = np.full(len(drawn), len(items), np.uint32)
            while (again := np.flatnonzero(picked >= len(items))).size:
                picked[again] = words[word[drawn[again]]] >> shift
                word[drawn[again]] += 1
            thrown[slot[drawn] + step] = items[picked]
        return thrown


def _do_shuffles(words, starts, sizes, most):
    """What shuffles leave at the first places, thousands of them at once, as arrays.

    Args:
        words: uint32, the block.
        starts, sizes: int [M], where each shuffle begins in the block, and its number of items.

    Returns:
        uint16 [M, most]: row m begins with the first of 0 .. sizes[m] - 1 shuffled.
    """
    by_size = np.argsort(-sizes, kind="stable")
    word, left = starts[by_size], sizes[by_size]
    count, longest = len(left), int(left[0])
    numbers = np.arange(longest + 1, dtype=np.uint32)
    shifts = np.array([32 - max(n.bit_length(), 1) for n in range(longest + 1)], np.uint32)
    bounds = numbers << shifts       # a word is accepted for below(n) if it is less than this
    bounds[:2] = 0                   # a finished shuffle accepts nothing more
    taking_part = np.searchsorted(-left, -numbers.astype(np.int64))     # those of more items

    # Row i of `picks` gets the accepted word for the swap of item i: a rejected one is overwritten.
    picks = np.empty((longest, count), np.uint32)
    flat, column = picks.reshape(-1), np.arange(count)
    column_above = column - count
    while left[0] > 1 or left.max() > 1:
        drawn = words[word]
        flat[left * count + column_above] = drawn
        left -= drawn < bounds[left]
        word += 1

    order = np.repeat(numbers[:longest, None].astype(np.uint16), count, 1)
    flat = order.reshape(-1)
    for i in range(longest - 1, 0, -1):
        own = order[i, :taking_part[i]]
        other = (picks[i, :len(own)] >> shifts[i + 1]).astype(np.int64) * count + column[:len(own)]
        if i >= most:       # nothing reads this place again
            flat[other] = own
        else:
            flat[other], own[:] = own.copy(), flat[other]
    first = np.zeros((count, most), np.uint16)
    first[by_size, :longest] = order[:most].T
    return first


@functools.cache
def _plan(n, longest, bits):
    """Plans how to skip a shuffle of n items: draw below(n) .. below(first + 1), then match."""
    bounds = [*range(longest, 1, -(_LONG_SEGMENT if n == longest else _SEGMENT)), 1]
    first = max(bound for bound in bounds if bound <= n)
    return first, [_draws(high, low, bits) for high, low in zip(bounds, bounds[1:])
                   if high <= first]


# Possessive repetition makes a match the single pass that the generator itself would make.

@functools.cache
def _draws(high, low, bits):
    """Matches the draws below(high), below(high - 1), ... below(low + 1): each is any number of
    rejected words, then an accepted one."""
    return re.compile("".join(f"{_sides(n, bits)[1]}*+." for n in range(high, low, -1)),
                      re.DOTALL).match


@functools.cache
def _throws(limits, num_items, bits, count):
    """Matches throws, see `PythonRandom.set_die`; no words whose first bits do not decide."""
    (hidden, shown), (stays, drawn) = (_sides(limit, bits, 1) for limit in limits)
    accepted, rejected = _sides(num_items, bits)
    one = f"(?:{hidden}.|{shown}.(?:{stays}.|{drawn}.{rejected}*+{accepted}))"
    return re.compile(f"{one}{{{count}}}+", re.DOTALL).match


def _sides(limit, bits, whole=None):
    """Two patterns of a word, as a share of 2**32: surely less than a limit, and surely not."""
    share = limit / (whole or 1 << limit.bit_length()) * (1 << bits)
    return (f"[^\\u{math.floor(share):04x}-\\u{1 << bits:04x}]",
            f"[\\u{math.ceil(share):04x}-\\u{1 << bits:04x}]")
