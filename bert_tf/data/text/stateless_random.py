"""The random numbers of TensorFlow's stateless functions and of its `Dataset.random`, in NumPy, for
M seeds at once: Philox 4x32-10 (doi:10.1145/2063384.2063405)."""

import numpy as np

_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
_ROUNDS = 10
# The key of TensorFlow's stateless functions for mixing their seeds.
_MIXING_KEY = np.uint32(0x3EC8F720), np.uint32(0x02461E29)
_GRAPH_SEED = 87654321      # the first half of the seed of a data set, where only one is given
_WORD = np.uint64(32)


def _philox(counter, key):
    """One block of each counter: from 4 and 2 arrays of uint32 to 4 arrays."""
    (a, b, c, d), (left, right) = counter, key
    for _ in range(_ROUNDS):
        first, second = (np.asarray(word, np.uint64) * factor
                         for word, factor in zip((a, c), _FACTORS))
        a, b, c, d = ((second >> _WORD).astype(np.uint32) ^ b ^ left, second.astype(np.uint32),
                      (first >> _WORD).astype(np.uint32) ^ d ^ right, first.astype(np.uint32))
        left, right = left + _STEPS[0], right + _STEPS[1]
    return a, b, c, d


def _words(values):
    """The low and the high 32 bits."""
    values = np.asarray(values).astype(np.int64).view(np.uint64)
    return values.astype(np.uint32), (values >> _WORD).astype(np.uint32)


def random_bits(seeds: np.ndarray, size: int) -> np.ndarray:
    """Returns the bits that stateless functions draw with seeds [M, 2]: uint32 [M, size]."""
    with np.errstate(over="ignore"):
        left, right, *start = _philox((*_words(seeds[:, 0]), *_words(seeds[:, 1])),
                                      [np.full(len(seeds), word) for word in _MIXING_KEY])
        blocks = -(-size // 4)
        shape = len(seeds), blocks
        counter = (np.broadcast_to(np.arange(blocks, dtype=np.uint32), shape),
                   np.zeros(shape, np.uint32),
                   *(np.broadcast_to(word[:, None], shape) for word in start))
        drawn = _philox(counter, (left[:, None], right[:, None]))
    return np.stack(drawn, -1).reshape(len(seeds), 4 * blocks)[:, :size]


def uniform(seeds: np.ndarray, size: int) -> np.ndarray:
    """`tf.random.stateless_uniform([size], seed)` of each seed: float32 [M, size] in [0, 1)."""
    bits = random_bits(seeds, size) & np.uint32(0x7FFFFF) | np.uint32(127 << 23)
    return bits.view(np.float32) - np.float32(1)


def uniform_int(seeds: np.ndarray, size: int, low: np.ndarray | int,
                high: np.ndarray | int) -> np.ndarray:
    """`tf.random.stateless_uniform([size], seed, low, high, tf.int32)` of each seed: int64 [M,
    size] in [low, high), which are int, or int [M]."""
    low, high = (np.broadcast_to(bound, len(seeds)).astype(np.int64)[:, None]
                 for bound in (low, high))
    return low + random_bits(seeds, size) % (high - low)


def split(seeds: np.ndarray, count: int) -> np.ndarray:
    """`tf.random.split(seed, count)` of each seed: [M, count, 2], of the dtype of `seeds`, int32 or
    int64 [M, 2]."""
    words = 2 if seeds.dtype == np.int64 else 1
    bits = np.ascontiguousarray(random_bits(seeds, 2 * count * words))
    return bits.view(seeds.dtype).reshape(len(seeds), count, 2)


def permutations(seeds: np.ndarray, size: int) -> np.ndarray:
    """The order of `size` items after seqio's `stateless_shuffle`: int [M, size]."""
    return np.argsort(uniform(seeds, size), axis=1, kind="stable")


def dataset_seeds(seeds: tuple[int, int], count: int) -> np.ndarray:
    """Returns the first elements of two data sets `tf.data.Dataset.random`, int64 [count, 2]."""
    blocks = np.arange(-(-count // 4), dtype=np.uint32)
    zeros = np.zeros_like(blocks)
    columns = []
    for seed in seeds:
        low, high = _words([seed])
        with np.errstate(over="ignore"):
            drawn = _philox((blocks, zeros, zeros + low, zeros + high),
                            [zeros + word[0] for word in _words([_GRAPH_SEED])])
        columns.append(np.stack(drawn, -1).reshape(-1)[:count].astype(np.int64))
    return np.stack(columns, 1)
