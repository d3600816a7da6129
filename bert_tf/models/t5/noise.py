"""T5's noise for M sequences of one length: chooses the noise tokens and replaces them
(google-research/text-to-text-transfer-transformer, t5/data/preprocessors.py).

A noise mask takes `seeds`, int [M, 2, 2], two seeds of each sequence; `length`, n; `density`, the
share of noise; and `span`, the mean length of a span. It returns bool [M, n].

A noise function takes `tokens`, int [M, n]; `noise`, bool [M, n]; `seeds`, as above; and
`vocab_size`, V. It returns tokens, int [M, n], and which of them remain, bool [M, n].
"""

from collections.abc import Callable

import numpy as np

from bert_tf.data.text import stateless_random

NoiseMask = Callable[[np.ndarray, int, float, float], np.ndarray]
_SPAN_LENGTHS = 1, 5        # of `regular`


def _round(value):
    """To the nearest int, half to even, of a float32 as in the original."""
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
    return stateless_random.uniform(seeds[:, 0], length) < np.float32(density)


def random_prefix(seeds: np.ndarray, length: int, density: float, span: float) -> np.ndarray:
    """The first part, of a random length."""
    most = length - 1
    least = min(max(_round(np.float32(1 - 2 * density) * np.float32(most)), 1), most)
    size = stateless_random.uniform_int(seeds[:, 0], 1, least, most + 1)
    return np.arange(length) < size


def regular(seeds: np.ndarray, length: int, density: float, span: float) -> np.ndarray:
    """Spans of one length at equal distances."""
    least, most = _SPAN_LENGTHS
    size = stateless_random.uniform_int(seeds[:, 0], 1, least, most + 1)
    period = np.round(size.astype(np.float32) / np.float32(density)).astype(int)
    offset = stateless_random.uniform_int(seeds[:, 1], 1, 0, period[:, 0])
    return (np.arange(length) + offset) % period < size


NOISE_MASKS: dict[str, NoiseMask] = {
    "random_spans": random_spans, "iid": iid, "random_prefix": random_prefix, "regular": regular}


Noised = tuple[np.ndarray, np.ndarray]
NoiseFunction = Callable[[np.ndarray, np.ndarray, np.ndarray, int], Noised]
_FIRST_TOKEN = 3        # that a random token may be
_RANDOM_SHARE = 0.1


def _all(tokens):
    return tokens, np.ones(tokens.shape, bool)


def _follows(noise):
    """Returns which noise tokens follow another."""
    return noise & np.pad(noise[:, :-1], ((0, 0), (1, 0)))


def noise_token_to_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each noise token becomes the last of the vocabulary."""
    return _all(np.where(noise, vocab_size - 1, tokens))


def noise_span_to_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each run of noise becomes one sentinel, always the same."""
    return (noise_token_to_sentinel(tokens, noise, seeds, vocab_size)[0], ~_follows(noise))


def nonnoise_span_to_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each run of other tokens becomes one sentinel, always the same."""
    return noise_span_to_sentinel(tokens, ~noise, seeds, vocab_size)


def noise_span_to_unique_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each run of noise becomes one sentinel, from the last token of the vocabulary down. Beyond
    the hundredth these are ordinary tokens."""
    follows = _follows(noise)
    first = noise & ~follows
    return np.where(first, vocab_size - np.cumsum(first, 1), tokens), ~follows


def nonnoise_span_to_unique_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each run of other tokens becomes one sentinel: the noise remains, between sentinels."""
    return noise_span_to_unique_sentinel(tokens, ~noise, seeds, vocab_size)


def drop_noise_tokens(tokens, noise, seeds, vocab_size) -> Noised:
    """The other tokens alone."""
    return tokens, ~noise


def drop_nonnoise_tokens(tokens, noise, seeds, vocab_size) -> Noised:
    """The noise alone."""
    return tokens, noise


def permute_noise_tokens(tokens, noise, seeds, vocab_size) -> Noised:
    """Noise tokens change places with each other."""
    length = tokens.shape[1]
    # The places of the noise first, in their order; then the same in a random order.
    places = np.argsort(~noise, axis=1, kind="stable")
    count = noise.sum(1, keepdims=True)
    draws = np.where(np.arange(length) < count, stateless_random.uniform(seeds[:, 0], length), 2)
    drawn = np.take_along_axis(places, np.argsort(draws, axis=1, kind="stable"), 1)
    permuted = tokens.copy()
    np.put_along_axis(permuted, places, np.take_along_axis(tokens, drawn, 1), 1)
    return _all(np.where(noise, permuted, tokens))


def noise_token_to_gathered_token(tokens, noise, seeds, vocab_size) -> Noised:
    """Each noise token becomes a random one of the sequence."""
    length = tokens.shape[1]
    places = stateless_random.uniform_int(seeds[:, 0], length, 0, length)
    return _all(np.where(noise, np.take_along_axis(tokens, places, 1), tokens))


def noise_token_to_random_token(tokens, noise, seeds, vocab_size) -> Noised:
    """Each noise token becomes a random one of the vocabulary."""
    drawn = stateless_random.uniform_int(seeds[:, 0], tokens.shape[1], _FIRST_TOKEN, vocab_size)
    return _all(np.where(noise, drawn, tokens))


def noise_token_to_random_token_or_sentinel(tokens, noise, seeds, vocab_size) -> Noised:
    """Each noise token becomes a random one, or nine times out of ten the sentinel."""
    is_random = stateless_random.uniform(seeds[:, 0], tokens.shape[1]) < np.float32(_RANDOM_SHARE)
    return _all(np.where(is_random,
                         noise_token_to_random_token(tokens, noise, seeds[:, 1:], vocab_size)[0],
                         noise_token_to_sentinel(tokens, noise, seeds, vocab_size)[0]))


def keep_tokens(tokens, noise, seeds, vocab_size) -> Noised:
    """The text as it was."""
    return _all(tokens)


NOISE_FUNCTIONS: dict[str, NoiseFunction] = {function.__name__: function for function in (
    noise_token_to_sentinel, noise_span_to_sentinel, nonnoise_span_to_sentinel,
    noise_span_to_unique_sentinel, nonnoise_span_to_unique_sentinel, drop_noise_tokens,
    drop_nonnoise_tokens, permute_noise_tokens, noise_token_to_gathered_token,
    noise_token_to_random_token, noise_token_to_random_token_or_sentinel, keep_tokens)}
