"""The base class of tokenizers, and `open_tokenizer`."""

import collections
import functools
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from bert_tf import files, tokenization
from bert_tf.errors import InputError, check_least, warn
from bert_tf.tokenization import library_settings, tokenizer_json
from bert_tf.tokenization.encoding import encode_pairs
from bert_tf.tokenization.vocabulary import PADDING, Vocabulary

MODEL_FILE = "spiece.model"
_CASE = "do_lower_case"
# The setting that has the added tokens, transformers' name of it.
ADDED = "added_tokens_decoder"


class Tokenizer:
    """Text -> ids. Tokenizers can be pickled. `settings` are those that are not at their defaults.
    """

    name = ""   # the kind, as recipes and `describe` give it
    library_class = ""  # transformers' class
    # What is put before a word that is encoded alone: it then gets the tokens as after a space.
    word_prefix = ""
    blank = ""  # the character that replaces a space in tokens
    setting_names: tuple[str, ...] = ()
    has_choice_of_case = True

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = False, **settings: Any):
        self.vocabulary = vocabulary
        self.do_lower_case = do_lower_case
        self.settings = settings

    def __reduce__(self):
        return functools.partial(type(self), **self.settings), (self.vocabulary, self.do_lower_case)

    @classmethod
    def reads(cls, path: str) -> bool:
        """Whether this class reads the file, where several classes share its ending."""
        return True

    @staticmethod
    def read_vocabulary(path: str) -> Vocabulary:
        raise NotImplementedError

    def __call__(self, texts: str | tuple | list, max_seq_length: int | None = None,
                 pad_to_max: bool = False) -> dict[str, np.ndarray]:
        """Returns the features that a network reads, a row for each text: int32 [B, S] by name,
        with special tokens and padding, as fine-tuning makes them.

            tokenizer("A text.")                                # one row
            tokenizer([("A text.", "Another."), ("A third.", "")])     # pairs; "" is not text

        Args:
            texts: a text, a tuple of two, or a list of such; also an iterator, an array, or a
                column or a table of pandas.
            max_seq_length: tokens of a row, special ones included; texts beyond it are cut, of
                two the longer one first. None: nothing is cut.
            pad_to_max: whether rows are padded to `max_seq_length`, not to the longest of them.

        Raises:
            InputError: there is no text, or something else.
        """
        texts = listed(texts)
        if not isinstance(texts, list):
            texts = [texts]
        tuples = list(map(as_tuple, texts))
        for number, row in enumerate(tuples):
            if not 1 <= len(row) <= 2 or not all(isinstance(text, str) for text in row):
                raise InputError(f"text {number} is {row!r}; give a text, or a tuple of two texts.")
        if not tuples:
            raise InputError("there is no text; give at least one.")
        if max_seq_length is not None:
            check_least("max_seq_length", max_seq_length, self.vocabulary.layout.special(True) + 1)
        if pad_to_max and max_seq_length is None:
            raise InputError("pad_to_max needs max_seq_length, the length to pad to; give it.")
        width = max(map(len, tuples))
        rows, _ = encode_pairs([(*row, "")[:width] for row in tuples], self, max_seq_length)
        longest = int(rows["input_mask"].sum(1).max())
        columns = slice(longest)
        if pad_to_max:
            columns = slice(None)
        elif self.vocabulary.layout.pads_left:
            columns = slice(-longest, None)
        return {name: values[:, columns].astype(np.int32) for name, values in rows.items()}

    def decode(self, ids: Any, skip_special: bool = True) -> str | list[str]:
        """Returns the text of ids: a str for [S], a list of str for [B, S] or for a list of lists;
        InputError if an id has no token. Changes by the tokenizer, such as of case, stay.
        `skip_special` leaves out special tokens and padding, but not unknown tokens and masks."""
        rows = ids if isinstance(ids, (list, tuple)) else np.atleast_1d(ids)
        if len(rows) and np.ndim(rows[0]) or np.ndim(rows) == 2:
            return [str(self.decode(row, skip_special)) for row in rows]
        return self._join(self._shown(np.asarray(rows).tolist(), skip_special))

    def _shown(self, ids, skip_special):
        check_ids(ids, len(self.vocabulary.tokens))
        return self._without_special(ids) if skip_special else ids

    def _without_special(self, ids):
        """Keeps unknown tokens and masks. Padding that is a token of texts too, as in some files,
        is padding only at the end, behind a special token."""
        vocabulary, pad, end = self.vocabulary, self.vocabulary.pad_id, len(ids)
        dropped = {*vocabulary.special_ids} - {vocabulary.unk_id} | {pad}
        if vocabulary.special.get("pad", PADDING) != vocabulary.tokens[pad]:
            dropped -= {pad} - {vocabulary.cls_id, vocabulary.sep_id}
            while end and ids[end - 1] == pad:
                end -= 1
            if not end or ids[end - 1] not in dropped:
                end = len(ids)
        return [index for index in ids[:end] if index not in dropped]

    def _join(self, ids: list[int]) -> str:
        words: list[str] = []
        for index in ids:
            token = self.vocabulary.tokens[index]
            if self.continues[index] and words:
                words[-1] += token.removeprefix("##")
            else:
                words.append(token)
        return " ".join(words)

    def __repr__(self) -> str:
        case = "lower-cases" if self.do_lower_case else "cased"
        return f"{type(self).__name__}({self.vocabulary.size:,} tokens, {case})"

    @property
    def shown_case(self) -> bool | None:
        """Whether the tokens show that text is lower-cased; None if it is open, or no choice."""
        return self.vocabulary.shown_case() if self.has_choice_of_case else None

    @property
    def plain(self) -> "Tokenizer":
        """The tokenizer that splits words: without added tokens, or the first one of several."""
        return self

    def encode(self, text: str) -> list[int]:
        """Returns the ids of `text`, without special tokens."""
        return self.encode_lines([text])[0].tolist()

    def encode_lines(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of all lines, int32 [sum of lengths], and their lengths, int32 [lines]."""
        raise NotImplementedError

    def encode_words(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """`encode_lines` for words, or runs of words, that follow a space in their text."""
        if self.word_prefix:
            words = [self.word_prefix + word for word in words]
        return self.encode_lines(words)

    def encode_parts(self, parts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """`encode_lines` for parts of texts that follow other parts without a blank."""
        return self.encode_lines(parts)

    def at_start(self, text: str) -> str:
        """Returns a text as `encode_lines` reads it, for `encode_parts`."""
        return text

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of `text`, and the (start, end) of each token there, without blanks around it."""
        raise NotImplementedError

    def excerpt(self, words: Sequence[str], ids: Sequence[int], before: int, after: int) -> str:
        """Returns the part of a text that some of its tokens come from, whose words are `words`, as
        given to `encode_words`. `before` tokens of the first word precede them, and `after` of the
        last follow them."""
        first, last = (self.encode_with_offsets(self.word_prefix + word)[1]
                       for word in (words[0], words[-1]))
        text, shift = " ".join(words), len(self.word_prefix)
        rest = len(words[-1]) - (last[-1 - after][1] - shift)
        return text[max(first[before][0] - shift, 0):len(text) - rest]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        return [self.vocabulary.tokens[index] for index in ids]

    def tokenize(self, text: str) -> list[str]:
        return self.tokens(self.encode(text))

    def readable(self, index: int) -> str:
        """Returns a token as a reader writes it, with a blank where the text has one."""
        token = self.vocabulary.tokens[index]
        return token.replace(self.blank, " ") if self.blank else token

    @functools.cached_property
    def continues(self) -> np.ndarray:
        """bool [V]: whether each token continues the word of the token before it."""
        special = set(self.vocabulary.special.values())
        return np.array([token not in special and self._continues(token)
                         for token in self.vocabulary.tokens], bool)

    def continuations(self, lines: Sequence[str], ids: np.ndarray,
                      lengths: np.ndarray) -> np.ndarray:
        """Returns whether each token continues the word of the token before it: bool [sum of
        lengths]. `ids` and `lengths` are those that `encode_lines` returns for the lines."""
        return self.continues[ids]

    def fold(self, char: str) -> str:
        """Returns a character as the tokenizer normalizes it, such as in lower case."""
        return char

    def is_blank(self, line: str) -> bool:
        """Whether a line that has no tokens ends a document."""
        return not line.strip()

    def _continues(self, token):
        return False        # what stands before it may show more, see `continuations`

    def describe(self) -> dict[str, Any]:
        """Returns name and settings as a JSON value, for manifests and task.json."""
        return {"name": self.name, "do_lower_case": self.do_lower_case, **self.settings}

    @property
    def told(self) -> dict[str, Any]:
        """The option of records that holds the `settings` of their tokenizer; {} without any.
        `drop_category_c` is left out: with it, a model takes the records of BERT."""
        told = {name: self.settings[name] for name in self.settings if name != "drop_category_c"}
        return {"tokenizer": told} if told else {}

    def library_settings(self) -> dict[str, Any]:
        """Returns what tokenizer_config.json has: transformers' names, and settings of ours."""
        named = {"tokenizer_class": self.library_class} if self.library_class else {}
        return {**named, "do_lower_case": self.do_lower_case, **self.settings}

    def describe_beside(self, path: str) -> None:
        """Writes the settings beside a vocabulary, where `open_tokenizer` reads them."""
        files.write_json(library_settings.new_settings_file(path), self.library_settings())

    def save(self, folder: str, settings: dict[str, Any] | None = None) -> None:
        """Writes the vocabulary's files as they were read, and tokenizer_config.json with
        `settings`, or the `library_settings`. `open_tokenizer` reads the folder."""
        files.make_folders(folder)
        files.write_json(os.path.join(folder, library_settings.SETTINGS_FILE),
                         settings or self.library_settings())
        # The vocabulary comes last: where there is one, its settings are there too.
        for name, content in self.vocabulary.files.items():
            with files.write_aside(os.path.join(folder, name), "wb") as file:
                file.write(content)


def check_ids(ids: Iterable, limit: float) -> None:
    """Raises InputError if ids are not whole numbers from 0 to before `limit`."""
    for index in ids:
        if not isinstance(index, int) or not 0 <= index < limit:
            raise InputError(f"there is no token with the id {index!r}; give whole numbers from 0 "
                             "to before the vocabulary's size.")


def listed(values: Any) -> Any:
    """Returns a list in place of an array, a tensor, a column of pandas or of datasets, an iterator
    or another sequence; texts and tuples as they are. A row of an array of two dimensions, or of a
    table of pandas, becomes a tuple, or its only value."""
    if isinstance(values, (Iterator, Sequence)) and not isinstance(
            values, (str, collections.UserString, bytes, tuple)):
        return list(values)
    shape = getattr(values, "shape", ())
    if not hasattr(values, "__array__") or len(shape) == 0:
        return values
    if len(shape) != 2:
        return list(values)
    return [tuple(row) if len(row) > 1 else row[0] for row in np.asarray(values).tolist()]


def as_tuple(value: Any) -> tuple:
    """Returns a value that is not a tuple, such as a single text, as the only one of a tuple."""
    return value if isinstance(value, tuple) else (value,)


def check_case(tokenizer: Tokenizer, source: str) -> None:
    """Raises InputError, which names the vocabulary `source`, if its tokens show another case than
    the text has, and the case can be chosen."""
    shown = tokenizer.shown_case
    if shown is False and tokenizer.do_lower_case:
        raise InputError(f"{source} has tokens with capital letters, which lower-cased text never "
                         "uses; give --do_lower_case=False.")
    if shown and not tokenizer.do_lower_case:
        raise InputError(f"{source} has no token with a capital letter, so each capitalised word "
                         "would be [UNK]; give --do_lower_case.")


def check_sentinels(tokenizer: Tokenizer, source: str) -> None:
    """Raises InputError, which names the vocabulary `source`, for a SentencePiece model without
    sentinels, whose last pieces would be taken for them; warns of another vocabulary."""
    if not hasattr(tokenizer, "has_sentinels"):
        warn(f"{source} is a vocabulary of {tokenizer.name}, whose last tokens are taken for "
             "sentinels, and fine-tuning needs a model of SentencePiece; give its file.")
    elif not tokenizer.has_sentinels:
        raise InputError(f"{source} is a SentencePiece model without sentinels (<extra_id_0>, "
                         "...); give the SentencePiece model of an encoder with a decoder.")


def find_vocabulary(folder: str) -> str | None:
    """Returns the vocabulary's file in a folder, or None."""
    library_file = library_settings.find_tokenizer_json(folder)
    if library_file and library_settings.has_other_class(folder):
        return library_file
    # A vocab.txt comes first where there are several.
    for _, _, names in reversed(tokenization.TOKENIZERS.values()):
        for name in names:
            paths = files.match_names(folder, name)
            # Only the names before it are surely of a model here.
            if len(paths) == 1 and files.is_file(paths[0]) and not (
                    name == "*.model" and library_file):
                return paths[0]
    return library_file


def open_tokenizer(path: str, do_lower_case: bool | None = None, rows: int | None = None,
                   saved: dict[str, Any] | None = None, **settings: Any) -> Tokenizer:
    """Opens the tokenizer that fits a vocabulary file.

    Args:
        path: a vocab.txt (WordPiece); a file that ends in .model (SentencePiece; pieces are
            numbered as transformers' files beside it say); a vocab.json next to a merges.txt
            (byte-level BPE, or BPE of words where tokens end in "</w>"; also encoder.json with
            vocab.bpe, and with fairseq's dict.txt); the tokenizer.json of any kind; or a folder
            that holds one of these.
        do_lower_case: None: as saved with the vocabulary, also by transformers or keras-hub, else
            as its tokens suggest. Byte-level BPE never lower-cases.
        rows: of the model's table; added tokens beyond it are cut as other text.
        saved: the settings in place of the settings saved with the vocabulary.
        settings: further settings, such as WordPiece's `strip_accents`; others are as saved with
            the vocabulary.

    Raises:
        InputError: no readable vocabulary at `path`, or a setting that this kind of tokenizer
            lacks.
    """
    folder = path = files.fetched(path, with_weights=False)
    if files.is_folder(folder) and not (path := find_vocabulary(folder) or ""):
        raise InputError(f"there is no vocabulary in {folder}; name the file of the vocabulary.")
    beside = os.path.dirname(path) or os.curdir
    if not files.is_file(path) and files.is_folder(beside) and (other := find_vocabulary(beside)):
        raise InputError(f"there is no {path}; the vocabulary of this folder is {other}: name that "
                         "file, or the folder.")
    library_settings.check_settings(path)
    opened: Any = _open
    if (os.path.basename(path) == library_settings.TOKENIZER_FILE
            and not library_settings.has_other_class(os.path.dirname(path))
            and tokenizer_json.has_old_files(path)):
        opened = _open_old_files
    made = opened(path, do_lower_case, rows, saved, settings)
    if do_lower_case is None and saved is None and made.name == "wordpiece":
        library_settings.warn_of_defaults(
            path, {"tokenize_chinese_chars": True, **made.library_settings()})
    return made


def _open(path, do_lower_case, rows, saved, settings, described=None):
    """`described`: the file that describes the vocabulary, and what this says; None: as beside."""
    kind = next((name for name, (_, endings, _) in tokenization.TOKENIZERS.items()
                 if path.endswith(endings) and getattr(tokenization, name).reads(path)),
                "WordpieceTokenizer")
    tokenizer = getattr(tokenization, kind)
    vocabulary = tokenizer.read_vocabulary(path)
    file, beside = described or (library_settings.settings_file(path), {})
    if saved is not None:
        beside = {**saved}
    elif not described and (tokenizer.setting_names or tokenizer.has_choice_of_case):
        beside = {name: value for name, value in library_settings.settings_beside(path).items()
                  if name in (_CASE, *tokenizer.setting_names)}
        if tokenizer.setting_names:
            beside[ADDED] = library_settings.added_tokens(
                path, vocabulary.tokens, vocabulary.ids, rows)
    added = {key: token for key, token in beside.pop(ADDED, {}).items()
             if rows is None or int(key) < rows}
    in_file = beside.pop(_CASE, None)
    if do_lower_case is not None and in_file not in (None, do_lower_case):
        beside.pop("strip_accents", None)       # it goes with the other case
    settings = {**beside, **settings}
    unknown = sorted(settings.keys() - set(tokenizer.setting_names))
    if unknown:
        raise InputError(f"the tokenizer of {path} has no setting {unknown[0]}; leave the setting "
                         "out, or give a WordPiece vocab.txt.")
    lower = do_lower_case
    if lower is None:
        lower = vocabulary.looks_lower_case() if in_file is None else bool(in_file)
    if lower and saved is None and "strip_accents" in tokenizer.setting_names:
        settings = _accents(vocabulary, in_file and file, settings) | settings
    made = tokenizer(vocabulary, lower, **settings)
    return tokenization.AddingTokenizer(made, added) if added else made


def _accents(vocabulary, file, settings):
    """The setting that keeps the accents of lower-cased text if the vocabulary has accents, else
    {}. Where `file` says that text is lower-cased, accents go, as in transformers."""
    if "strip_accents" in settings or not vocabulary.has_accents():
        return {}
    if not file:
        return {"strip_accents": False}
    warn(f"{file} says that text is lower-cased, so accents are dropped, as in transformers, but "
         "the vocabulary has tokens with accents; if the model was trained on text with accents, "
         'write "strip_accents": false there.')
    return {}


def _open_old_files(path, do_lower_case, rows, saved, settings):
    """Returns the tokenizer of a tokenizer.json, which errors name."""
    contents, described = tokenizer_json.old_files(path, rows)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            with files.write_aside(os.path.join(folder, name), "wb") as file:
                file.write(content)
        try:
            return _open(os.path.join(folder, next(iter(contents))), do_lower_case, rows, saved,
                         settings, (path, described))
        except InputError as error:
            raise InputError(re.sub(f"{re.escape(folder)}/[\\w.]+", path, str(error))) from error


def default_case(path: str) -> bool:
    """Whether fine-tuning lower-cases text for the vocabulary at `path` where no flag says it: as
    the tokens show, else as the files beside it."""
    tokenizer = open_tokenizer(path)
    return tokenizer.do_lower_case if tokenizer.shown_case is None else tokenizer.shown_case
