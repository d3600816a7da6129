"""Which tokens T5's objectives take for noise: the functions of google-research's
text-to-text-transfer-transformer, t5/data/preprocessors.py, for M sequences of one length.

Each function takes `seeds`, int32 or int64 [M, 2, 2], two seeds of each sequence; `length`, n;
`density`, the share of noise; and `span`, the mean length of a span. It returns bool [M, n].
"""

from collections.abc import Callable

import numpy as np

from bert_tf.data.text import stateless_random

NoiseMask = Callable[[np.ndarray, int, float, float], np.ndarray]
_SPAN_LENGTHS = 1, 5        # of `regular`


def _round(value):
    """To the nearest int, half to even, of a float32 as the original has it."""
    return int(np.round(np.float32(value)))


def _lengths(seeds, items, parts):
    """Cuts `items` at random into `parts` of one item or more: their lengths, int [M, parts]."""
    is_first = stateless_random.permutations(seeds, items - 1) < parts - 1
    starts = np.nonzero(is_first)[1].reshape(len(seeds), parts - 1) + 1
    ends = np.zeros((len(seeds), 1), int)
    return np.diff(np.concatenate([ends, starts, ends + items], 1), axis=1)


def random_spans(seeds: np.ndarray, length: int, density: float, span: float) -> np.ndarray:
    """Spans of noise between others. The first token is never noise, the last always is."""
    size = max(length, 2)
    noise = min(max(_round(np.float32(size) * np.float32(density)), 1), size - 1)
    spans = max(_round(np.float32(noise) / np.float32(span)), 1)
    pairs = np.stack([_lengths(seeds[:, 1], size - noise, spans),
                      _lengths(seeds[:, 0], noise, spans)], 2)
    starts = np.cumsum(pairs.reshape(len(seeds), -1), 1)[:, :-1]
    changes = np.zeros((len(seeds), size), int)
    np.put_along_axis(changes, starts, 1, 1)
    return (np.cumsum(changes, 1) % 2 == 1)[:, :length]


def roll(mask: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """The original's `random_roll`: each mask turned by a random offset."""
    with np.errstate(over="ignore"):
        seed = np.stack([seeds[:, 0, 0] + seeds[:, 1, 1], seeds[:, 0, 1] - seeds[:, 1, 0]], 1)
    length = mask.shape[1]
    offset = stateless_random.uniform_int(seed, 1, 0, length)
    return np.take_along_axis(mask, (np.arange(length) - offset) % length, 1)


def iid(seeds: np.ndarray, length: int, density: float, span: float) -> np.ndarray:
    """Each token by a coin of its own."""
    del span
    return stateless_random.uniform(seeds[:, 0], length) < np.float32(density)


def random_prefix(seeds: np.ndarray, length: int, density: float, span: float) -> np.ndarray:
    """The first part, of a random length."""
    del span
    most = length - 1
    least = min(max(_round(np.float32(1 - 2 * density) * np.float32(most)), 1), most)
    size = stateless_random.uniform_int(seeds[:, 0], 1, least, most + 1)
    return np.arange(length) < size


def regular(seeds: np.ndarray, length: int, density: float, span: float) -> np.ndarray:
    """Spans of one length at equal distances."""
    del span
    least, most = _SPAN_LENGTHS
    size = stateless_random.uniform_int(seeds[:, 0], 1, least, most + 1)
    period = np.round(size.astype(np.float32) / np.float32(density)).astype(int)
    offset = stateless_random.uniform_int(seeds[:, 1], 1, 0, period[:, 0])
    return (np.arange(length) + offset) % period < size


NOISE_MASKS: dict[str, NoiseMask] = {
    "random_spans": random_spans, "iid": iid, "random_prefix": random_prefix, "regular": regular}
