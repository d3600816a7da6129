"""Characters of a word as ids, and the features that hold them, three ids in a number.

Ids follow allenai/bilm-tf, bilm/data.py, at inference: 0 where there is no word; else 1 more
than a byte, 257 begin and 258 end of sentence, 259 begin and 260 end of word, 261 padding.
Shapes: W characters of a word, K = ceil(W / 3) numbers.
"""

import numpy as np

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261
EACH, BITS = 3, 9       # in a number
MOST_CHARACTERS = 150       # of a word, as records can hold them
SPECIAL = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}


def spelling_names(max_characters: int) -> tuple[str, ...]:
    """The names of the K features for words of `max_characters`."""
    return tuple(f"spelling_{i}" for i in range(-(-max_characters // EACH)))


def spell(word: str, max_characters: int) -> list[int]:
    """The ids of a word's characters, UTF-8 bytes between marks, W of them; it is cut to fit."""
    inside = [byte + 1 for byte in word.encode("utf-8", "ignore")[:max_characters - 2]]
    if word in SPECIAL:
        inside = [SPECIAL[word]]
    ids = [BEGIN_WORD, *inside, END_WORD]
    return ids + [PADDING] * (max_characters - len(ids))


def pack_spelling(char_ids: np.ndarray) -> list[np.ndarray]:
    """Packs integer [..., W] into K int32 arrays [...]."""
    short = -char_ids.shape[-1] % EACH
    padded = np.concatenate([char_ids, np.zeros((*char_ids.shape[:-1], short), char_ids.dtype)], -1)
    parts = padded.astype(np.int32).reshape(*char_ids.shape[:-1], -1, EACH)
    packed = sum(parts[..., i] << (BITS * i) for i in range(EACH))
    return list(np.moveaxis(packed, -1, 0))
