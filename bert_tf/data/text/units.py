"""Units of tokens that are masked together: words, runs of words with one tag, or listed phrases.

Tagged text is as bert-finetune reads it, IOB1 or BIO. A document ends at a line whose word is
-DOCSTART-, at a second blank line and at the end of a file.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from bert_tf.data.text.corpus import FILE_END, Marker, Marks
from bert_tf.errors import InputError
from bert_tf.files import open_unpacked
from bert_tf.metrics import entities, to_bio

# Where tagged text may be cut into pieces; see `corpus.read_pieces`.
BOUNDARY = re.compile(rb"\n(?:[ \t\r]*\n){2}|\n(?=-DOCSTART-)|\xff\xfe\xff\n\n")
DOCUMENT = "-DOCSTART-"
SPACES = re.compile("[ \t]+")


class TaggedText:
    """Sentences of tagged words as lines of text, and their units. InputError if a line has no tag
    in the column, or one that is neither IOB1 nor BIO.

    Args:
        lines: see `corpus.decode`.
        column: of the tags, -1 the last; None if runs of a tag are not units.

    Attributes:
        lines: the words of each sentence with a blank between, and an empty line after a document.
    """

    def __init__(self, lines: Iterable[str], tokenizer, column: int | None,
                 paths: Sequence[str]) -> None:
        self._tokenizer, self._column = tokenizer, column
        self.lines: list[str] = []
        self._tags: list[list[str] | None] = []
        words: list[str] = []
        tags: list[str] = []
        for line in lines:
            cells = SPACES.split(line.replace("\r", "").strip(" \t"))
            is_end = line == FILE_END or cells[0] == DOCUMENT
            if not is_end and cells != [""]:
                words.append(cells[0])
                if column is not None:
                    if not _has(cells, column):
                        raise InputError(_locate(paths, column))
                    tags.append(cells[column])
                continue
            if words:
                self._add(words, tags, paths)
                words, tags = [], []
            elif self.lines and self.lines[-1]:     # a second blank line
                is_end = True
            if is_end:
                self.lines.append(FILE_END if line == FILE_END else "")
        if words:
            self._add(words, tags, paths)
        self.lines.append("")

    def _add(self, words, tags, paths):
        try:
            runs = None if self._column is None else entities(to_bio(tags))
        except InputError as error:
            raise InputError(_locate(paths, self._column, error)) from error
        self.lines.append(" ".join(words))
        self._tags.append(runs)

    def mark(self, lines: Sequence[str], ids: np.ndarray, lengths: np.ndarray,
             continues: np.ndarray) -> Marks:
        """Returns the marks of the tokens of lines, whose words the columns decide; `continues`
        counts where the tokens of a line are not its words', see `tokenizer.continuations`."""
        word, unit, named = (np.zeros(len(ids), kind) for kind in (np.int64, np.int64, bool))
        pieces, runs_of_lines = self._pieces(lines), iter(self._tags)
        first = words_before = at = 0
        for line, length in zip(lines, np.asarray(lengths).tolist()):
            if not line.strip():
                continue
            count, runs = line.count(" ") + 1, next(runs_of_lines)
            counts = pieces[at:at + count]
            at += count
            part = slice(first, first + length)
            first += length
            if counts.sum() != length:
                begins = np.cumsum(~continues[part])
                word[part] = unit[part] = words_before + begins
                words_before += length + 1
                continue
            numbers, is_named = np.arange(count), np.zeros(count, bool)
            for start, end, _ in runs or ():
                numbers[start:end], is_named[start:end] = start, True
            word[part] = words_before + np.repeat(np.arange(count), counts)
            unit[part] = words_before + np.repeat(numbers, counts)
            named[part] = np.repeat(is_named, counts)
            words_before += count

        def goes_on(number):
            return np.concatenate([[False], number[1:] == number[:-1]])[:len(number)]

        if self._column is None:
            return Marks(goes_on(word))
        return Marks(goes_on(word), goes_on(unit), named)

    def _pieces(self, lines):
        lines = [line for line in lines if line.strip()]
        words = [word for line in lines for word in line.split(" ")]
        if not words:
            return np.zeros(0, np.int64)
        counts = np.array(self._tokenizer.encode_words(words)[1])
        if self._tokenizer.word_prefix:     # the first word of a line follows no space
            firsts = np.cumsum([0, *(line.count(" ") + 1 for line in lines[:-1])])
            counts[firsts] = self._tokenizer.encode_lines([words[i] for i in firsts])[1]
        return counts


