"""The WordPiece vocabulary: vocab.txt, one token a line, its id the line's number from 0."""

import hashlib
import re

from bert_tf.errors import InputError

UNKNOWN, CLS, SEP, MASK, PADDING = "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]"


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
    """

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
