"""Attention between words, from attention between their sub-words (clarkkev/attention-analysis,
bpe_utils.py)."""

from collections.abc import Sequence

import numpy as np

from bert_tf.tokenization.base import Tokenizer

READINGS = ("mean", "first", "max")


def group(ids: Sequence[int], continues: np.ndarray) -> list[list[int]]:
    """The positions of each word's sub-words.

    Args:
        ids: the tokens of a text.
        continues: the tokenizer's `continues`, bool [V].
    """
    words: list[list[int]] = []
    for position, goes_on in enumerate(continues[np.asarray(ids)]):
        if goes_on and words:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def names(ids: Sequence[int], tokenizer: Tokenizer) -> list[str]:
    """The tokens as people read them: without the character that stands for a blank."""
    return [token.lstrip(tokenizer.blank) or token if tokenizer.blank else token
            for token in tokenizer.tokens(ids)]


def pieces(ids: Sequence[int], tokenizer: Tokenizer) -> np.ndarray:
    """Whether each token goes on with the word of the one before: bool [n]. One that follows a
    special token does not, although byte-level BPE has no blank before the first word."""
    special = set(tokenizer.vocabulary.special.values())
    after = np.array([token in special for token in tokenizer.tokens(ids)])
    return tokenizer.continues[np.asarray(ids)] & ~np.append(True, after[:-1])


def readable(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    """A text from its tokens, with a blank before each word."""
    return "".join(name.removeprefix("##") if piece else f" {name}" for name, piece in zip(
        names(ids, tokenizer), pieces(ids, tokenizer))).strip()


def word_attention(attention: np.ndarray, words: Sequence[Sequence[int]], reading: str = "mean"
                   ) -> np.ndarray:
    """Maps [..., w, w] of w words from maps [..., n, n] of their tokens.

    The attention to a word is the sum of that to its tokens.

    Args:
        attention: float [..., n, n].
        words: the positions of each word's tokens, in order.
        reading: the attention from a word is the "mean" of that from its tokens, as in the paper;
            that from its "first", the original code's default; or the "max" of each column, scaled
            to the sum 1.
    """
    starts = [positions[0] for positions in words]
    attention = np.add.reduceat(attention, starts, -1)
    if reading == "first":
        return attention[..., starts, :]
    if reading == "max":
        attention = np.maximum.reduceat(attention, starts, -2)
        return attention / attention.sum(-1, keepdims=True)
    counts = np.array([len(positions) for positions in words])
    return np.add.reduceat(attention, starts, -2) / counts[:, None]
