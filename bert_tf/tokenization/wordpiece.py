"""WordPiece, exactly as the original tokenises (google-research/bert, tokenization.py).

It is fast because text repeats its words: the ids of a space-separated word are remembered, and
so are those of its parts between punctuation. A block of lines then is one split, one dictionary
look-up a word and one join of bytes.
"""

import array

import numpy as np

from bert_tf.tokenization.alignment import aligned_words
from bert_tf.tokenization.words import split_chunks, split_words

MAX_WORD_CHARS = 200             # a longer word is [UNK]
_REMEMBERED_WORDS = 1 << 18      # what a memory holds before it starts afresh
_REMEMBERED_CHARS = 40           # longer "words" are unspaced scripts and seldom come again
_BLOCK_LINES = 4096
_LINE_END = "\0"                 # no text holds it once cleaned


def _pack(ids):
    return array.array("i", ids).tobytes()


def _unpack(packed):
    return memoryview(packed).cast("i").tolist()


class _Memory(dict):
    """word -> its ids as int32 bytes, computed when first asked for; of bounded size."""

    def __init__(self, compute, **fixed):
        super().__init__(fixed)
        self._compute, self._fixed = compute, fixed

    def __missing__(self, word):
        packed = self._compute(word)
        if len(word) <= _REMEMBERED_CHARS:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
                self.update(self._fixed)
            self[word] = packed
        return packed


class WordpieceTokenizer:
    """Text -> WordPiece ids, as the original's FullTokenizer.

    "[MASK]" and the like are plain text here and never become the special token.

    Attributes:
        vocabulary: the `Vocabulary`.
        do_lower_case: whether text is lower-cased and stripped of accents.
        continues: bool [V], whether a token goes on with the word before it.
    """

    def __init__(self, vocabulary, do_lower_case=True):
        self.vocabulary = vocabulary
        self.do_lower_case = do_lower_case
        self._continuations = {token[2:]: index for token, index in vocabulary.ids.items()
                               if token.startswith("##")}
        self.continues = np.array([token.startswith("##") for token in vocabulary.tokens])
        self._max_piece = max(map(len, vocabulary.tokens))
        self._words = _Memory(self._match)
        self._chunks = _Memory(self._encode_chunk, **{_LINE_END: _pack([-1])})

    def __reduce__(self):
        return type(self), (self.vocabulary, self.do_lower_case)

    def tokens(self, ids):
        """The tokens (list of str) of `ids`."""
        return [self.vocabulary.tokens[index] for index in ids]

    def tokenize(self, text):
        """The tokens (list of str) of `text`."""
        return self.tokens(self.encode(text))

    def encode(self, text):
        """The ids (list of int) of `text`."""
        chunks = split_chunks(text.replace(_LINE_END, ""))
        return _unpack(b"".join(map(self._chunks.__getitem__, chunks)))

    def encode_lines(self, lines):
        """The ids of many lines at once.

        Args:
            lines: list of str.

        Returns:
            ids: int32 [sum of lengths], those of all lines one after another.
            lengths: int32 [len(lines)], how many each line has.
        """
        blocks = [self._encode_block(lines[start:start + _BLOCK_LINES])
                  for start in range(0, len(lines), _BLOCK_LINES)]
        blocks.append((np.zeros(0, np.int32), np.zeros(0, np.int32)))
        ids, lengths = zip(*blocks)
        return np.concatenate(ids), np.concatenate(lengths)

    def encode_with_offsets(self, text):
        """The ids of `text` and where each comes from.

        Returns:
            ids: list of int, those of `encode`.
            offsets: list of (start, end), so that `text[start:end]` reaches from the first to the
                last character that went into the piece; [UNK] covers its whole word.
        """
        ids, offsets = [], []
        for word, positions in aligned_words(text, self.do_lower_case):
            pieces = _unpack(self._words[word])
            ids += pieces
            offsets += self._piece_offsets(pieces, positions)
        return ids, offsets

    def _encode_block(self, lines):
        text = _LINE_END.join(lines)
        if text.count(_LINE_END) >= len(lines):
            text = _LINE_END.join(line.replace(_LINE_END, "") for line in lines)
        chunks = split_chunks(text.replace(_LINE_END, f" {_LINE_END} "))
        chunks.append(_LINE_END)
        ids = np.frombuffer(b"".join(map(self._chunks.__getitem__, chunks)), np.int32)
        ends = np.flatnonzero(ids < 0)
        return ids[ids >= 0], np.diff(ends, prepend=-1).astype(np.int32) - 1

    def _encode_chunk(self, chunk):
        """The packed ids of a part of the text between spaces."""
        words = split_words(chunk, self.do_lower_case)
        return b"".join(map(self._words.__getitem__, words))

    def _piece_offsets(self, pieces, positions):
        """(start, end) of each piece of a word whose characters come from `positions`."""
        if pieces == [self.vocabulary.unk_id]:
            return [(min(positions), max(positions) + 1)]
        offsets, end = [], 0
        for index in pieces:
            start = end
            end += len(self.vocabulary.tokens[index]) - (2 if start else 0)
            # Marks may have changed places, so the outermost need not stand at the ends.
            part = positions[start:end]
            offsets.append((min(part), max(part) + 1))
        return offsets

    def _match(self, word):
        """The packed ids of a word's longest pieces from left to right; [UNK] if any fails."""
        length = len(word)
        pieces, ids, start = self.vocabulary.ids, [], 0
        while start < length <= MAX_WORD_CHARS:
            for end in range(min(length, start + self._max_piece), start, -1):
                index = pieces.get(word[start:end])
                if index is not None:
                    break
            else:
                return _pack([self.vocabulary.unk_id])
            ids.append(index)
            start, pieces = end, self._continuations
        return _pack(ids or [self.vocabulary.unk_id])
