"""Tokens and ids, the special tokens, and their places in a sequence."""

import dataclasses
import hashlib
import operator
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import file_size, open_file

UNKNOWN, CLS, SEP, MASK, PADDING = "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]"
# The special tokens of BERT by their roles. The original pads with id 0, whatever token that is.
BERT_ROLES = {"unk": UNKNOWN, "cls": CLS, "sep": SEP, "mask": MASK}
ANGLE_ROLES = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
VOCAB_FILE = "vocab.txt"
# Tables of embeddings are padded to a multiple of 8 or 128; the largest to a multiple of 1,000:
# one released table, for a hundred languages, has 251,000 rows (keras-hub 0.32).
_MOST_PADDING_ROWS, _OF_LARGEST, _LARGEST = 127, 999, 200_000
# Shares of tokens that text may never become: vocabularies have a few odd ones.
_FEW_WORDS, _FEW_LETTERS = 0.01, 0.05
_LOOKED_AT = 1 << 16       # bytes


@dataclasses.dataclass(frozen=True)
class Layout:
    """The places of the special tokens in a sequence of one or two texts A and B. BERT's, [CLS] A
    [SEP] B [SEP], is (1, 1, 1); A <sep> B <sep> <cls> is (0, 1, 2) with `cls_last`.

    Lengths are ints, arrays or tensors; `pair` is 1 for two texts, 0 for one (also a bool, but not
    in tensors)."""

    before: int = 1
    between: int = 1
    after: int = 1
    cls_last: bool = False  # the sequence ends with the class token, not with a separator
    cls_between: bool = False   # the last token between two texts is the class token, too
    of_b: int = 0           # of the tokens between, how many have the second text's segment
    halves: bool = False    # each of two texts may have half of a sequence, less two tokens
    pads_left: bool = False     # texts to classify are padded on the left: the class token is last
    pad_segment: int = 0
    # Pairs that are too long are cut as by the library tokenizers, where of two long texts the
    # longer one, else the second, has the odd place.
    longest_first: bool = False
    one_segment: bool = False   # the second text has the segment of the first, 0

    def special(self, pair):
        return self.before + self.after + self.between * pair

    def room(self, max_seq_length, pair):
        return max_seq_length - self.special(pair)

    def length(self, a_length, b_length):
        """Returns the length of a whole sequence; `b_length` is 0 where there is no B."""
        return a_length + b_length + self.special(b_length > 0)

    def b_offset(self, a_length):
        """Returns the position of B's first token; A's first token is at `before`."""
        return self.before + a_length + self.between


def holds(path: str, tokens: Iterable[str]) -> bool:
    """Whether these tokens are among the first lines of a file and its last one."""
    try:
        with open_file(path, "rb") as file:
            first = file.read(_LOOKED_AT)
            file.seek(max(0, file_size(path) - 64))
            last = file.read()
    except OSError:
        return False
    lines = {*first.split(b"\n"), last.rstrip(b"\n").rpartition(b"\n")[2]}
    return {token.encode() for token in tokens} <= lines


def read_vocabulary_file(path: str, advice: str = "give the path of a vocab.txt") -> bytes:
    """Returns the bytes of a vocabulary's file, or raises InputError with advice."""
    try:
        with open_file(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"vocabulary {str(path)!r} can't be read ({error.strerror}); "
                         f"{advice}.") from error


def read_vocabulary_lines(path: str) -> tuple[bytes, list[str]]:
    """Returns the bytes and the lines of a file with one token per line. InputError if it can't be
    read, is not UTF-8 or is empty."""
    content = read_vocabulary_file(path)
    try:
        # The byte-order mark is part of no token.
        lines = content.decode("utf-8").removeprefix("\ufeff").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start)
        byte = error.start - (content.rfind(b"\n", 0, error.start) + 1)
        raise InputError(f"vocabulary {str(path)!r} is not UTF-8: line {line + 1}, "
                         f"byte {byte + 1}; save it as UTF-8.") from error
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise InputError(f"vocabulary {str(path)!r} is empty; give a vocab.txt with one token per "
                         "line.")
    return content, lines


