"""WordPiece, exactly as in google-research/bert, tokenization.py. The ids of words are remembered:
a block of lines takes one split, one dictionary look-up a word and one join of bytes."""

import functools
import itertools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bert_tf.errors import InputError
from bert_tf.tokenization import encoding
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.encoding import Memory, as_bytes, encode_blocks, from_bytes
from bert_tf.tokenization.vocabulary import BERT_ROLES, Vocabulary, holds

MAX_WORD_CHARS = 200             # a longer word is [UNK]
_LINE_END = "\0"                 # no text holds it once cleaned

_CJK_BLOCKS = "".join(f"{chr(first)}-{chr(last)}" for first, last in (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)))
_IS_CJK = re.compile(f"[{_CJK_BLOCKS}]").match
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


# The original's classes of characters, by the running Python's unicodedata.

def is_deleted(char: str) -> bool:
    """Whether cleaning drops `char`: controls, formats and U+FFFD, but not tabs and line ends."""
    return char == "\ufffd" or (unicodedata.category(char) in ("Cc", "Cf") and char not in "\t\n\r")


def is_category_c(char: str) -> bool:
    """Whether `char` is one of `is_deleted`, or a private, unassigned or surrogate code point."""
    return is_deleted(char) or (unicodedata.category(char).startswith("C") and char not in "\t\n\r")


def is_cjk(char: str) -> bool:
    """Whether `char` is an ideograph, which is a word of its own."""
    return _IS_CJK(char) is not None


def is_punctuation(char: str) -> bool:
    """Whether words end before and after `char`: ASCII symbols and all of category P."""
    return char in _ASCII_PUNCTUATION or unicodedata.category(char).startswith("P")


def is_mark(char: str) -> bool:
    """Whether `char` is an accent, which lower-casing vocabularies drop after NFD."""
    return unicodedata.category(char) == "Mn"


def members(predicate: Callable[[str], bool]) -> list[str]:
    """The characters that satisfy `predicate`, in order. Takes a tenth of a second or more."""
    return [char for char in map(chr, range(sys.maxunicode + 1)) if predicate(char)]


class _Table(dict):
    """Code point -> replacement for `str.translate`, filled when first met."""

    def __init__(self, deleted, isolated):
        super().__init__()
        self._deleted, self._isolated = deleted, isolated

    def __missing__(self, code):
        value = char = chr(code)
        if self._deleted(char):
            value = ""
        elif self._isolated(char):
            value = f" {char} "
        self[code] = value
        return value


@functools.cache
def _cleaning(drop_category_c, tokenize_chinese_chars):
    """The table that cleans text and puts spaces around ideographs."""
    return _Table(is_category_c if drop_category_c else is_deleted,
                  is_cjk if tokenize_chinese_chars else lambda char: False)


SPLIT_CASED = _Table(lambda char: False, is_punctuation)
SPLIT_LOWER = _Table(is_mark, is_punctuation)
# All of str.split()'s separators are below U+3001. Those that are controls are deleted, not cut at.
SPACES = "".join(c for c in map(chr, range(0x3001)) if c.isspace() and not is_deleted(c))
_DELETED_SPACES = "".join(c for c in map(chr, range(0x3001)) if c.isspace() and is_deleted(c))
# Cutting text before any of these changes no word.
BOUNDARY = re.compile(f"[{re.escape(SPACES)}{_CJK_BLOCKS}]")
_SPACE = re.compile(f"[{re.escape(SPACES)}]")        # the same where ideographs are letters


def split_chunks(text: str) -> list[str]:
    """Splits `text` at spaces, before cleaning; not at controls, as `str.split()`, which go."""
    for char in _DELETED_SPACES:
        text = text.replace(char, "")
    return text.split()


def split_words(text: str, lower: bool, strip_accents: bool | None = None,
                drop_category_c: bool = False, tokenize_chinese_chars: bool = True) -> list[str]:
    """Returns the words of `text`, each a run of letters or one symbol: cleaned, lower-cased, cut
    at punctuation (the original's BasicTokenizer).

    Args:
        strip_accents: whether to drop accents; None: as lower-casing does.
        drop_category_c: whether to drop `is_category_c`.
        tokenize_chinese_chars: whether each ideograph is a word of its own (transformers).
    """
    is_plain = text.isascii() and text.isprintable()
    if not is_plain:
        text = text.translate(_cleaning(drop_category_c, tokenize_chinese_chars))
    if lower:
        # Lower-casing depends on context (final sigma), but never across a space: the text is
        # lower-cased at once.
        text = text.lower()
    if is_plain and text.isalnum():
        return [text]
    if strip_accents or lower and strip_accents is None:
        return unicodedata.normalize("NFD", text).translate(SPLIT_LOWER).split()
    return text.translate(SPLIT_CASED).split()


