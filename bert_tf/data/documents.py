"""Documents as token ids: the in-memory form of a piece of corpus."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Documents:
    """Tokenised sentences, grouped into documents.

    Attributes:
        tokens: int32 [T], the ids of all sentences, one after the other.
        sentence_starts: where each sentence begins in `tokens`, and T at the end (a list).
        ranges: (first sentence, last sentence + 1) of each document, none of them empty (a list).
    """

    tokens: np.ndarray
    sentence_starts: list
    ranges: list


def tokenize_documents(lines, tokenizer):
    """Documents from lines of text, as the original reads a file: a blank line ends a document.

    Lines that hold no token (control characters only, say) are left out and end nothing. Carriage
    returns are dropped wherever they stand, as TensorFlow's reader of lines drops them.

    Args:
        lines: list of str.
        tokenizer: has `encode_lines(lines) -> (ids int32 [T], lengths [number of lines])`.
    """
    lines = [line.replace("\r", "") for line in lines]
    tokens, lengths = tokenizer.encode_lines(lines)
    lengths = np.asarray(lengths)
    blank = np.array([not line or line.isspace() for line in lines], bool)
    kept = lengths > 0
    document = np.cumsum(blank)[kept]           # equal for the sentences of one document
    starts = np.concatenate([[0], np.cumsum(lengths[kept])])
    edges = np.concatenate([[0], np.flatnonzero(np.diff(document)) + 1, [len(document)]])
    ranges = [(int(a), int(b)) for a, b in zip(edges, edges[1:]) if a < b]
    return Documents(np.asarray(tokens, np.int32), starts.tolist(), ranges)
