"""`PythonRandom` draws what `random.Random` draws, whatever is asked for in whatever order."""

import random

import pytest

from bert_tf.data.text import python_random
from bert_tf.data.text.python_random import PythonRandom


class Pair:
    """Both generators, asked for the same things; skipped shuffles are compared when taken."""

    def __init__(self, seed):
        self.ours, self.theirs = PythonRandom(seed), random.Random(seed)
        self._orders, self._thrown, self._most = [], [], 0

    def take_shuffles(self, most):
        """Compares the skipped shuffles; `most` is for the next ones."""
        orders = self.ours.take_shuffles()
        assert len(orders) == len(self._orders)
        for ours, theirs in zip(orders.tolist(), self._orders):
            assert ours[:len(theirs)] == theirs[:self._most]
        self._orders, self._most = [], most

    def random(self, _):
        assert self.ours.random() == self.theirs.random()

    def below(self, n):
        assert 1 + self.ours.below(n) == self.theirs.randint(1, n)

    def heads(self, n):
        assert list(self.ours.heads(n)) == [self.theirs.random() < 0.5 for _ in range(n)]

    def shuffle(self, n):
        ours, theirs = list(range(n)), list(range(n))
        self.ours.shuffle(ours)
        self.theirs.shuffle(theirs)
        assert ours == theirs

    def skip_shuffle(self, n, longest):
        self._orders.append(list(range(n)))
        self.theirs.shuffle(self._orders[-1])
        self.ours.skip_shuffle(n, longest, self._most)

    def set_die(self, limits, count):
        self.take_throws()
        self._limits, self._items = limits, list(range(7, 7 + count))
        self.ours.set_die(limits, self._items)

    def take_throws(self):
        assert self.ours.take_throws().tolist() == self._thrown
        self._thrown = []

    def throws(self, n):
        def throw():
            if self.theirs.random() < self._limits[0]:
                return -2
            return -1 if self.theirs.random() < self._limits[1] else self.theirs.choice(self._items)

        self.ours.skip_throws(n)
        self._thrown += [throw() for _ in range(n)]


@pytest.mark.parametrize("longest", [1, 2, 5, 61, 125, 509])
def test_every_draw_in_mixed_order(longest, monkeypatch):
    monkeypatch.setattr(python_random, "_BLOCK", 1 << 12)      # many block ends
    for seed in range(3):       # a block holds three of the longest
        pair, choose = Pair(seed), random.Random(f"{seed} {longest}")
        pair.set_die((0.8, 0.5), 30522)
        pair.take_shuffles(3)
        for _ in range(250):
            if choose.random() < 0.1:
                pair.set_die((choose.random(), choose.random()), choose.randint(1, 90000))
            draw = choose.choice([pair.random, pair.below, pair.heads, pair.shuffle, pair.throws])
            draw(choose.choice([1, 2, 3, longest, choose.randint(1, 70000)])
                 if draw == pair.below else choose.randint(1, 90))
            pair.skip_shuffle(choose.randint(1, longest), longest)
            if choose.random() < 0.1:
                pair.take_shuffles(choose.randint(1, longest + 3))
        pair.take_shuffles(longest)
        pair.take_throws()


@pytest.mark.parametrize("more", [0, 2**-53, 2**-16])
@pytest.mark.parametrize("limits, items", [
    ((0, 0), 1), ((1, 0), 5), ((0, 1), 5), ((0, 0), 2**17 - 1)])
def test_throws_that_the_first_bits_do_not_decide(limits, items, more):
    for seed in range(8):
        pair, peek = Pair(seed), random.Random(seed)
        pair.set_die([limit or peek.random() + more for limit in limits], items)
        for count in (1, 0, 2, 19, 76):
            pair.throws(count)
        pair.take_throws()
        pair.random(None)


def test_more_heads_than_a_block_holds(monkeypatch):
    monkeypatch.setattr(python_random, "_BLOCK", 1 << 12)
    pair = Pair(3)
    pair.skip_shuffle(100, 125)
    pair.below(3)
    pair.heads(9000)
    pair.random(None)


def test_blocks_of_the_real_size_end_too():
    pair = Pair(5)
    pair.take_shuffles(125)
    for _ in range(3000):
        pair.skip_shuffle(125, 125)
    pair.take_shuffles(125)


@pytest.mark.parametrize("seed", [0, 1, -7, 12345, 2**31, 2**64 - 1, 2**2000 + 1])
def test_seeds(seed):
    pair = Pair(seed)
    for n in (1, 2, 30522, 2**31 + 1, 2**32 - 1):
        pair.below(n)


@pytest.mark.parametrize("longest", [4093, 5000])
def test_shuffles_of_many_sizes_up_to_a_long_one(longest):
    pair = Pair(1)
    pair.take_shuffles(longest)
    for n in (1, 2, 31, 32, 33, 64, 500, 1021, longest):
        pair.skip_shuffle(n, longest)
    pair.take_shuffles(longest)