def aligned_words(text: str, lower: bool, strip_accents: bool | None = None,
                  drop_category_c: bool = False, tokenize_chinese_chars: bool = True
                  ) -> Iterator[tuple[str, Sequence[int]]]:
    """Yields the words of `split_words`, each with its characters' positions in `text`."""
    strips = strip_accents or lower and strip_accents is None
    table = SPLIT_LOWER if strips else SPLIT_CASED
    clean = _cleaning(drop_category_c, tokenize_chinese_chars)
    for chunk in re.finditer(f"[^{SPACES}]+", text):
        raw, start = chunk.group(), chunk.start()
        if raw.isascii() and raw.isprintable():
            for word in re.finditer(r"[A-Za-z0-9]+|.", raw.lower() if lower else raw):
                yield word.group(), range(start + word.start(), start + word.end())
            continue
        for pairs in _word_pairs(zip(raw, itertools.count(start)), clean):
            if lower:       # at once: a final sigma depends on its neighbours
                positions = [position for char, position in pairs for _ in char.lower()]
                pairs = list(zip(_text(pairs).lower(), positions))
            if strips:
                pairs = _decompose(pairs)
            for word in _word_pairs(pairs, table):
                yield _text(word), [position for _, position in word]


def _text(pairs):
    return "".join(char for char, _ in pairs)


def _word_pairs(pairs, table):
    """Translates pairs (character, position) with a table and cuts them at spaces."""
    pairs = [(new, position) for char, position in pairs for new in table[ord(char)]]
    for is_space, group in itertools.groupby(pairs, lambda pair: pair[0] == " "):
        if not is_space:
            yield list(group)


def _decompose(pairs):
    """NFD: decomposes each character, then sorts every run of marks by combining class."""
    parts = [(part, position) for char, position in pairs
             for part in unicodedata.normalize("NFD", char)]
    return [pair for _, run in itertools.groupby(
                parts, lambda pair: unicodedata.combining(pair[0]) > 0)
            for pair in sorted(run, key=lambda pair: unicodedata.combining(pair[0]))]


def project(text: str, original: str, lower: bool, **settings: bool) -> str:
    """Returns the part of `original`, words of a paragraph, whose normal form is `text`, words of
    WordPiece (get_final_text); all of it where characters can't be matched one to one."""
    normal = " ".join(split_words(original, lower, **settings))
    start = normal.find(text)
    letters = [place for place, char in enumerate(original) if char != " "]
    if not text or start < 0 or len(letters) != len(normal) - normal.count(" "):
        return original
    first = start - normal.count(" ", 0, start)
    last = first + len(text) - text.count(" ") - 1
    return original[letters[first]:letters[last] + 1]


