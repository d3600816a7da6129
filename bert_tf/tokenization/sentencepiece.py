"""SentencePiece: the library cuts what each model prepares in its own way. Originals:
google-research/albert, tokenization.py (preprocess_text, encode_pieces); zihangdai/xlnet,
prepro_utils.py; seqio's SentencePieceVocabulary (T5); microsoft/DeBERTa, spm_tokenizer.py."""

import dataclasses
import itertools
import math
import re
import string
import struct
import unicodedata

import numpy as np
import sentencepiece

from bert_tf.errors import InputError
from bert_tf.tokenization import vocabulary as vocabularies
from bert_tf.tokenization.base import MODEL_FILE, Tokenizer, check_ids
from bert_tf.tokenization.encoding import encode_blocks, whole
from bert_tf.tokenization.vocabulary import BERT_ROLES, MASK, PADDING, Layout, Vocabulary

BLANK = "\u2581"                # begins a piece that begins a word
_BOUNDARY = re.compile(" ")
_CHARACTER, _QUOTED = re.compile(r"."), re.compile("``|''|.")
# Types of pieces in the model's protocol buffer: no text becomes a control piece.
_CONTROL, _USER_DEFINED = 3, 4
# The punctuation of _is_start_piece_sp in ALBERT's create_pretraining_data.py lacks ' < = >.
_MARKS = frozenset(string.punctuation) - frozenset("'<=>")
_INSIDE = _MARKS | frozenset(string.ascii_letters)


@dataclasses.dataclass(frozen=True)
class Style:
    """A model's own conventions around SentencePiece."""

    roles: dict
    layout: Layout
    library_class: str
    prepares: bool = False  # text is prepared, numbers are cut off before commas, as in ALBERT
    # Such a number loses the blank that cutting it alone adds (XLNet; ALBERT's code for it has no
    # effect in Python 3).
    strips: bool = False
    quotes: bool = False    # two backquotes, or two apostrophes, become one quotation mark
    # A piece with a character that is neither a mark nor a letter begins a word.
    by_letters: bool = False
    appended: tuple[str, ...] = ()  # pieces that follow the file's, if this lacks them
    appended_type: int = _USER_DEFINED
    file: str = MODEL_FILE  # the usual name of the model's file

    def continues(self, piece: str) -> bool:
        if not self.prepares:
            return not piece.startswith(BLANK)
        return not (piece.startswith((BLANK, "<")) or piece in _MARKS
                    or (self.by_letters and not _INSIDE.issuperset(piece)))


