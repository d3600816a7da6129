"""Byte-level BPE of GPT-2 and RoBERTa (arXiv:1907.11692), as fairseq's gpt2_bpe_utils.py. A word is
a sequence of bytes; neighbours are merged in the order of the learned pairs."""

import functools
import heapq
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import is_file, parse_json
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.encoding import Memory, as_bytes, encode_blocks, from_bytes, whole
from bert_tf.tokenization.vocabulary import ANGLE_ROLES, Layout, Vocabulary, read_vocabulary_file
from bert_tf.tokenization.wordpiece import members

VOCAB_FILE, MERGES_FILE = "vocab.json", "merges.txt"
# The same two files under GPT-2's names, and fairseq's list that gives the order of the ids.
_GPT2_FILES = ("encoder.json", "vocab.bpe")
_FAIRSEQ_FILE = "dict.txt"
_KINDS = ((ANGLE_ROLES, Layout(1, 2, 1)), ({"sep": "<|endoftext|>"}, Layout(0, 0, 1)))

# Unicode's property White_Space; str.isspace holds more.
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = ("'s|'t|'re|'ve|'m|'ll|'d| ?[{letters}]+| ?[{numbers}]+| ?[^{spaces}{letters}{numbers}]+"
         "|[{spaces}]+(?![^{spaces}])|[{spaces}]+")
_ASCII_WORD = re.compile(_WORD.format(letters="A-Za-z", numbers="0-9", spaces="\t\n\v\f\r "))
# White space at which a line can't simply be cut: all but single blanks.
_ODD_SPACE = re.compile(f"[{_SPACES.replace(' ', '')}]|  ")
BOUNDARY = re.compile(f"(?<=[^{_SPACES}]) (?=[^{_SPACES}])")
_LINE_START = "\ud800"      # no valid text holds a surrogate


def byte_characters() -> list[str]:
    """Returns the printable character that files write for each of the 256 bytes."""
    own = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in own else next(others)) for byte in range(256)]


_CHARACTERS = byte_characters()
_BY_CODE = dict(enumerate(_CHARACTERS))
_BYTES = {character: byte for byte, character in enumerate(_CHARACTERS)}
_BLANK = _CHARACTERS[ord(" ")]


@functools.cache
def _any_word():
    def of_category(first):
        codes = [ord(char) for char in members(lambda c: unicodedata.category(c)[0] == first)]
        known = set(codes)
        starts = [code for code in codes if code - 1 not in known]
        ends = [code for code in codes if code + 1 not in known]
        return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in zip(starts, ends))

    return re.compile(_WORD.format(letters=of_category("L"), numbers=of_category("N"),
                                   spaces=_SPACES))


def find_words(text: str) -> Iterator[re.Match]:
    """Finds the words of `text`, which make up all of it. Most begin with the blank before them."""
    return (_ASCII_WORD if text.isascii() else _any_word()).finditer(text)


def spell(word: str) -> list[str]:
    """Returns the bytes of a word as printable characters; half a surrogate pair becomes U+FFFD."""
    return list(whole(word).encode("utf-8").decode("latin-1").translate(_BY_CODE))


def _unspell(token):
    """Inverts `spell`: the bytes of a token, or of its text where a character means no byte."""
    if _BYTES.keys() >= set(token):
        return bytes(map(_BYTES.__getitem__, token))
    return token.encode("utf-8", "replace")


def read_bpe_file(path: str) -> bytes:
    return read_vocabulary_file(
        path, f"BPE has {VOCAB_FILE} and {MERGES_FILE} in one folder: name the first")


