"""The WordPiece vocabulary: vocab.txt, one token a line, its id the line's number from 0."""

import dataclasses
import hashlib
import re

from bert_tf.errors import InputError

UNKNOWN, CLS, SEP, MASK, PADDING = "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]"


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where the special tokens of a sequence of one or two texts A and B stand.

    BERT is [CLS] A [SEP] B [SEP]: (1, 1, 1). RoBERTa has two separators between the texts:
    (1, 2, 1). XLNet is A <sep> B <sep> <cls>: (0, 1, 2) with `cls_last`.

    The methods do arithmetic only: lengths are ints, NumPy arrays or tensors, and `pair` is 0 or 1
    (or False or True, except in tensors) for one text or two.

    Attributes:
        before: special tokens before A.
        between: separators between A and B.
        after: special tokens after the last text.
        cls_last: whether the last token of the sequence is the class token, not a separator.
    """

    before: int = 1
    between: int = 1
    after: int = 1
    cls_last: bool = False

    def special(self, pair):
        """The number of special tokens."""
        return self.before + self.after + self.between * pair

    def room(self, max_seq_length, pair):
        """How many tokens of text fit into `max_seq_length`."""
        return max_seq_length - self.special(pair)

    def length(self, a_length, b_length):
        """The length of a whole sequence; `b_length` is 0 where there is no B."""
        return a_length + b_length + self.special(b_length > 0)

    def b_offset(self, a_length):
        """The position of B's first token; A's first token is at `before`."""
        return self.before + a_length + self.between


def is_unused(token):
    """Whether a token is a slot that Google's vocabularies keep for words of one's own."""
    return re.fullmatch(r"\[unused\d+\]", token) is not None


class Vocabulary:
    """Tokens and their ids, read as `load_vocab` of google-research/bert's tokenization.py does.

    Attributes:
        tokens: list of str; `tokens[id]` is the token.
        ids: dict from token to id.
        size: number of tokens.
        hash: hex SHA-256 of the file's bytes, to recognise the vocabulary in manifests.
        unk_id, cls_id, sep_id, mask_id: ids of the special tokens.
        pad_id: id of [PAD]; 0, with which the original pads, where the vocabulary has none.
        layout: `Layout` of sequences.
    """

    layout = Layout()

    def __init__(self, tokens, source="the vocabulary", file_hash=None):
        """
        Args:
            tokens: the tokens in the order of their ids.
            source: how errors name the vocabulary.
            file_hash: hex SHA-256 of the file; that of the tokens, one a line, if None.

        Raises:
            InputError: a special token is missing, or a token stands there twice.
        """
        self.tokens = list(tokens)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.size = len(self.tokens)
        self.hash = file_hash or hashlib.sha256(
            "".join(f"{token}\n" for token in self.tokens).encode("utf-8")).hexdigest()
        self._check(source)
        self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self.ids[token] for token in (UNKNOWN, CLS, SEP, MASK))
        self.pad_id = self.ids.get(PADDING, 0)

    @classmethod
    def from_file(cls, path):
        """Reads vocab.txt.

        Raises:
            InputError: `path` can't be read, is empty, is not UTF-8, has a token on two lines, or
                lacks one of [UNK], [CLS], [SEP], [MASK].
        """
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise InputError(f"vocabulary {str(path)!r} can't be read ({error.strerror}); "
                             "give the path of a vocab.txt.") from error
        try:
            lines = content.decode("utf-8").split("\n")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start)
            byte = error.start - (content.rfind(b"\n", 0, error.start) + 1)
            raise InputError(f"vocabulary {str(path)!r} is not UTF-8: line {line + 1}, "
                             f"byte {byte + 1}; save it as UTF-8.") from error
        if not lines[-1]:
            lines.pop()
        if not lines:
            raise InputError(f"vocabulary {str(path)!r} is empty; give a vocab.txt, "
                             "one token a line.")
        return cls((line.strip() for line in lines), f"vocabulary {str(path)!r}",
                   hashlib.sha256(content).hexdigest())

    def _check(self, source):
        missing = [token for token in (UNKNOWN, CLS, SEP, MASK) if token not in self.ids]
        if missing:
            raise InputError(f"{source} has no {', '.join(missing)} among its {self.size} lines; "
                             "give a WordPiece vocab.txt of BERT.")
        for index, token in enumerate(self.tokens):
            # An empty line is a token that no text reaches; the released Chinese one has such.
            if token and self.ids[token] != index:
                raise InputError(f"{source} has {token!r} on line {index + 1} and again on line "
                                 f"{self.ids[token] + 1}; keep one of them.")