ALBERT = Style({"unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "pad": "<pad>"},
               Layout(1, 1, 1), "AlbertTokenizer", prepares=True, by_letters=True)
# Sequences are padded with <unk>, id 0; <pad> and <mask> are not used.
XLNET = Style({"unk": "<unk>", "cls": "<cls>", "sep": "<sep>", "mask": "<mask>", "eod": "<eod>"},
              Layout(0, 1, 2, cls_last=True, pads_left=True, pad_segment=4), "XLNetTokenizer",
              prepares=True, strips=True, quotes=True)
T5 = Style({"unk": "<unk>", "sep": "</s>", "pad": "<pad>"}, Layout(0, 0, 1), "T5Tokenizer",
           appended=tuple(f"{BLANK}<extra_id_{number}>" for number in reversed(range(100))))
# transformers' own class for it reads no tokenizer.json, and changes characters in another way.
DEBERTA = Style(BERT_ROLES | {"pad": PADDING}, Layout(longest_first=True),
                "PreTrainedTokenizerFast", appended=(MASK,), appended_type=_CONTROL,
                file="spm.model")
_STYLES = {"ALBERT": ALBERT, "XLNet": XLNET, "T5": T5, "DeBERTa": DEBERTA}


def prepare(text: str, lower: bool, quotes: bool = False, keep_accents: bool = False) -> str:
    """Joins blanks, two-character quotation marks if `quotes` (XLNet), drops accents after NFKD
    unless `keep_accents` (transformers), and lower-cases if wanted (ALBERT's preprocess_text)."""
    text = " ".join(text.split())
    if quotes:
        text = text.replace("``", '"').replace("''", '"')
    if not (keep_accents or text.isascii()):
        text = "".join(char for char in unicodedata.normalize("NFKD", text)
                       if not unicodedata.combining(char))
    return text.lower() if lower else text


def _prepare_with_spans(text, lower, quotes, keep_accents=False):
    """Returns `prepare`'s text, and the (start, end) that each of its characters comes from."""
    chars, spans = [], []
    for word in re.finditer(r"\S+", text):
        if chars:
            chars.append(" ")
            spans.append((word.start() - 1, word.start()))
        for match in (_QUOTED if quotes else _CHARACTER).finditer(word.group()):
            parts = prepare(match.group(), False, quotes, keep_accents)
            chars += parts
            spans += [(word.start() + match.start(), word.start() + match.end())] * len(parts)
    prepared = "".join(chars)
    if not lower:
        return prepared, spans
    # With accents, a capital I with a dot becomes two characters.
    return prepared.lower(), [span for char, span in zip(chars, spans) for _ in char.lower()]


class SentencepieceTokenizer(Tokenizer):
    """Text -> ids of SentencePiece. Special tokens such as "[MASK]" are plain text. "<extra_id_0>"
    at the beginning of a word becomes T5's sentinel, as in the original."""

    name, blank = "sentencepiece", BLANK
    setting_names = ("keep_accents", "join_quotes")

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = False,
                 keep_accents: bool = False, join_quotes: bool = False):
        """The settings have no effect for T5. `join_quotes`: whether ALBERT's text is read with the
        quotation marks of XLNet's (transformers)."""
        self._style = style = _style_of(vocabulary.tokens)
        self.has_choice_of_case, self.library_class = style.prepares, style.library_class
        joins = join_quotes and style.prepares and not style.quotes
        asked = {"keep_accents": keep_accents and style.prepares, "join_quotes": joins}
        super().__init__(vocabulary, do_lower_case and style.prepares,
                         **{name: True for name, is_on in asked.items() if is_on})
        self._changes = {"quotes": style.quotes or joins,
                         "keep_accents": "keep_accents" in self.settings}
        self._model = _load(vocabulary.files[style.file], style.appended, style.appended_type)
        # Pieces that are cut apart, and the ids that they become.
        self._parts = self._cut_before_commas() if self._style.prepares else {}
        self._cut = {index: tuple(map(self._model.piece_to_id, parts))
                     for index, parts in self._parts.items()}
        counts = np.ones(vocabulary.size, np.int64)
        counts[list(self._cut)] = [len(ids) for ids in self._cut.values()]
        self._counts = counts

    @staticmethod
    def read_vocabulary(path):
        content = vocabularies.read_vocabulary_file(path, f"give the path of a {MODEL_FILE}")
        try:
            return make_vocabulary(content, f"vocabulary {path!r}")
        except RuntimeError as error:
            raise InputError(f"vocabulary {path!r} is not a model of SentencePiece; give the path "
                             f"of a {MODEL_FILE}.") from error

    def library_settings(self):
        """See `Tokenizer`. A file that does not say it is transformers', which joins quotes."""
        return {"join_quotes": False, **super().library_settings()}

    def encode_lines(self, lines):
        return encode_blocks(lines, _BOUNDARY, self._encode_block)

    def encode_with_offsets(self, text):
        """See `Tokenizer`. Pieces may share a character that the model's normalization splits."""
        ids, _, offsets = self._pieces(text)
        return ids, offsets

    def _shown(self, ids, skip_special):
        """See `Tokenizer`. Of T5, the tokens up to the first </s> (seqio's `Vocabulary.decode`)."""
        if not self.has_sentinels:
            return super()._shown(ids, skip_special)
        check_ids(ids, math.inf)        # a network may have more rows than there are tokens
        end = self.vocabulary.sep_id
        return ids[:ids.index(end) + 1] if end in ids else ids

    def _join(self, ids):
        size = self._model.get_piece_size()
        return self._model.decode([index if index < size else self.vocabulary.unk_id
                                   for index in ids])

    @property
    def has_sentinels(self) -> bool:
        """Whether it is T5's, with <extra_id_0> and the like."""
        return self._style is T5

    @property
    def prepares(self) -> bool:
        return self._style.prepares

    @property
    def scores(self) -> list[float]:
        """The score of each piece, the sentinels' included."""
        return list(map(self._model.get_score, range(self._model.get_piece_size())))

    @property
    def control_pieces(self) -> list[str]:
        """The pieces that no text becomes, or only unknown text."""
        return [piece for index, piece in enumerate(self.vocabulary.tokens)
                if self._model.is_control(index) or self._model.is_unknown(index)]

    def encode_with_surfaces(self, text: str) -> tuple[list[int], list[str]]:
        """The ids of `text`, and each token's text, unknown ones too, with a blank before words."""
        ids, pieces, _ = self._pieces(text)
        return ids, [piece.replace(BLANK, " ") for piece in pieces]

    def word_starts(self, text: str) -> list[bool]:
        """Whether each token of `text`, also an unknown one, begins a word (ALBERT)."""
        return [not self._continues(piece) for piece in self._pieces(text)[1]]

    def continuations(self, lines, ids, lengths):
        goes_on = super().continuations(lines, ids, lengths)
        if self._style.prepares:
            ends = np.cumsum(lengths)
            unknown = np.searchsorted(ends, np.flatnonzero(ids == self.vocabulary.unk_id), "right")
            for line in np.unique(unknown):
                goes_on[ends[line] - lengths[line]:ends[line]] = np.logical_not(
                    self.word_starts(lines[line]))
        return goes_on

    def fold(self, char):
        if char.isspace() or not self._style.prepares:
            return unicodedata.normalize("NFKC", char)
        return prepare(char, self.do_lower_case, **self._changes)

    def is_blank(self, line):
        if not self._style.prepares:
            return super().is_blank(line)
        return not prepare(line, False, **self._changes)

    def _continues(self, token):
        return self._style.continues(token)

    def _encode_block(self, lines):
        texts = list(lines)
        if self._style.prepares:
            texts = [prepare(line, self.do_lower_case, **self._changes) for line in lines]
        encoded = self._run(texts, "numpy")
        ids = np.concatenate(encoded).astype(np.int32, copy=False)
        lengths = np.fromiter(map(len, encoded), np.int32, len(encoded))
        if self._cut:
            counts = self._counts[ids]
            if counts.max(initial=1) > 1:
                line = np.repeat(np.arange(len(lengths)), lengths)
                lengths = np.bincount(line, counts, len(lengths)).astype(np.int32)
                cut = self._cut
                ids = np.fromiter(itertools.chain.from_iterable(
                    cut.get(index, (index,)) for index in ids.tolist()), np.int32, counts.sum())
        return ids, lengths

    def _run(self, texts, return_type):
        try:
            return self._model.encode(texts, return_type=return_type, num_threads=1)
        except (RuntimeError, TypeError):       # half of a surrogate pair
            texts = list(map(whole, texts)) if isinstance(texts, list) else whole(texts)
            return self._model.encode(texts, return_type=return_type, num_threads=1)

    def _pieces(self, text):
        """Returns a text's ids, its pieces (unknown ones as written) and their offsets."""
        prepared, spans = text, [(index, index + 1) for index in range(len(text))]
        if self._style.prepares:
            prepared, spans = _prepare_with_spans(text, self.do_lower_case, **self._changes)
        encoded = self._run(prepared, "offset_mapping")
        ids, pieces, offsets = [], [], []
        for index, piece, (start, end) in zip(*map(encoded.get, ("ids", "pieces", "offsets"))):
            while start < end and prepared[start].isspace():
                start += 1
            parts = self._cut.get(index, (index,))
            # The comma is the last character; only odd models split the text before it.
            bounds = [(start, end)]
            if len(parts) > 1:
                bounds = [*[(start, end - 1)] * (len(parts) - 1), (end - 1, end)]
            ids += parts
            pieces += self._parts.get(index, (piece,))
            for first, last in bounds:
                place = spans[last - 1][1] if last else 0
                offsets.append((spans[first][0] if first < last else place, place))
        return ids, pieces, offsets

    def _cut_before_commas(self):
        """{id: pieces} of the pieces that end in a digit and a comma: the number, and the comma."""
        def cut(token):
            pieces = self._model.encode(token[:-1].replace(BLANK, ""), out_type=str)
            if self._style.strips and not token.startswith(BLANK):
                pieces = [*filter(None, [pieces[0].removeprefix(BLANK)]), *pieces[1:]]
            return *pieces, ","

        return {index: cut(token) for index, token in enumerate(self.vocabulary.tokens)
                if len(token) > 1 and token[-1] == "," and token[-2].isdigit()}


