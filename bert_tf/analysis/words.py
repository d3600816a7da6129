"""Attention between words from sub-words' (clarkkev/attention-analysis, bpe_utils.py)."""

from collections.abc import Sequence

import numpy as np

from bert_tf.tokenization.base import Tokenizer


def names(ids: Sequence[int], tokenizer: Tokenizer) -> list[str]:
    """Returns the tokens without the character that marks a blank."""
    return [token.lstrip(tokenizer.blank) or token if tokenizer.blank else token
            for token in tokenizer.tokens(ids)]


def pieces(ids: Sequence[int], tokenizer: Tokenizer) -> np.ndarray:
    """Returns whether each token continues the word before it: bool [n]. A token after a special
    one does not, although byte-level BPE has no blank before the first word."""
    special = set(tokenizer.vocabulary.special.values())
    after = np.array([token in special for token in tokenizer.tokens(ids)])
    return tokenizer.continues[np.asarray(ids)] & ~np.append(True, after[:-1])


def readable(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    """Joins tokens to a text, with a blank before each word."""
    text = "".join(name.removeprefix("##") if piece else f" {name}" for name, piece in zip(
        names(ids, tokenizer), pieces(ids, tokenizer)))
    # A token may be a blank alone.
    return " ".join((text.replace(tokenizer.blank, "") if tokenizer.blank else text).split())


def word_attention(attention: np.ndarray, words: Sequence[Sequence[int]]) -> np.ndarray:
    """Turns maps [..., n, n] between tokens into maps [..., w, w] between words: the sum of the
    attention to a word's tokens, the mean of the attention from them. `words` has the positions of
    each one's tokens, in order."""
    starts = [positions[0] for positions in words]
    counts = np.array([len(positions) for positions in words])
    attention = np.add.reduceat(attention, starts, -1)
    return np.add.reduceat(attention, starts, -2) / counts[:, None]