class ByteBpeTokenizer(Tokenizer):
    """Text -> ids of byte-level BPE. Special tokens such as "<mask>" are plain text here."""

    name, word_prefix, blank = "byte_bpe", " ", _BLANK
    has_choice_of_case = False
    library_class = "PreTrainedTokenizerFast"       # transformers' class of GPT-2 ends no sequence
    setting_names = ("add_prefix_space",)

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = False,
                 add_prefix_space: bool = False):
        """`do_lower_case` has no effect: text is never lower-cased. `add_prefix_space`: whether a
        text that begins without a blank gets one (transformers)."""
        super().__init__(vocabulary, **({"add_prefix_space": True} if add_prefix_space else {}))
        if "cls" in vocabulary.special:
            self.library_class = "RobertaTokenizer"
        special = set(vocabulary.special.values())
        pairs = read_merges(vocabulary.files[MERGES_FILE])
        # Text never becomes a special token, even if merges would spell it.
        self._ranks = {pair: rank for rank, pair in enumerate(pairs)
                       if "".join(pair) not in special}
        self._words = Memory(lambda word: as_bytes(map(
            vocabulary.ids.__getitem__, merge_pairs(spell(word), self._ranks))))
        self._chunks = Memory(self._encode_chunk)

    def library_settings(self):
        return {"add_prefix_space": False, **super().library_settings()}

    @staticmethod
    def read_vocabulary(path):
        """Reads a vocab.json with its merges.txt, or GPT-2's encoder.json with its vocab.bpe. If
        fairseq's dict.txt is there too, it gives the order of the ids."""
        folder, name = os.path.split(path)
        content, merges_name = read_bpe_file(path), MERGES_FILE
        tokens = read_tokens(content, path)
        if name == _GPT2_FILES[0]:
            merges_name, ordered = _GPT2_FILES[1], os.path.join(folder, _FAIRSEQ_FILE)
            if is_file(ordered):
                tokens = _fairseq_tokens(tokens, ordered)
                content = json.dumps({token: index for index, token in enumerate(tokens)}).encode()
        merges = read_bpe_file(os.path.join(folder, merges_name))
        check_merges(tokens, merges, os.path.join(folder, merges_name))
        return make_vocabulary(tokens, f"vocabulary {path!r}", content, merges)

    def encode_lines(self, lines):
        return self.encode_parts(list(map(self.at_start, lines)))

    def encode_parts(self, parts):
        return encode_blocks(parts, BOUNDARY, self._encode_block)

    def encode_with_offsets(self, text, trim=True):
        """See `Tokenizer`. A token covers every character that it holds a byte of, so offsets may
        overlap. `trim` leaves out the blanks before a token."""
        ids, offsets, whole = [], [], self.at_start(text)
        shift = len(text) - len(whole)
        for word in find_words(whole):
            pieces = from_bytes(self._words[word.group()])
            ids += pieces
            sources = [place for place, char in enumerate(word.group(), word.start() + shift)
                       for _ in spell(char)]
            end = 0
            for piece in self.tokens(pieces):
                start, end = end, end + len(piece)
                first, last = sources[start], sources[end - 1] + 1
                blanks = len(piece) - len(piece.lstrip(_BLANK)) if trim else 0
                offsets.append((max(min(first + blanks, last), 0), last))
        return ids, offsets

    def at_start(self, text):
        needs_blank = text and self.settings and not text.startswith(" ")
        return f" {text}" if needs_blank else text

    def _join(self, ids):
        special = {*self.vocabulary.special.values()}
        return b"".join(token.encode() if token in special else _unspell(token)
                        for token in self.tokens(ids)).decode("utf-8", "replace")

    def readable(self, index):
        """See `Tokenizer`; a part of a character is shown as U+FFFD."""
        return self._join([index])

    def _continues(self, token):
        return not token.startswith((_BLANK, "madeupword"))

    def _encode_block(self, lines):
        text = _LINE_START + f" {_LINE_START}".join(lines)
        if text.count(_LINE_START) > len(lines):
            return self._encode_block(list(map(whole, lines)))
        if _ODD_SPACE.search(text):
            chunks = []
            for line in lines:
                line = _LINE_START + line
                chunks += [line] if _ODD_SPACE.search(line) else line.split(" ")
        else:
            chunks = text.split(" ")
        ids = np.frombuffer(b"".join(map(self._chunks.__getitem__, chunks)), np.int32)
        starts = np.flatnonzero(ids < 0)
        return ids[ids >= 0], np.diff(starts, append=len(ids)).astype(np.int32) - 1

    def _encode_chunk(self, chunk):
        """The packed ids of the text from one single blank to the next; -1 begins a line."""
        start, text = b"", f" {chunk}"
        if chunk.startswith(_LINE_START):
            start, text = as_bytes([-1]), chunk[1:]
        return start + b"".join(self._words[word.group()] for word in find_words(text))