def make_vocabulary(content: bytes, source: str) -> Vocabulary:
    """Makes the vocabulary of a model file's `content`; RuntimeError if this is no SentencePiece
    model. InputError, which names `source`, if it has the special tokens of none of `_STYLES`."""
    model = _load(content)
    tokens = [model.id_to_piece(index) for index in range(model.get_piece_size())]
    style = _style_of(tokens)
    if style is None:
        raise InputError(f"{source} has the special tokens of none of " + "; ".join(
            f"{name} ({', '.join(known.roles.values())})" for name, known in _STYLES.items())
            + ". Those of XLM-RoBERTa and CamemBERT need the model's config.json beside them.")
    tokens += [piece for piece in style.appended if piece not in tokens]
    return Vocabulary(tokens, source, {style.file: content}, style.roles, style.layout)


def _style_of(tokens):
    """Returns the first style whose special tokens are all among `tokens`, or None."""
    return next((style for style in _STYLES.values()
                 if {*tokens, *style.appended}.issuperset(style.roles.values())), None)


def _load(content, appended=(), appended_type=_USER_DEFINED):
    """Loads a model from its file's bytes, with the pieces that a style appends."""
    for token in appended:
        # Fields of a protocol buffer: ModelProto.pieces (1) with piece (1), score (2), type (3).
        name = b"\x0a" + bytes([len(token.encode())]) + token.encode()
        if name not in content:
            piece = name + b"\x15" + struct.pack("<f", 0.0) + b"\x18" + bytes([appended_type])
            content += b"\x0a" + bytes([len(piece)]) + piece
    return sentencepiece.SentencePieceProcessor(model_proto=content)
