"""Byte pair encoding of GPT (openai/finetune-transformer-lm, text_utils.py).

Text is standardised, cut into words, and lower-cased; the last piece of a word ends in "</w>". The
original repairs text with ftfy and cuts it with spaCy's English rules. Here curled quotes and
ligatures are replaced as ftfy does. Of spaCy's rules those for punctuation around a word, hyphens
within it, contractions and usual abbreviations are followed. Other repairs of ftfy, and rare
abbreviations, emoticons and addresses, may give other tokens. A line break is a blank, where the
original has a token for it.
"""

import functools
import os
import re

import numpy as np

from bert_tf.files import open_file
from bert_tf.tokenization import byte_bpe
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.encoding import Memory, as_bytes, from_bytes
from bert_tf.tokenization.vocabulary import Layout, Vocabulary

END = "</w>"
# The special tokens, which the original adds after its file's tokens.
ROLES = {"start": "_start_", "sep": "_delimiter_", "cls": "_classify_"}
LAYOUT = Layout(1, 1, 1, cls_last=True, halves=True)
_ORIGINAL_FILES = ("encoder_bpe_40000.json", "vocab_40000.bpe")

# text_standardize, and ftfy's replacements of single characters.
REPLACED = {**dict.fromkeys("\u2014\u2013\u2015", "-"), "\u2026": "...", "\u00b4": "'",
             **dict.fromkeys("\u02bc\u2018\u2019\u201b", "'"), **dict.fromkeys("\u201c\u201d", '"'),
             "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl"}
# Of equal marks only these stay together in spaCy. The original means to put blanks around
# backslashes too, but writes its expression so that it does not.
_RUN = re.compile(r"(-+|~+|/+|\|+|[!\";?+,()*\[\]{}_\u00b0])")
# spaCy's rules for the text between blanks.
_PREFIX = re.compile("''|[\u00a7%=#&<>:'`$\u00a3\u20ac\u00bf\u00a1]|\\.\\.+")
_SUFFIX = re.compile(
    "('s|n't|'m|'re|'ve|'ll|'d|''|(?<!')'|[:<>#&`]|\\.\\.+|(?<=[a-z0-9%'])\\.|(?<=[0-9])(["
    "$\u00a3\u20ac%]|[cdkmn]?m|[km]?g|[kmgt]b|ft|lb|oz|kmh|mph|[ap]m))$", re.IGNORECASE)
# The full stop of a sentence that the next one follows without a blank.
STOP = r"(?<=[a-z])\.(?=[A-Z])"
_INFIX = re.compile(rf"({STOP})|(?<=[A-Za-z0-9])([:<>=])(?=[A-Za-z])|(\.\.+)")
_KEPT = frozenset(
    "mr. mrs. ms. messrs. dr. prof. st. jr. bros. vs. e.g. i.e. a.m. p.m. inc. co. corp. ltd. mt. "
    "adm. gen. gov. sen. rep. rev. jan. feb. aug. sept. oct. nov. dec. 'em".split())
# The first parts of words that are cut in two.
_JOINED = re.compile("can(?=not$)|gon(?=na$)|got(?=ta$)|(?:ai|are|ca|could|did|do|does|had|has|have"
                     "|is|should|was|were|wo|would)(?=nt$)", re.IGNORECASE)


def _spans(text):
    """Returns the (start, end) of each word of a run without blanks."""
    parts = []
    for part in _RUN.split(text):
        start = parts[-1][1] if parts else 0
        if part:
            parts.append((start, start + len(part)))
    return [span for start, end in parts for span in (
        [(start, end)] if _RUN.fullmatch(text[start:end]) else _cut(text, start, end))]


def _cut(text, start, end):
    """Cuts the text between two marks into words, as spaCy does."""
    first, last = [], []
    while start < end and text[start:end].lower() not in _KEPT:
        prefix = _PREFIX.match(text, start, end)
        # Only full stops are longer than 3 characters, before which an expression looks at one.
        near = max(len(text[start:end].rstrip(".")) + start - 4, start)
        suffix = _SUFFIX.search(text[near:end])
        if prefix and prefix.end() < end and not _SUFFIX.fullmatch(text[start:end]):
            first.append(prefix.span())
            start = prefix.end()
        elif suffix and near + suffix.start() > start and not re.fullmatch(
                r"([^\W\d]\.)+", text[start:end]):
            last.append((near + suffix.start(), end))
            end = near + suffix.start()
        else:
            break
    inside, begin = [], start
    if joined := _JOINED.match(text, start, end):
        inside, begin = [joined.span()], joined.end()
    for match in _INFIX.finditer(text, start, end):
        if begin < match.start():
            inside.append((begin, match.start()))
        inside.append(match.span())
        begin = match.end()
    return [*first, *inside, *([(begin, end)] if begin < end else []), *reversed(last)]