def merge_pairs(symbols: list[str], ranks: Mapping[tuple[str, ...], int]) -> list[str]:
    """Merges the pair of the lowest rank, at all places from left to right, and so on."""
    count = len(symbols)
    before, after = list(range(-1, count - 1)), list(range(1, count + 1))
    heap = [(ranks[pair], place) for place, pair in enumerate(zip(symbols, symbols[1:]))
            if pair in ranks]
    heapq.heapify(heap)
    while heap:
        rank, places = heap[0][0], []
        while heap and heap[0][0] == rank:
            places.append(heapq.heappop(heap)[1])
        for place in places:
            right = after[place]
            if (not symbols[place] or right == count
                    or ranks.get((symbols[place], symbols[right])) != rank):
                continue        # a neighbour was merged in the meantime
            symbols[place] += symbols[right]
            symbols[right] = ""
            after[place] = right = after[right]
            if right < count:
                before[right] = place
            for left in (before[place], place):
                if left >= 0 and after[left] < count:
                    new = ranks.get((symbols[left], symbols[after[left]]))
                    if new is not None:
                        heapq.heappush(heap, (new, left))
    return list(filter(None, symbols))


def make_vocabulary(tokens: Sequence[str], source: str, ids: bytes, merges: bytes) -> Vocabulary:
    """Makes the vocabulary from the contents of vocab.json (`ids`) and merges.txt. InputError,
    which names `source`, if it has the special tokens of neither RoBERTa nor GPT-2, or lacks a byte
    or the result of a merge."""
    known = set(tokens)
    kinds = [kind for kind in _KINDS if known.issuperset(kind[0].values())]
    if not kinds:
        raise InputError(f"{source} has neither the special tokens of RoBERTa "
                         f"({', '.join(ANGLE_ROLES.values())}) nor <|endoftext|> of GPT-2; give "
                         "the vocab.json of one of these.")
    for token in (*_CHARACTERS, *map("".join, read_merges(merges))):
        if token not in known:
            raise InputError(f"{source} lacks {token!r}, which is a byte or the result of a merge "
                             f"in {MERGES_FILE}; give both files of one tokenizer.")
    return Vocabulary(tokens, source, {VOCAB_FILE: ids, MERGES_FILE: merges}, *kinds[0])


def read_tokens(content: bytes, path: str) -> list[str]:
    """The tokens of a vocab.json in the order of their ids; InputError if these aren't 0, 1, ..."""
    ids = parse_json(content, f"vocabulary {path!r}")
    if not all(type(index) is int for index in ids.values()) or sorted(
            ids.values()) != list(range(len(ids))):
        raise InputError(f"vocabulary {path!r} must be a JSON object of tokens with the ids 0, 1, "
                         "2, ...; give the vocab.json of a byte-level BPE.")
    return sorted(ids, key=ids.__getitem__)


def check_merges(tokens: Sequence[str], content: bytes, path: str, end: str = "") -> None:
    """Raises InputError unless a merges.txt is whole: its lines are pairs, which give all tokens
    but single characters, marks such as <s> and [MASK], and one in a hundred. `end`: of the last
    piece of a word."""
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text; give the merges.txt that belongs to the "
                         "vocabulary.") from error
    for number, line in enumerate(lines, 1):
        if len(line.split()) not in (0, 2) and not line.startswith("#version"):
            raise InputError(f"{path}, line {number}: {line[:40]!r} is not a pair of pieces; give "
                             "the whole file that belongs to the vocabulary.")
    merged = set(map("".join, read_merges(content)))
    lost = [token for token in tokens if len(token.removesuffix(end)) > 1 and token not in merged
            and not (token[0] in "<[" and token[-1] in ">]" or token.startswith("madeupword"))]
    if len(lost) > len(tokens) // 100:
        raise InputError(f"{path} has no merge for {len(lost):,} of {len(tokens):,} tokens, such "
                         f"as {lost[0]!r}; give the whole file that belongs to the vocabulary.")


def read_merges(content: bytes) -> list[tuple[str, ...]]:
    """Returns the pairs of merges.txt in the order of merging."""
    lines = content.decode("utf-8", "replace").split("\n")
    return [tuple(line.split()) for line in lines[lines[0].startswith("#version"):]
            if len(line.split()) == 2]


def _fairseq_tokens(tokens, path):
    """The tokens in the order of fairseq's dict.txt, whose lines are "GPT-2's id" "count"."""
    listed = []
    for number, line in enumerate(read_bpe_file(path).decode("utf-8", "replace").splitlines(), 1):
        name = line.rpartition(" ")[0]
        if name.isdecimal() and int(name) < len(tokens):
            listed.append(tokens[int(name)])
        elif name.startswith("madeupword"):
            listed.append(name)
        else:
            raise InputError(f"{path}, line {number}: {line!r} is not an id of GPT-2 and a count; "
                             "give the dict.txt of RoBERTa.")
    first = [ANGLE_ROLES[role] for role in ("cls", "pad", "sep", "unk")]
    return [*first, *listed, ANGLE_ROLES["mask"]]