class WordpieceTokenizer(Tokenizer):
    """Text -> WordPiece ids, as the original's FullTokenizer. Special tokens such as "[MASK]" are
    plain text here. The settings are those of `split_words`."""

    name, library_class = "wordpiece", "BertTokenizer"
    setting_names = ("strip_accents", "drop_category_c", "tokenize_chinese_chars")
    _boundary = BOUNDARY

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = True,
                 strip_accents: bool | None = None, drop_category_c: bool = False,
                 tokenize_chinese_chars: bool = True):
        if not isinstance(vocabulary, Vocabulary):
            raise InputError(f"the vocabulary is {vocabulary!r}; give a Vocabulary, such as "
                             "Vocabulary.from_file of a vocab.txt.")
        settings = {}
        if strip_accents not in (None, do_lower_case):
            settings["strip_accents"] = bool(strip_accents)
        if drop_category_c:
            settings["drop_category_c"] = True
        if not tokenize_chinese_chars:
            settings["tokenize_chinese_chars"] = False
            self._boundary = _SPACE
        super().__init__(vocabulary, do_lower_case, **settings)
        self._continuations = {token[2:]: index for token, index in vocabulary.ids.items()
                               if token.startswith("##")}
        self._max_piece = max(map(len, vocabulary.tokens))
        self._words = Memory(lambda word: as_bytes(self.match(word)))
        self._chunks = Memory(lambda chunk: b"".join(map(
            self._words.__getitem__, self.split(chunk))), **{_LINE_END: as_bytes([-1])})

    @classmethod
    def reads(cls, path):
        return holds(path, BERT_ROLES.values())

    @staticmethod
    def read_vocabulary(path):
        """See `Vocabulary.from_file`; InputError for pieces of SentencePiece."""
        vocabulary = Vocabulary.from_file(path)
        pieces = [token for token in vocabulary.tokens
                  if len(token) > 1 and token.startswith("\u2581")]
        if pieces and not any(token.startswith("##") for token in vocabulary.tokens):
            raise InputError(f"{vocabulary.source} has pieces of SentencePiece, such as "
                             f"{pieces[0]!r}, and none that begins with ##, so WordPiece would "
                             "read most words as [UNK]; take a model with a WordPiece vocabulary.")
        return vocabulary

    def library_settings(self):
        return {**super().library_settings(),
                "strip_accents": self.settings.get("strip_accents", self.do_lower_case)}

    def split(self, text: str) -> list[str]:
        return split_words(text, self.do_lower_case, **self.settings)

    def encode(self, text):
        if len(text) > encoding.BLOCK_CHARS:
            return self.encode_lines([text])[0].tolist()
        chunks = split_chunks(text.replace(_LINE_END, ""))
        return from_bytes(b"".join(map(self._chunks.__getitem__, chunks)))

    def encode_lines(self, lines):
        return encode_blocks(lines, self._boundary, self._encode_block)

    def encode_with_offsets(self, text):
        """See `Tokenizer`; [UNK] covers its whole word."""
        ids, offsets = [], []
        for word, positions in aligned_words(text, self.do_lower_case, **self.settings):
            pieces = from_bytes(self._words[word])
            ids += pieces
            offsets += self._piece_offsets(pieces, positions)
        return ids, offsets

    def excerpt(self, words, ids, before, after):
        """See `Tokenizer`; finds an answer's text as google-research/bert run_squad.py does."""
        tokens = " ".join(self.tokens(ids)).replace(" ##", "").replace("##", "")
        return project(" ".join(tokens.split()), " ".join(words), self.do_lower_case,
                       **self.settings)

    def fold(self, char):
        text = char.translate(_cleaning("drop_category_c" in self.settings,
                                        "tokenize_chinese_chars" not in self.settings))
        if text.isspace():
            text = " "
        elif self.do_lower_case:
            text = text.lower()
        if self.settings.get("strip_accents", self.do_lower_case):
            text = "".join(itertools.filterfalse(is_mark, unicodedata.normalize("NFD", text)))
        return text

    def _continues(self, token):
        return token.startswith("##")

    def _encode_block(self, lines):
        text = _LINE_END.join(lines)
        if text.count(_LINE_END) >= len(lines):
            text = _LINE_END.join(line.replace(_LINE_END, "") for line in lines)
        chunks = split_chunks(text.replace(_LINE_END, f" {_LINE_END} "))
        chunks.append(_LINE_END)
        ids = np.frombuffer(b"".join(map(self._chunks.__getitem__, chunks)), np.int32)
        ends = np.flatnonzero(ids < 0)
        return ids[ids >= 0], np.diff(ends, prepend=-1).astype(np.int32) - 1

    def _piece_offsets(self, pieces, positions):
        """The (start, end) of each piece of a word whose characters are at `positions`."""
        if pieces == [self.vocabulary.unk_id]:
            return [(min(positions), max(positions) + 1)]
        offsets, end = [], 0
        for index in pieces:
            start = end
            end += len(self.vocabulary.tokens[index]) - 2 * (start > 0)
            # Marks may have changed places, so the outermost characters need not be at the ends.
            part = positions[start:end]
            offsets.append((min(part), max(part) + 1))
        return offsets

    def match(self, word, continues=False):
        """Returns the ids, a list, of the longest pieces, from left to right, of a word, or of what
        `continues` one; [UNK] if none fits."""
        length, ids, start = len(word), [], 0
        pieces = self._continuations if continues else self.vocabulary.ids
        while start < length <= MAX_WORD_CHARS:
            for end in range(min(length, start + self._max_piece), start, -1):
                index = pieces.get(word[start:end])
                if index is not None:
                    break
            else:
                return [self.vocabulary.unk_id]
            ids.append(index)
            start, pieces = end, self._continuations
        return ids or [self.vocabulary.unk_id]
