"""The stream of `random.Random(seed)`, read in blocks.

The original draws every choice from one `random.Random`, so records equal to its records need the
same numbers in the same order. Most of them are the swaps of one shuffle per instance: about 175
draws each, of which the order only matters later. This class therefore keeps the generator's
32-bit words in an array with a cursor and offers, beside the ordinary draws, `skip_shuffle`, which
finds where a shuffle's draws end without doing it, and `replay_shuffles`, which does thousands of
skipped ones at once.

How CPython (3.2 and later) turns words into numbers:
    random()    two words a, b: ((a >> 5) * 2**26 + (b >> 6)) / 2**53
    below(n)    the top n.bit_length() bits of a word, drawn again until they are less than n
    shuffle(x)  for i from len(x) - 1 down to 1: swap x[i] with x[below(i + 1)]
"""

import functools
import random
import re

import numpy as np

_BLOCK = 1 << 19
# Words are matched by their top 15 bits, as characters below the surrogates.
_TEXT_BITS = 15
_SEGMENT = 32


class PythonRandom:
    """Draws what `random.Random(seed)` would draw.

    Attributes:
        position: index of the next unread word of the block.
        uniforms: float64 view; `uniforms[i]` is what `random()` gives when the cursor is at i.
        words: uint32 view of the block.
        before_refill: called when the block is about to be replaced, and with it the meaning of
            every position: the last chance to replay skipped shuffles.
    """

    def __init__(self, seed):
        key = random.Random(seed).getstate()[1]
        self._generator = np.random.MT19937()
        self._generator.state = {"bit_generator": "MT19937",
                                 "state": {"key": np.array(key[:-1], np.uint32), "pos": key[-1]}}
        self._words = np.zeros(0, np.uint32)
        self.position = 0
        self.before_refill = None
        self.refill()

    def refill(self):
        """Replaces the words already read by fresh ones. Positions taken before are void."""
        if self.before_refill:
            self.before_refill()
        fresh = self._generator.random_raw(_BLOCK).astype(np.uint32)
        self._words = np.concatenate([self._words[self.position:], fresh])
        self.position = 0
        high, low = self._words[:-1] >> 5, self._words[1:] >> 6
        self.words = memoryview(self._words)
        self.uniforms = memoryview((high * 67108864.0 + low) * (1.0 / 9007199254740992.0))
        self._heads = (self._words < (1 << 31)).tobytes()
        self._text = (self._words >> (32 - _TEXT_BITS)).astype("<u2").tobytes().decode("utf-16-le")

    def has(self, count):
        """Whether the block holds `count` more words, so that no refill comes in between."""
        return self.position + count <= len(self.words)

    def random(self):
        """A float in [0, 1), as `random.Random.random`."""
        if not self.has(2):
            self.refill()
        self.position += 2
        return self.uniforms[self.position - 2]

    def below(self, n):
        """An int in [0, n), as `random.Random._randbelow`: `randint(1, n)` is 1 + below(n)."""
        shift = 32 - n.bit_length()
        while True:
            if self.position >= len(self.words):
                self.refill()
            value = self.words[self.position] >> shift
            self.position += 1
            if value < n:
                return value

    def heads(self, count):
        """bytes [count]: 1 where each of the next `count` `random()` is less than 0.5."""
        drawn = []
        while count:
            if not self.has(2):
                self.refill()
            part = min(count, (len(self.words) - self.position) // 2)
            drawn.append(self._heads[self.position:self.position + 2 * part:2])
            self.position += 2 * part
            count -= part
        return b"".join(drawn)

    def shuffle(self, items):
        """Shuffles a list in place, as `random.Random.shuffle`."""
        below = self.below
        for i in range(len(items) - 1, 0, -1):
            j = below(i + 1)
            items[i], items[j] = items[j], items[i]

    def skip_shuffle(self, n, longest):
        """Moves the cursor past a shuffle of n items and returns where it began.

        The shuffle must lie in the block: see `has`.

        Args:
            n: number of items, 1 or more.
            longest: the largest n of this job, below 32,768; its shuffles are the fastest.
        """
        start = self.position
        first, matches = _plan(n, longest)
        for size in range(n, first, -1):
            self.below(size)
        position = self.position
        for match in matches:
            position = match(self._text, position).end()
        self.position = position
        return start

    def replay_shuffles(self, starts, sizes):
        """The orders that skipped shuffles leave.

        Args:
            starts: int [M], what `skip_shuffle` returned.
            sizes: int [M], its n.

        Returns:
            uint16 [max(sizes), M]: column m holds 0..sizes[m]-1 shuffled, then the rest.
        """
        starts, sizes = np.asarray(starts, np.int64), np.asarray(sizes, np.int64)
        count, longest = len(starts), int(sizes.max())
        numbers = np.arange(longest + 1, dtype=np.uint32)
        shifts = np.array([32 - max(n.bit_length(), 1) for n in range(longest + 1)], np.uint32)
        bounds = numbers << shifts       # a word is accepted for below(n) if it is less than this
        bounds[:2] = 0                   # a finished shuffle accepts nothing more

        # Row s of `picks` gets the accepted word of step s: a rejected one is overwritten.
        picks = np.zeros((longest, count), np.uint32)
        flat, slot, word, left = picks.reshape(-1), np.arange(count), starts.copy(), sizes.copy()
        while left.max() > 1:
            drawn = self._words[word]
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
    """How a shuffle of n items is skipped: draw below(n) .. below(first + 1), then match."""
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
