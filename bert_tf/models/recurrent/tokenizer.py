"""Whole words as tokens, for ELMo, which also has their characters (allenai/bilm-tf, bilm/data.py),
and for semi-supervised sequence learning (tensorflow/models research/adversarial_text).
"""

import re

import numpy as np

from bert_tf.errors import InputError
from bert_tf.spelling import pack_spelling, spell, spelling_names
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.vocabulary import (
    VOCAB_FILE,
    Layout,
    Vocabulary,
    holds,
    read_vocabulary_lines,
)

ELMO_ROLES = {"unk": "<UNK>", "cls": "<S>", "sep": "</S>"}
SEQUENCE_ROLES = {"sep": "</s>"}
MAX_CHARACTERS = 50
_LEFT_OUT = "!!!MAXTERMID"      # a line of the original's file that is not a token
_WORDS = re.compile(r"\w+")


class SpelledVocabulary(Vocabulary):
    """An open vocabulary: a word that it lacks gets an id from `size` on, which grows `tokens` and
    `ids`. The id keeps the spelling until `features` replaces it by <UNK>. `max_characters`, W, are
    the most characters of a word, its marks included."""

    is_open = True

    def __init__(self, *args, max_characters: int = MAX_CHARACTERS, **kwargs):
        super().__init__(*args, **kwargs)
        self.max_characters = max_characters
        self.further_features = spelling_names(max_characters)
        self._spelled = np.zeros((0, len(self.further_features)), np.int32)

    def __reduce__(self):       # without the words that were met
        return _remake, (self.tokens[:self.size], self.files, self.max_characters)

    def is_unknown(self, ids):
        return super().is_unknown(ids) | (ids >= self.size)

    def id_of(self, word: str) -> int:
        """A word's id, from `size` on if the vocabulary lacks the word."""
        index = self.ids.get(word)
        if index is None:
            index = self.ids[word] = len(self.tokens)
            self.tokens.append(word)
        return index

    def features(self, ids: np.ndarray, is_token: np.ndarray) -> dict[str, np.ndarray]:
        """`input_ids` and packed characters of ids from `id_of`, int32 [...]; 0 for no token."""
        known = len(self._spelled)
        if known < len(self.tokens):
            rows = [spell(word, self.max_characters) for word in self.tokens[known:]]
            packed = np.stack(pack_spelling(np.array(rows, np.int32)), -1)
            self._spelled = np.concatenate([self._spelled, packed])
        ids = np.where(is_token, ids, 0)
        spelled = np.where(is_token[..., None], self._spelled[ids], 0)
        unknown = self.ids[self.special["unk"]]
        return {"input_ids": np.where(ids < self.size, ids, unknown).astype(np.int32),
                **dict(zip(self.further_features, np.moveaxis(spelled, -1, 0)))}


def _remake(tokens, files, max_characters):
    return SpelledVocabulary(tokens, files=files, roles=ELMO_ROLES, max_characters=max_characters)


class ElmoTokenizer(Tokenizer):
    """Words between white space, with their case."""

    name = "elmo_words"
    has_choice_of_case = False
    setting_names = ("max_characters",)
    vocabulary: SpelledVocabulary

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = False,
                 max_characters: int = MAX_CHARACTERS):     # of a word, its two marks included
        if max_characters < 3:
            raise InputError(f"max_characters is {max_characters}; it must be at least 3.")
        settings = {} if max_characters == MAX_CHARACTERS else {"max_characters": max_characters}
        super().__init__(_remake(vocabulary.tokens[:vocabulary.size], vocabulary.files,
                                 max_characters), False, **settings)

    @classmethod
    def reads(cls, path):
        return holds(path, ELMO_ROLES.values())

    @staticmethod
    def read_vocabulary(path):
        """Reads a file with one word per line, most frequent first, as in allenai/bilm-tf."""
        content, lines = read_vocabulary_lines(path)
        tokens = [token for line in lines if (token := line.strip()) != _LEFT_OUT]
        return SpelledVocabulary(tokens, f"vocabulary {path!r}", {VOCAB_FILE: content}, ELMO_ROLES)

    def encode(self, text):
        return list(map(self.vocabulary.id_of, text.split()))

    def encode_lines(self, lines):
        rows = [self.encode(line) for line in lines]
        return (np.array([index for ids in rows for index in ids], np.int32),
                np.array([len(ids) for ids in rows], np.int32))

    def encode_with_offsets(self, text):
        words = list(re.finditer(r"\S+", text))
        return ([self.vocabulary.id_of(word.group()) for word in words],
                [word.span() for word in words])

    def _join(self, ids):
        return " ".join(self.tokens(ids))

    def continuations(self, lines, ids, lengths):
        return np.zeros(len(ids), bool)


def split_sequence(text: str, do_lower_case: bool) -> list[str]:
    return _WORDS.findall(text.lower() if do_lower_case else text)


class SequenceTokenizer(Tokenizer):
    """Runs of letters, digits and underscores that the vocabulary has; all else is dropped."""

    name = "sequence_words"

    @classmethod
    def reads(cls, path):
        return holds(path, SEQUENCE_ROLES.values())

    @staticmethod
    def read_vocabulary(path):
        """Reads a file with one word per line, most frequent first, and </s> last."""
        content, lines = read_vocabulary_lines(path)
        return Vocabulary([line.strip() for line in lines], f"vocabulary {path!r}",
                          {VOCAB_FILE: content}, SEQUENCE_ROLES, Layout(0, 1, 1))

    def encode(self, text):
        known = self.vocabulary.ids
        return [known[word] for word in split_sequence(text, self.do_lower_case) if word in known]

    encode_lines = ElmoTokenizer.encode_lines

    def encode_with_offsets(self, text):
        ids, offsets = [], []
        for word in _WORDS.finditer(text):
            word_ids = self.encode(word.group())
            ids += word_ids[:1]
            offsets += [word.span()] * bool(word_ids)
        return ids, offsets