def expressions() -> list[str]:
    """Regular expressions that cut a lower-cased run without blanks into its words: a library
    splits a text at the matches of one after the other. The syntax is that of Oniguruma. Four
    marks at each end of a word are cut off, after runs of equal marks."""
    abbreviations = sorted(_KEPT)
    # Words that keep their full stop: usual abbreviations, and letters with full stops.
    whole = "|".join([*(f"^{re.escape(word[:-1])}" for word in abbreviations),
                      *(r"^[^\W\d]" + r"\.[^\W\d]" * count for count in range(5))])
    ends = _SUFFIX.pattern.removesuffix("$")
    last = ends.replace(r"|\.\.+", r"|(?<!\.)\.\.+").replace(
        r"(?<=[a-z0-9%'])\.", rf"(?<=[a-z0-9%'])(?<!{whole})\.")
    first = (rf"^(?!(?:{'|'.join(map(re.escape, abbreviations))})$)(?!{ends}$)(?:{_PREFIX.pattern})"
             r"(?!$)(?!(?<=\.)\.)")
    return [_RUN.pattern, *[first, rf"(?<!^){last}$"] * 4,
            f"^(?:{_JOINED.pattern})", r"(?<=[a-z0-9])[:<>=](?=[a-z])|\.\.+"]


class GptTokenizer(Tokenizer):
    """Text -> ids of GPT's byte pair encoding; an unknown piece is token 0."""

    # transformers' own class cuts words by other rules.
    name, library_class = "gpt_bpe", "PreTrainedTokenizerFast"
    has_choice_of_case = False

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = True):
        """`do_lower_case` has no effect: text is always lower-cased."""
        super().__init__(vocabulary, True)
        pairs = byte_bpe.read_merges(vocabulary.files[byte_bpe.MERGES_FILE])
        self._ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self._words = Memory(lambda word: as_bytes(
            self.vocabulary.ids.get(piece, 0) for piece in self._pieces(word)))
        self._chunks = Memory(lambda chunk: b"".join(
            self._words[word] for word, _ in self._cut_chunk(chunk)))

    @classmethod
    def reads(cls, path):
        """Whether the file holds tokens that end in "</w>"."""
        try:
            with open_file(path, "rb") as file:
                return f'{END}"'.encode() in file.read()
        except OSError:
            return False

    @staticmethod
    def read_vocabulary(path):
        """Reads vocab.json and merges.txt, or the original's files; adds absent special tokens."""
        folder, name = os.path.split(path)
        merges = os.path.join(folder, byte_bpe.MERGES_FILE)
        if name == _ORIGINAL_FILES[0]:
            merges = os.path.join(folder, _ORIGINAL_FILES[1])
        content, pairs = map(byte_bpe.read_bpe_file, (path, merges))
        tokens = byte_bpe.read_tokens(content, path)
        words = [token for token in tokens if token not in ROLES.values()]
        byte_bpe.check_merges(words, pairs, merges, END)
        tokens += [token for token in ROLES.values() if token not in tokens]
        return Vocabulary(tokens, f"vocabulary {path!r}",
                          {byte_bpe.VOCAB_FILE: content, byte_bpe.MERGES_FILE: pairs},
                          {**ROLES, "unk": tokens[0], "pad": tokens[0]}, LAYOUT)

    def encode(self, text):
        return from_bytes(b"".join(map(self._chunks.__getitem__, text.split())))

    def encode_lines(self, lines):
        rows = [b"".join(map(self._chunks.__getitem__, line.split())) for line in lines]
        ids = np.frombuffer(b"".join(rows), np.int32)
        return ids, np.array([len(row) // ids.itemsize for row in rows], np.int32)

    def encode_with_offsets(self, text):
        ids, offsets = [], []
        for chunk in re.finditer(r"\S+", text):
            for word, places in self._cut_chunk(chunk.group()):
                pieces = from_bytes(self._words[word])
                end = 0
                for piece in self._pieces(word):
                    start, end = end, end + len(piece.removesuffix(END))
                    covered = places[start:end] or places[-1:]
                    offsets.append((chunk.start() + covered[0], chunk.start() + covered[-1] + 1))
                ids += pieces
        return ids, offsets

    def _join(self, ids):
        return "".join(self.tokens(ids)).replace(END, " ").rstrip()

    def continuations(self, lines, ids, lengths):
        before = np.concatenate([[True], self._ends[ids[:-1]]])[:len(ids)]
        before[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
        return ~before

    @functools.cached_property
    def _ends(self):
        """bool [V]: whether each token ends a word. An unknown token counts as one that does."""
        return np.array([token.endswith(END) or index == self.vocabulary.unk_id
                         for index, token in enumerate(self.vocabulary.tokens)], bool)

    @staticmethod
    def _cut_chunk(chunk):
        """The lower-cased words of a run without blanks, and the places of their characters."""
        pairs = [(char, place) for place, old in enumerate(chunk)
                 for char in REPLACED.get(old, old)]
        text = "".join(char for char, _ in pairs)
        words = []
        for start, end in _spans(text):
            lowered = [(char, place) for old, place in pairs[start:end] for char in old.lower()]
            words.append(("".join(char for char, _ in lowered), [place for _, place in lowered]))
        return words

    def _pieces(self, word):
        return byte_bpe.merge_pairs([*word[:-1], word[-1] + END], self._ranks)


def split_words(text: str) -> list[str]:
    return [word for chunk in text.split() for word, _ in GptTokenizer._cut_chunk(chunk)]