def _has(cells, column):
    return len(cells) > 1 and -len(cells) < column < len(cells) and column


def _locate(paths, column, error=None):
    for path in paths:
        with open_unpacked(path) as file:
            for number, line in enumerate(file, 1):
                cells = SPACES.split(line.decode("utf-8").strip(" \t\r\n"))
                if cells == [""] or cells[0] == DOCUMENT:
                    continue
                where = f"{path}, line {number}"
                if not _has(cells, column):
                    return (f"{where}: there is no tag in column {column} of {len(cells)}; name "
                            "its number from 1, or -1 for the last, with --tag_column.")
                tag = cells[column]
                if error and tag != "O" and tag[:2] not in ("B-", "I-"):
                    return (f"{where}: {tag!r} is neither O nor B- or I- with a type; convert the "
                            "tags to IOB1 or BIO, or name their column with --tag_column.")
    return str(error)


class PhraseList:
    """Phrases whose words are masked together: the longest one that begins at a word."""

    def __init__(self, phrases: Iterable[str], tokenizer) -> None:
        phrases = sorted({phrase.strip() for phrase in phrases} - {""})
        phrase_tokens = set()
        for encode in {tokenizer.encode_lines, tokenizer.encode_words}:
            ids, lengths = encode(phrases)
            ends = np.cumsum(lengths).tolist()
            ids = np.asarray(ids, np.int32)
            phrase_tokens |= {ids[end - length:end].tobytes() for end, length in zip(ends, lengths)}
        self._phrases = frozenset(phrase_tokens - {b""})
        lengths: dict[int, set[int]] = {}
        for phrase in self._phrases:
            lengths.setdefault(int.from_bytes(phrase[:4], "little"), set()).add(len(phrase) // 4)
        self.hash = hashlib.sha256(b"\n".join(sorted(self._phrases))).hexdigest()
        self._lengths = {first: sorted(counts, reverse=True) for first, counts in lengths.items()}

    @classmethod
    def read(cls, path: str, tokenizer) -> "PhraseList":
        """From a file with one phrase per line; InputError if it can't be read or holds none."""
        try:
            with open_unpacked(path) as file:
                made = cls(file.read().decode("utf-8").splitlines(), tokenizer)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--phrase_file: {path} can't be read ({error}); name a file of UTF-8 "
                             "text.") from error
        if not made._phrases:
            raise InputError(f"--phrase_file: {path} holds no phrase; name a file with one phrase "
                             "per line.")
        return made

    def mark(self, ids: np.ndarray, lengths: np.ndarray, marks: Marks) -> Marks:
        ids = np.ascontiguousarray(ids, np.int32)
        ends = np.cumsum(lengths)
        begins = ~marks.continues
        begins[(ends - lengths)[np.asarray(lengths) > 0]] = True
        units, named = ~begins, np.zeros(len(ids), bool)
        line_end = np.repeat(ends, lengths)
        is_first = np.isin(ids, list(self._lengths))
        free = 0
        data = ids.tobytes()
        for start in np.flatnonzero(begins & is_first).tolist():
            if start < free:
                continue
            for length in self._lengths[int(ids[start])]:
                end = start + length
                if end <= line_end[start] and (end == len(ids) or begins[end]) and (
                        data[4 * start:4 * end] in self._phrases):
                    units[start + 1:end], named[start:end] = True, True
                    free = end
                    break
        return Marks(marks.continues, units, named)


def make_marker(text: TaggedText | None, phrases: PhraseList | None,
                label: Callable[[Sequence[str], np.ndarray], np.ndarray] | None = None) -> Marker:
    """Returns the `Marker` of a tagged text, a list of phrases, or both; `label`, a function of
    lines and ids, returns the tokens' labels, bool [T]."""
    def mark(lines, ids, lengths, continues):
        marks = text.mark(lines, ids, lengths, continues) if text else Marks(continues)
        if phrases:
            marks = phrases.mark(ids, lengths, marks)
        if label:
            marks.labels = label(lines, ids)
        return marks

    return mark
