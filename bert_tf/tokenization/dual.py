"""Texts whose words are each split with one of two vocabularies (arXiv:1909.11687, section 3.1)."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.errors import InputError
from bert_tf.tokenization.base import Tokenizer, open_tokenizer
from bert_tf.tokenization.vocabulary import VOCAB_FILE, Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

# The prefix of the second vocabulary's tokens.
_SECOND = "second:"


class DualVocabulary(Vocabulary):
    """The tokens of a vocabulary with the special tokens, then a second vocabulary's."""

    def __init__(self, parts: Sequence[Vocabulary]):
        first, second = self.parts = tuple(parts)
        super().__init__(
            [*first.tokens, *(token and _SECOND + token for token in second.tokens)],
            files={VOCAB_FILE: first.files[VOCAB_FILE], f"second_{VOCAB_FILE}":
                   second.files[VOCAB_FILE]})

    def is_unknown(self, ids):
        first, second = self.parts
        return first.is_unknown(ids) | second.is_unknown(ids - first.size)


class DualTokenizer(Tokenizer):
    """WordPiece that splits each word with the second of two vocabularies with probability
    `second_share`. The draws are a function of the lines that are encoded together."""

    name = "dual_wordpiece"
    setting_names = ("second_share", *WordpieceTokenizer.setting_names)

    def __init__(self, vocabulary: DualVocabulary, do_lower_case: bool = True,
                 second_share: float = 0.5, **settings: Any):
        if not 0 <= second_share <= 1:
            raise InputError(f"--second_share is {second_share}; it must be from 0 to 1.")
        self._parts = [WordpieceTokenizer(part, do_lower_case, **settings)
                       for part in vocabulary.parts]
        super().__init__(vocabulary, do_lower_case, second_share=second_share,
                         **self._parts[0].settings)

    @classmethod
    def open(cls, path: str, second: str, do_lower_case: bool | None, second_share: float
             ) -> "DualTokenizer":
        """Opens two vocab.txt files. The files next to the first say how words are split."""
        parts: list[Tokenizer] = []
        for flag, name in (("vocab_file", path), ("second_vocab_file", second)):
            tokenizer = open_tokenizer(name, do_lower_case)
            do_lower_case = tokenizer.do_lower_case
            if tokenizer.name != "wordpiece":
                raise InputError(f"--{flag}: {name} is not a WordPiece vocab.txt, and only "
                                 "WordPiece vocabularies can be mixed; name one.")
            parts.append(tokenizer)
        vocabulary, first = DualVocabulary([part.vocabulary for part in parts]), parts[0]
        return cls(vocabulary, first.do_lower_case, second_share, **{
            name: first.settings[name] for name in WordpieceTokenizer.setting_names
            if name in first.settings})

    @property
    def plain(self):
        return self._parts[0]

    def encode_lines(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        words = list(map(self._parts[0].split, lines))
        flat = [word for line in words for word in line]
        seed = zlib.crc32("\n".join(lines).encode("utf-8", "surrogatepass"))
        draws = np.random.default_rng(seed).random(len(flat))                     # [W]
        chosen = (draws < self.settings["second_share"]).astype(np.int64)
        encoded = [part.encode_lines(flat) for part in self._parts]
        sizes = np.array([lengths for _, lengths in encoded]).reshape(2, -1)      # [2, W]
        ids = np.concatenate([encoded[0][0], encoded[1][0] + self._parts[0].vocabulary.size])
        starts = np.cumsum(sizes).reshape(2, -1) - sizes
        row = np.arange(len(flat))
        starts, sizes = starts[chosen, row], sizes[chosen, row]
        places = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        ends = np.concatenate([[0], np.cumsum(sizes)])[np.cumsum([0, *map(len, words)])]
        return ids[places].astype(np.int32), np.diff(ends).astype(np.int32)     # [T], [lines]

    def _continues(self, token):
        return token.removeprefix(_SECOND).startswith("##")
