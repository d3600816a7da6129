"""The lines of a text file as sequences of ids, some lines at a time.

A line is one text, or two with " ||| " between them (google-research/bert, extract_features.py).
"""

import itertools

import numpy as np

from bert_tf.data import corpus
from bert_tf.data.features import pack_pairs, truncate_pairs
from bert_tf.files import open_unpacked

_SEPARATOR = " ||| "


def read_lines(path, count):
    """Yields all lines of a file, plain or gzip, in lists of `count`, the last of which may be
    shorter. An empty line counts too.

    Raises:
        InputError: it can't be read or is not UTF-8; names the line.
    """
    with open_unpacked(path) as file:
        while lines := list(itertools.islice(file, count)):
            yield corpus.decode(b"".join(lines).removesuffix(b"\n"), [path])


class Texts:
    """Texts as ids, cut to fit, of which any may be packed into a batch.

    Attributes:
        lengths: int [N], the tokens of each, special tokens included.
        cut: how many were too long.
    """

    def __init__(self, lines, tokenizer, max_seq_length):
        """
        Args:
            lines: list of N str.
            tokenizer: has `encode_lines(lines) -> (ids int32 [T], lengths [number of lines])`.
            max_seq_length: the most tokens of a text, at least 3.
        """
        self._vocabulary = tokenizer.vocabulary
        self._tokens, lengths = tokenizer.encode_lines(
            [text for line in lines for text in _split(line)])
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        self._a_start, self._b_start = starts.reshape(-1, 2).T
        a_length, b_length = lengths.reshape(-1, 2).T
        layout = self._vocabulary.layout
        self._a_length, self._b_length = truncate_pairs(a_length, b_length, max_seq_length, layout)
        self.cut = int(((self._a_length < a_length) | (self._b_length < b_length)).sum())
        self.lengths = layout.length(self._a_length, self._b_length)

    def pack(self, rows):
        """The features of the texts `rows`, int [B], padded to the longest of them: as those of
        `pack_pairs`, all int32.
        """
        packed = pack_pairs(self._tokens, self._a_start[rows], self._a_length[rows],
                            self._b_start[rows], self._b_length[rows],
                            int(self.lengths[rows].max()), self._vocabulary)
        return {name: values.astype(np.int32) for name, values in packed.items()}


def _split(line):
    """Both texts of a line, the second of which may be empty."""
    first, separator, second = line.strip().rpartition(_SEPARATOR)
    return (first, second) if separator else (second, "")
