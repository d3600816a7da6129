"""Labels of tokens that a text gives by itself (arXiv:1907.12412, section 4.2)."""

from collections.abc import Sequence

import numpy as np

from bert_tf.data.text.corpus import Documents
from bert_tf.errors import InputError


def capitals(lines: Sequence[str], ids: np.ndarray, tokenizer) -> np.ndarray:
    """Returns whether the word of each token begins with a capital in the text, bool [T], for the
    tokens of all lines, int [T]. InputError if the tokenizer shows the case, or has no place for a
    token."""
    if not tokenizer.do_lower_case:
        raise InputError("--task=capitalization needs a lower-cased vocabulary, since cased tokens "
                         "show the label; give such a --vocab_file.")
    labels, marks = [], tokenizer.continues
    seen = []
    for line in lines:
        tokens, offsets = tokenizer.encode_with_offsets(line)
        seen += tokens
        is_capital = False
        for token, (start, _) in zip(tokens, offsets):
            if not marks[token]:
                is_capital = line[start:start + 1].isupper()
            labels.append(is_capital)
    if seen != ids.tolist():
        raise InputError("--task=capitalization: the tokenizer gives different tokens when it also "
                         "gives their positions; use a WordPiece vocab.txt.")
    return np.array(labels, bool)


def in_rest_of_document(documents: Documents, slices: np.ndarray) -> np.ndarray:
    """Returns whether each token's document holds it outside of its sequence too, bool [T]; False
    where there is no sequence. `slices`, int [M, 5], have one segment of one document each, and are
    disjoint or equal."""
    starts = documents.sentence_starts
    bounds = np.array(sorted((starts[first], starts[end]) for first, end in documents.ranges))
    bounds = bounds.reshape(-1, 2)
    comes_again = np.zeros(len(documents.tokens), bool)
    for start, length in np.unique(slices[:, :2], axis=0).tolist():
        first, end = bounds[np.searchsorted(bounds[:, 0], start, "right") - 1]
        rest = np.concatenate([documents.tokens[first:start], documents.tokens[start + length:end]])
        part = slice(start, start + length)
        comes_again[part] = np.isin(documents.tokens[part], rest)
    return comes_again
