"""What T5's objectives make of text and noise: the functions of google-research's
text-to-text-transfer-transformer, t5/data/preprocessors.py, for M sequences of one length at once.

Each function takes `tokens`, int [M, n]; `noise`, bool [M, n]; `seeds`, int [M, 2, 2], two seeds of
each sequence; and `vocab_size`, V. It returns tokens, int [M, n], and which of them remain, bool
[M, n].
"""

from collections.abc import Callable

import numpy as np

from bert_tf.data.text import stateless_random

Found = tuple[np.ndarray, np.ndarray]
NoiseFunction = Callable[[np.ndarray, np.ndarray, np.ndarray, int], Found]
_FIRST_TOKEN = 3        # that a random token may be
_RANDOM_SHARE = 0.1


def _all(tokens):
    return tokens, np.ones(tokens.shape, bool)


def _follows(noise):
    """Which noise tokens follow another."""
    return noise & np.pad(noise[:, :-1], ((0, 0), (1, 0)))


def noise_token_to_sentinel(tokens, noise, seeds, vocab_size) -> Found:
    """Each noise token becomes the last of the vocabulary."""
    del seeds
    return _all(np.where(noise, vocab_size - 1, tokens))


def noise_span_to_sentinel(tokens, noise, seeds, vocab_size) -> Found:
    """Each run of noise becomes one sentinel, always the same."""
    return (noise_token_to_sentinel(tokens, noise, seeds, vocab_size)[0], ~_follows(noise))


def nonnoise_span_to_sentinel(tokens, noise, seeds, vocab_size) -> Found:
    """The same of the other tokens."""
    return noise_span_to_sentinel(tokens, ~noise, seeds, vocab_size)


def noise_span_to_unique_sentinel(tokens, noise, seeds, vocab_size) -> Found:
    """Each run of noise becomes one sentinel, from the last token of the vocabulary down. Beyond
    the hundredth these are ordinary tokens."""
    del seeds
    follows = _follows(noise)
    first = noise & ~follows
    return np.where(first, vocab_size - np.cumsum(first, 1), tokens), ~follows


def nonnoise_span_to_unique_sentinel(tokens, noise, seeds, vocab_size) -> Found:
    """The same of the other tokens: what was hidden, each part after its sentinel."""
    return noise_span_to_unique_sentinel(tokens, ~noise, seeds, vocab_size)


def drop_noise_tokens(tokens, noise, seeds, vocab_size) -> Found:
    """The other tokens alone."""
    del seeds, vocab_size
    return tokens, ~noise


def drop_nonnoise_tokens(tokens, noise, seeds, vocab_size) -> Found:
    """The noise alone."""
    del seeds, vocab_size
    return tokens, noise


def permute_noise_tokens(tokens, noise, seeds, vocab_size) -> Found:
    """Noise tokens change places with each other."""
    del vocab_size
    length = tokens.shape[1]
    # The places of the noise first, in their order; then the same in a random order.
    places = np.argsort(~noise, axis=1, kind="stable")
    count = noise.sum(1, keepdims=True)
    draws = np.where(np.arange(length) < count, stateless_random.uniform(seeds[:, 0], length), 2)
    drawn = np.take_along_axis(places, np.argsort(draws, axis=1, kind="stable"), 1)
    found = tokens.copy()
    np.put_along_axis(found, places, np.take_along_axis(tokens, drawn, 1), 1)
    return _all(np.where(noise, found, tokens))


def noise_token_to_gathered_token(tokens, noise, seeds, vocab_size) -> Found:
    """Each noise token becomes a random one of the sequence."""
    del vocab_size
    length = tokens.shape[1]
    places = stateless_random.uniform_int(seeds[:, 0], length, 0, length)
    return _all(np.where(noise, np.take_along_axis(tokens, places, 1), tokens))


def noise_token_to_random_token(tokens, noise, seeds, vocab_size) -> Found:
    """Each noise token becomes a random one of the vocabulary."""
    drawn = stateless_random.uniform_int(seeds[:, 0], tokens.shape[1], _FIRST_TOKEN, vocab_size)
    return _all(np.where(noise, drawn, tokens))


def noise_token_to_random_token_or_sentinel(tokens, noise, seeds, vocab_size) -> Found:
    """Each noise token becomes a random one, or nine times out of ten the sentinel."""
    is_random = stateless_random.uniform(
        seeds[:, 0], tokens.shape[1]) < np.float32(_RANDOM_SHARE)
    return _all(np.where(is_random,
                         noise_token_to_random_token(tokens, noise, seeds[:, 1:], vocab_size)[0],
                         noise_token_to_sentinel(tokens, noise, seeds, vocab_size)[0]))


def keep_tokens(tokens, noise, seeds, vocab_size) -> Found:
    """The text as it was."""
    del noise, seeds, vocab_size
    return _all(tokens)


NOISE_FUNCTIONS: dict[str, NoiseFunction] = {function.__name__: function for function in (
    noise_token_to_sentinel, noise_span_to_sentinel, nonnoise_span_to_sentinel,
    noise_span_to_unique_sentinel, nonnoise_span_to_unique_sentinel, drop_noise_tokens,
    drop_nonnoise_tokens, permute_noise_tokens, noise_token_to_gathered_token,
    noise_token_to_random_token, noise_token_to_random_token_or_sentinel, keep_tokens)}
