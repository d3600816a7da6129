"""`PythonRandom` draws what `random.Random` draws, whatever is asked for in whatever order."""

import random

import pytest

from bert_tf.data import python_random
from bert_tf.data.python_random import PythonRandom


class Pair:
    """Both generators, asked for the same things; skipped shuffles are compared when replayed."""

    def __init__(self, seed):
        self.ours, self.theirs = PythonRandom(seed), random.Random(seed)
        self._starts, self._orders = [], []
        self.ours.before_refill = self.replay

    def replay(self):
        if self._starts:
            sizes = list(map(len, self._orders))
            orders = self.ours.replay_shuffles(self._starts, sizes)
            assert orders.shape == (max(sizes), len(sizes))
            assert [order[:size].tolist() for order, size in zip(orders.T, sizes)] == self._orders
        self._starts, self._orders = [], []

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
        if not self.ours.has(4 * longest + 256):
            self.ours.refill()
        self._orders.append(list(range(n)))
        self.theirs.shuffle(self._orders[-1])
        self._starts.append(self.ours.skip_shuffle(n, longest))


@pytest.mark.parametrize("longest", [1, 2, 5, 61, 125, 509])
def test_every_draw_in_mixed_order(longest, monkeypatch):
    monkeypatch.setattr(python_random, "_BLOCK", 1 << 12)      # many block ends
    for seed in range(12):
        pair, choose = Pair(seed), random.Random(f"{seed} {longest}")
        for _ in range(250):
            draw = choose.choice([pair.random, pair.below, pair.heads, pair.shuffle])
            draw(choose.choice([1, 2, 3, longest, choose.randint(1, 70000)])
                 if draw == pair.below else choose.randint(1, 90))
            pair.skip_shuffle(choose.randint(1, longest), longest)
        pair.replay()


def test_more_heads_than_a_block_holds(monkeypatch):
    monkeypatch.setattr(python_random, "_BLOCK", 1 << 12)
    pair = Pair(3)
    pair.skip_shuffle(100, 125)
    pair.below(3)
    pair.heads(9000)
    pair.random(None)


def test_blocks_of_the_real_size_end_too():
    pair = Pair(5)
    for _ in range(3000):
        pair.skip_shuffle(125, 125)
    pair.replay()


@pytest.mark.parametrize("seed", [0, 1, -7, 12345, 2**31, 2**64 - 1, 2**2000 + 1])
def test_seeds(seed):
    pair = Pair(seed)
    for n in (1, 2, 30522, 2**31 + 1, 2**32 - 1):
        pair.below(n)


def test_shuffles_of_many_sizes_up_to_a_long_one():
    pair = Pair(1)
    for n in (1, 2, 31, 32, 33, 64, 500, 1021, 4093):
        pair.skip_shuffle(n, 4093)
    pair.replay()


def test_uniforms_are_those_at_the_cursor():
    stream, theirs = PythonRandom(9), random.Random(9)
    assert stream.uniforms[stream.position] == theirs.random()
    stream.random()
    assert stream.uniforms[stream.position] == theirs.random()