class Vocabulary:
    """Tokens and their ids.

    Attributes:
        source: names the vocabulary in errors.
        files: {name: content} of the files that store the vocabulary.
        hash: hex SHA-256 of these contents, which identifies the vocabulary in manifests.
        special: {role: token}, without roles that have no token.
        unk_id, cls_id, sep_id, mask_id: the ids of these roles, or None.
        start_id: the first token's id in a sequence: role start, else cls.
        pad_id: the padding's id; 0 where no token has the role pad.
        special_ids: `pad_id` and all special tokens' ids but `mask_id`.
    """

    further_features: tuple[str, ...] = ()  # of a token beside its id, such as its characters
    parts: "tuple[Vocabulary, ...]" = ()    # the vocabularies that it joins, if it does
    is_open = False     # whether the network reads the letters of unknown words

    def __init__(self, tokens: Iterable[str], source: str = "the vocabulary",
                 files: Mapping[str, bytes] | None = None,
                 roles: Mapping[str, str] = BERT_ROLES, layout: Layout = Layout()):
        """`files`: None: a vocab.txt. `roles`: {role: token}, of unk, cls, sep, mask and pad.
        InputError if a special token other than padding is missing, or a token occurs twice."""
        self.tokens = list(tokens)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.size, self.source = len(self.tokens), source
        self.files = dict(files or {
            VOCAB_FILE: "".join(f"{token}\n" for token in self.tokens).encode("utf-8")})
        self.hash = hashlib.sha256(b"".join(self.files.values())).hexdigest()
        self.layout = layout
        if missing := [token for role, token in roles.items()
                       if role != "pad" and token not in self.ids]:
            raise InputError(f"{self.source} lacks {', '.join(missing)} in its {self.size} lines; "
                             "give a WordPiece vocab.txt of BERT.")
        for index, token in enumerate(self.tokens):
            # An empty line is a token that no text reaches, as in the released Chinese vocabulary.
            if token and self.ids[token] != index:
                raise InputError(f"{self.source} has {token!r} on line {index + 1} and again on "
                                 f"line {self.ids[token] + 1}; keep one of them.")
        self.special = {role: token for role, token in roles.items() if token in self.ids}
        special_ids = {role: self.ids[token] for role, token in self.special.items()}
        self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            special_ids.get(role) for role in ("unk", "cls", "sep", "mask"))
        self.pad_id = special_ids.get("pad", 0)
        self.start_id = special_ids.get("start", self.cls_id)
        self.special_ids = sorted({self.pad_id, *special_ids.values()} - {self.mask_id})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size:,} tokens)"

    @classmethod
    def from_file(cls, path: str) -> "Vocabulary":
        """Reads the vocab.txt of a WordPiece tokenizer: one token a line, whose id is the line's
        number from 0 (google-research/bert, tokenization.py, load_vocab). In PaddleNLP's files
        the number follows the token after a tab."""
        content, lines = read_vocabulary_lines(path)
        if all(line.rstrip("\r").endswith(f"\t{index}") for index, line in enumerate(lines)):
            lines = [line.rpartition("\t")[0] for line in lines]
            content = "".join(f"{line}\n" for line in lines).encode()      # as others read it
        return cls((line.strip() for line in lines), f"vocabulary {str(path)!r}",
                   {VOCAB_FILE: content})

    def is_unknown(self, ids: Any) -> Any:
        """Whether each of some ids, an integer array, is that of an unknown word: bool, alike."""
        return ids == (-1 if self.unk_id is None else self.unk_id)

    def append(self, tokens: Iterable[str]) -> None:
        """Adds tokens that the files do not store."""
        self.tokens = [*self.tokens, *tokens]
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.size = len(self.tokens)

    def agrees(self, other: "Vocabulary") -> bool:
        """Whether both have the same tokens, but for those that were added to one."""
        return all(map(operator.eq, self.tokens, other.tokens)) and (
            self.size == other.size or self.hash == other.hash)

    def describe(self) -> dict:
        """Returns size, hash, and whether the class token is last, for manifests of tasks."""
        return {"size": self.size, "sha256": self.hash,
                **({"cls_last": True} if self.layout.cls_last else {})}

    def shown_case(self) -> bool | None:
        """Whether the tokens show that text is lower-cased; None if they leave it open."""
        if self._is_cased():
            return False
        return not self.ids.keys().isdisjoint(("the", "\u2581the")) or None

    def looks_lower_case(self) -> bool:
        """Whether text is lower-cased as far as the tokens show; not letters that have no case."""
        return not self._is_cased() and (not self.has_accents() or any(
            word.lower() != word.upper() for word in self._words))

    def has_accents(self) -> bool:
        """Whether the tokens show that text keeps its accents: dropping these, as lower-casing BERT
        does, changes more than a few, such as \u00e9, a Hangul syllable or a voiced kana."""
        return self._shows(_without_accents, lambda char: not char.isascii()
                           and not unicodedata.name(char, "").startswith("CJK"))

    def _is_cased(self):
        return self._shows(str.lower, lambda char: char.lower() != char.upper())

    def _shows(self, change, concerns):
        """Whether `change` changes more than a few tokens, or of the letters that are tokens, more
        than a few that it `concerns`. Every vocabulary that was learned from text holds its
        letters; words that a user added do not show how text is read."""
        words = self._words
        letters = [word for word in words if len(word) == 1 and concerns(word)]
        return any(sum(change(token) != token for token in tokens) > few for tokens, few in (
            (words, _FEW_WORDS * self.size), (letters, _FEW_LETTERS * len(letters))))

    @property
    def _words(self):
        """The tokens of letters, and marks on them, without what begins or continues a word."""
        special = set(self.special.values())
        words = [token.removeprefix("##").removeprefix("\u2581") for token in self.tokens
                 if token not in special]
        return [word for word in words if word and (
            word.isalpha() or {unicodedata.category(char)[0] for char in word} <= {"L", "M"})]


def is_unused(token: str) -> bool:
    """Whether a token is a free slot of Google's vocabularies, such as "[unused1]"."""
    return re.fullmatch(r"\[unused\d+\]", token) is not None


def _without_accents(text):
    return "".join(char for char in unicodedata.normalize("NFD", text)
                   if unicodedata.category(char) != "Mn")


def has_rows(vocab_size: int, tokens: int) -> bool:
    """Returns whether a table of `vocab_size` rows is of a vocabulary of so many tokens."""
    most = _OF_LARGEST if vocab_size > _LARGEST else _MOST_PADDING_ROWS
    return 0 <= vocab_size - tokens <= most


def check_fits(vocabulary: Vocabulary, vocab_size: int, source: str = "the vocabulary") -> None:
    """Raises InputError, which names the vocabulary `source`, if a model was not trained with it:
    the model has a row for every token and at most 127 more, as tables padded to a multiple of 128
    have, or 999 more in a table of over 200,000 rows."""
    if not has_rows(vocab_size, vocabulary.size):
        raise InputError(f"{source} has {vocabulary.size:,} tokens, but the model has "
                         f"{vocab_size:,}; give the vocabulary that the model was trained with, "
                         "or rows for new words (bert-convert-checkpoint --vocab_file), or for a "
                         f"new model a configuration with vocab_size {vocabulary.size}.")
