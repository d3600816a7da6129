"""What all tokenizers have in common, and how one is opened."""

import functools
import glob
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bert_tf import tokenization
from bert_tf.errors import InputError
from bert_tf.files import write_aside, write_json
from bert_tf.options import read_json
from bert_tf.tokenization.vocabulary import Vocabulary, looks_lower_case

MODEL_FILE = "spiece.model"
# The settings of a tokenizer that has saved itself, where they are not the default.
SETTINGS_FILE = "tokenizer_settings.json"


class Tokenizer:
    """From text to ids. Other processes get the same tokenizer by pickling.

    Attributes:
        name: the kind of tokenizer, as recipes and `describe` give it.
        vocabulary: the `Vocabulary`.
        do_lower_case: whether text is lower-cased and stripped of accents.
        settings: further settings of this kind of tokenizer that are not at their defaults.
        setting_names: the names that `settings` can have.
        word_prefix: what a word has before it when it is encoded alone, so that it gets the tokens
            that it has after a space.
        blank: the character that tokens have for a space; empty if they have none.
    """

    name = word_prefix = blank = ""
    setting_names: tuple[str, ...] = ()

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = False, **settings: Any):
        self.vocabulary = vocabulary
        self.do_lower_case = do_lower_case
        self.settings = settings

    def __reduce__(self):
        return functools.partial(type(self), **self.settings), (self.vocabulary,
                                                                self.do_lower_case)

    @classmethod
    def reads(cls, path: str) -> bool:
        """Whether a file whose ending fits is of this kind, where several have that ending."""
        del path
        return True

    @staticmethod
    def read_vocabulary(path: str) -> Vocabulary:
        """The vocabulary in a file of this kind of tokenizer.

        Raises:
            InputError: the file can't be read or is of another kind.
        """
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without special tokens."""
        raise NotImplementedError

    def encode_lines(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of many lines at once.

        Args:
            lines: list of str.

        Returns:
            ids: int32 [sum of lengths], those of all lines one after another.
            lengths: int32 [len(lines)], how many each line has.
        """
        raise NotImplementedError

    def encode_words(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """`encode_lines` of words, or runs of words, that follow a space in their text."""
        return self.encode_lines([self.word_prefix + word for word in words]
                                 if self.word_prefix else words)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of `text` and where each comes from.

        Returns:
            ids: list of int, those of `encode`.
            offsets: list of (start, end), so that `text[start:end]` reaches from the first to the
                last character that went into the token, without blanks around.
        """
        raise NotImplementedError

    def excerpt(self, words: Sequence[str], ids: Sequence[int], before: int, after: int) -> str:
        """The part of a text that some of its tokens come from.

        Args:
            words: the words that the tokens are part of, as `encode_words` got them.
            ids: the tokens.
            before: how many tokens of the first word come before them.
            after: how many tokens of the last word come after them.
        """
        first, last = (self.encode_with_offsets(self.word_prefix + word)[1]
                       for word in (words[0], words[-1]))
        text, shift = " ".join(words), len(self.word_prefix)
        rest = len(words[-1]) - (last[-1 - after][1] - shift)
        return text[max(first[before][0] - shift, 0):len(text) - rest]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The tokens of `ids`."""
        return [self.vocabulary.tokens[index] for index in ids]

    def tokenize(self, text: str) -> list[str]:
        """The tokens of `text`."""
        return self.tokens(self.encode(text))

    @functools.cached_property
    def continues(self) -> np.ndarray:
        """bool [V]: whether each token goes on with the word of the token before it."""
        special = set(self.vocabulary.special.values())
        return np.array([token not in special and self._continues(token)
                         for token in self.vocabulary.tokens], bool)

    def continuations(self, lines: Sequence[str], ids: np.ndarray,
                      lengths: np.ndarray) -> np.ndarray:
        """Whether each token of a text goes on with the word of the token before it.

        Args:
            lines: the lines of the text.
            ids, lengths: what `encode_lines` gives for them.

        Returns:
            bool [sum of lengths].
        """
        return self.continues[ids]

    def is_blank(self, line: str) -> bool:
        """Whether a line that has no tokens ends a document."""
        return not line.strip()

    def _continues(self, token):
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """The tokenizer's name and settings as a JSON value, for manifests and task.json."""
        return {"name": self.name, "do_lower_case": self.do_lower_case, **self.settings}

    def save(self, folder: str) -> None:
        """Writes the files of the vocabulary into `folder`, byte for byte as they were read, and
        `settings`, if there are any; `open_tokenizer` reads them there."""
        for name, content in self.vocabulary.files.items():
            with write_aside(os.path.join(folder, name), "wb") as file:
                file.write(content)
        if self.settings:
            write_json(os.path.join(folder, SETTINGS_FILE), self.settings)


def find_vocabulary(folder: str) -> str | None:
    """The file of the vocabulary in a folder, or None if there is none."""
    # A vocab.txt comes first: where there are several, it is what earlier versions read.
    for _, _, names in reversed(tokenization.TOKENIZERS.values()):
        for name in names:
            found = sorted(glob.glob(os.path.join(glob.escape(folder), name)))
            if len(found) == 1 and os.path.isfile(found[0]):
                return found[0]
    return None


def open_tokenizer(path: str, do_lower_case: bool | None = None, **settings: Any) -> Tokenizer:
    """The tokenizer of a vocabulary, whose kind is seen from its file.

    Args:
        path: a vocab.txt (WordPiece); a spiece.model or other file that ends in .model
            (SentencePiece of ALBERT or T5); a vocab.json with a merges.txt beside it (byte-level
            BPE, or GPT's where tokens end in "</w>"; also encoder.json with vocab.bpe, and with
            fairseq's dict.txt); or a folder that holds one of these.
        do_lower_case: whether to lower-case text; as the vocabulary's tokens suggest if None.
            Byte-level BPE and T5 never do.
        settings: further ones of the tokenizer, such as WordPiece's `strip_accents`; those that a
            tokenizer has saved beside the vocabulary if there are none.

    Raises:
        InputError: there is no vocabulary at `path`, it can't be read, or its kind of tokenizer has
            no such setting.
    """
    if os.path.isdir(path):
        found = find_vocabulary(path)
        if not found:
            raise InputError(f"there is no vocabulary in {path}; name its file.")
        path = found
    kind = next(name for name, (_, endings, _) in tokenization.TOKENIZERS.items()
                if str(path).endswith(endings) and getattr(tokenization, name).reads(str(path)))
    tokenizer = getattr(tokenization, kind)
    beside = os.path.join(os.path.dirname(path), SETTINGS_FILE)
    if not settings and os.path.isfile(beside):
        settings = read_json(beside)
    unknown = sorted(settings.keys() - set(tokenizer.setting_names))
    if unknown:
        raise InputError(f"{path} is the vocabulary of a tokenizer that has no {unknown[0]}; give "
                         "a vocab.txt of WordPiece.")
    vocabulary = tokenizer.read_vocabulary(str(path))
    return tokenizer(vocabulary,
                     looks_lower_case(vocabulary) if do_lower_case is None else do_lower_case,
                     **settings)
