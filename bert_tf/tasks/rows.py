"""Rows of files: a line of a table, or a tagged sentence of several lines. A line that cannot be
read is named or counted, never just dropped."""

import collections
import csv
import dataclasses
import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from bert_tf.data.text.units import DOCUMENT, SPACES
from bert_tf.errors import InputError, counted
from bert_tf.files import is_library_name, open_unpacked, shown_name
from bert_tf.files.places import TFDS
from bert_tf.tasks import forms, libraries
from bert_tf.tasks.json_elements import read_numbered
from bert_tf.tasks.libraries import read_library

SEPARATORS = ",;\t"         # of cells in CSV, which the names of the columns tell
_LONGEST_CELL = 1 << 30     # csv's own limit is 128 KiB
_LOOKED_AT = 1000           # lines of tagged words, whose columns are counted
_LONGEST_NAME = 40          # of a column; longer ones are rather texts
_COMMENT = re.compile(r"#\s*(?:[\w.:-]+\s*=(?:\s|$)|new(?:doc|par)\b)")
_LONGEST_LINE = 1 << 28     # bytes; a small .gz may unpack to a line that fills the memory


@dataclasses.dataclass
class Omissions:
    """The lines of a file that gave no example."""

    skip_malformed: bool = False    # count malformed lines; otherwise the first is an error
    malformed: int = 0  # number of unreadable lines
    without_label: int = 0  # number of lines that the task leaves out because they have no label
    comments: int = 0   # number of lines of tagged words that begin with # and are not words
    # Number of lines whose question has no other line, or one with the same label.
    unpaired: int = 0

    def add_malformed(self, where: str, problem: str, is_expected: bool = False) -> None:
        """Counts a line, or raises InputError if it is neither expected nor to be skipped."""
        if not (self.skip_malformed or is_expected):
            raise InputError(f"{where} {problem}: correct the line, or skip all such lines with "
                             "--skip_malformed_lines.")
        self.malformed += 1


def read_lines(path: str, with_ends: bool = False) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, line) of UTF-8, plain or gzip; "-": of standard input. A line lacks
    its end unless it is to come `with_ends`.

    Only a line feed, with or without a carriage return before it, ends a line: a lone carriage
    return or a Unicode separator within a text does not. The byte-order mark and blank lines at the
    end are left out. A line of more than 256 MB is refused, and a file with carriage returns alone.
    """
    name = shown_name(path)
    unread: list[tuple[int, str]] = []      # blank lines, which may be at the end
    with open_unpacked(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE + 1), b""), 1):
            if number == 1 and not line.endswith(b"\n") and b"\r" in line[:-1]:
                raise InputError(f"{name}: its lines end with a carriage return alone, as on old "
                                 "Macs; convert them to line feeds.")
            if len(line) > _LONGEST_LINE:
                raise InputError(f"{name}, line {number} has more than {_LONGEST_LINE >> 20} MB; "
                                 "put each example on its own line.")
            try:
                whole = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(f"{name}, line {number}, byte {error.start + 1} is not UTF-8: "
                                 "convert the file to UTF-8.") from error
            if number == 1:
                whole = whole.removeprefix("\ufeff")
            text = whole.removesuffix("\n").removesuffix("\r")
            unread.append((number, whole if with_ends else text))
            if text:
                yield from unread
                unread.clear()


def _separator(header):
    """Returns what separates cells, and whether a line says no more than that, such as sep=;. Names
    with semicolons or tabs between them, as office programs of many countries write them, tell."""
    if told := re.fullmatch('"?sep=(.)"?', header.rstrip("\r\n")):
        return told[1], True
    unquoted = re.sub('"[^"]*"', "", header)
    return next((mark for mark in SEPARATORS if mark in unquoted), ","), False


class _CsvRows:
    """The rows of CSV, whose cells may span several lines; a row has the number of its first line.
    `separator` is between cells."""

    def __init__(self, path: str, layout):
        # A cell may hold line ends.
        self._name, lines = shown_name(path), read_lines(path, with_ends=True)
        names = list(itertools.islice(lines, int(layout.header)))
        self.separator, is_told = _separator("".join(line for _, line in names))
        self._last = int(is_told)
        self._numbered = itertools.chain([] if is_told else names, lines)

    def _lines(self):
        for number, line in self._numbered:
            self._last = number
            yield line

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        csv.field_size_limit(_LONGEST_CELL)
        reader = csv.reader(self._lines(), strict=True, delimiter=self.separator)
        while True:
            first = self._last + 1
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise InputError(f"{self._name}, line {first} is not CSV ({error}): if a cell "
                                 "holds quotes or line ends, put the cell in quotes and double the "
                                 "quotes in it; if another mark is between cells than "
                                 f"{self.separator!r}, put a line such as sep=| before the first."
                                 ) from error
            if row is None:
                return
            yield first, row


def json_values(path):
    """Yields (line number, value) of JSON: the elements of a list that may have several lines, or
    values on a line each; None for what is not JSON."""
    if _is_list(path):
        yield from read_numbered(path)
        return
    for number, line in read_lines(path):
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError):
            yield number, None


def _is_list(path):
    """Whether a file is one JSON list. A line may be a list too, whose first element is a text."""
    begins = forms.head(path).lstrip()
    if begins.startswith(b"{") and begins.partition(b"\n")[0].rstrip()[-1:] in b"{[,:":
        raise InputError(f"{shown_name(path)} is one JSON object over several lines; write each "
                         "example as an object on its own line, or all of them as a list.")
    if not begins.startswith(b"["):
        return False
    try:
        first = json.loads(begins.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return True
    return not (first and isinstance(first[0], str))


def json_rows(path):
    """Yields (line number, object) of JSON, with None for another value."""
    if is_library_name(path):
        return read_library(path, "jsonl")
    return ((number, value if isinstance(value, dict) else None)
            for number, value in json_values(path))


# Functions of a path and its `Split`, which describes the columns, that return numbered rows.
_READERS: dict[str, Callable] = {
    "tsv": lambda path, _: ((number, line.split("\t")) for number, line in read_lines(path)),
    "csv": _CsvRows,
    "jsonl": lambda path, _: json_rows(path),
    "tfds": lambda path, _: enumerate(libraries.find(TFDS + path).rows(), 1),
    "library": lambda path, _: read_library(path, form="library")}
# Formats whose cells have names in each row.
_KEYED = ("jsonl", "tfds", "library")


class Table:
    """A file's rows, whose cells are reached by the keys of `keys`. `omissions` counts malformed
    lines; a file without rows is refused. `names` are the columns', or None if they have none;
    `separator` is between the cells of CSV."""

    def __init__(self, path: str, layout, omissions: Omissions):
        self._path, self._omissions = shown_name(path), omissions
        self._keyed, self._is_tsv = layout.format in _KEYED, layout.format == "tsv"
        self._is_csv = layout.format == "csv"
        self.names: list[str] | None = None
        self._width, self._is_broken = None, layout.is_broken
        rows = _READERS[layout.format](path, layout)
        self.separator = getattr(rows, "separator", ",")
        rows = self._whole(rows)
        if layout.header and not self._keyed:
            _, self.names = next(rows, (1, None))
            self._width = self.names and len(self.names)
        first = next(rows, None)
        if first is None:
            raise InputError(f"{self._path} is empty: it must hold at least one example"
                             f"{' below its header' if self.names else ''}.")
        if self._keyed:
            self.names = list(first[1])
        else:
            self._width = len(first[1])
        self._rows = itertools.chain([first], rows)

    def _whole(self, rows):
        for number, row in rows:
            if row is None:
                problem = "is not a JSON object"
            elif len(row) > 1 and row == self.names:    # of a file that was put behind another
                problem = "repeats the names of the columns"
            elif self._width and len(row) != self._width:
                problem = f"has {counted(len(row), 'column')} where there must be {self._width}"
                if self._is_tsv and any('"' in cell for cell in row):
                    problem += " (quotes in .tsv are plain characters; for quoted cells, name " \
                               "the file .csv)"
            else:
                yield number, row
                continue
            self._omissions.add_malformed(f"{self._path}, line {number}", problem, self._is_broken)

    def keys(self, columns, advice: str = "", are_choices: bool = False) -> list:
        """Returns the keys of columns given by name, number or, for several, a name such as
        "ending*". Several columns come in the order of the numbers in their names, else in the
        file's order; in JSON, whose keys have no order, by name. `advice` ends the error of a
        column that is not there. InputError if only some names of choices have a number."""
        return [key for column in columns for key in self._find(column, advice, are_choices)]

    def _find(self, column, advice, are_choices):
        names = self.names or []
        matches = [name for name in names if name == column] or [
            name for name in names if name.strip() == column]
        if len(matches) > 1:
            raise InputError(f"{self._path}, line 1: {len(matches)} columns have the name "
                             f"{column!r}; give the number of the right one, from 0.")
        if not matches and str(column).endswith("*"):
            start = column[:-1]
            matches = [name for name in names if name.startswith(start)]
            numbered = [name for name in matches if _is_number(name[len(start):])]
            if are_choices and 0 < len(numbered) < len(matches):
                raise InputError(f"{self._path}, line 1: {column} means {', '.join(matches)}, but "
                                 f"only {', '.join(numbered)} have a number behind {start}; name "
                                 "each column.")
            if numbered == matches:
                matches.sort(key=lambda name: abs(int(name[len(start):])))      # a-1 has a hyphen
            elif self._keyed:
                matches.sort()
        if matches:
            return matches if self._keyed else [names.index(name) for name in matches]
        if not self._keyed and _is_number(column) and -self._width <= int(column) < self._width:
            return [int(column) % self._width]
        known = f"its columns are {', '.join(names)}" if names else (
            f"it has {counted(self._width, 'column')}")
        if self._is_csv and self._width == 1 and not names:
            known += ", since only commas separate cells without a line of names; add such a line"
        if self._is_tsv and f'"{column}"' in names:
            advice += "; quotes in .tsv are plain characters, so name the file .csv"
        if any(_is_number(name) or len(name) > _LONGEST_NAME for name in names) and (
                not self._keyed):
            advice += "; if line 1 has no names, give --header=False and the columns' numbers"
        raise InputError(f"{self._path}, line 1: there is no column {column!r}; {known}{advice}.")

    def __iter__(self):
        """Yields (line number, row): a list of str, or a dict if cells have names."""
        return self._rows


def _is_number(column):
    return isinstance(column, int) or column.removeprefix("-").isdecimal()


def read_sentences(path: str, layout, omissions: Omissions) -> Iterator[tuple]:
    """Yields (line number of the first word, words, tags or None, number of the document).

    A line whose word is -DOCSTART-, or a second blank line, begins a document. A line before a
    sentence that begins with # is a comment if it is "# name = value", or has another number of
    columns or tabs than the words. The columns of `layout` are numbers, -1 the last. InputError if
    a line's number of columns differs from that of most words, tags and words have one column, or
    the words' column numbers them."""
    word_column, tag_column = _column_number(layout.texts[0]), _column_number(layout.label)
    words: list[str] = []
    tags: list[str] = []
    first, document = 0, 0
    lines = read_lines(path)
    begins = list(itertools.islice(lines, _LOOKED_AT))
    width, tabs = _shape(begins)
    _check_words(begins, width, word_column, shown_name(path))
    for number, line in itertools.chain(begins, lines, [(0, "")]):     # ends the last sentence
        cells = SPACES.split(line.strip(" \t"))
        if cells == [""] or cells[0] == DOCUMENT:
            if words:
                yield first, words, tags, document
            document += cells[0] == DOCUMENT or not words
            words, tags = [], []
            continue
        if not words and line.startswith("#") and (
                (len(cells), line.count("\t")) != (width, tabs) or _COMMENT.match(line)):
            omissions.comments += 1
            continue
        if len(cells) != width and line.count("\t") == tabs > 0 and any(
                " " in cell.strip() for cell in line.split("\t")):
            raise InputError(f"{shown_name(path)}, line {number} has a blank in a word or a tag, "
                             "and blanks separate columns as tabs do; write another character in "
                             "its place, such as _.")
        needed = max(_cells(word_column), _cells(tag_column), 1)
        if len(cells) != width or width < needed:
            omissions.add_malformed(f"{shown_name(path)}, line {number}", f"has "
                                    f"{counted(len(cells), 'column')} where there must be "
                                    f"{max(width, needed)}")
            continue
        if tag_column is not None and range(width)[tag_column] == range(width)[word_column]:
            raise InputError(f"{shown_name(path)}, line {number}: column {tag_column} of {width} "
                             "holds the words; name the column of the tags with --label_column.")
        if not words:
            first = number
        words.append(cells[word_column])
        if tag_column is not None:
            tags.append(cells[tag_column])


def _shape(lines):
    """The numbers of columns and of tabs that most words of numbered lines have."""
    lines = [line for _, line in lines if line.strip()]
    # Each word of a file may begin with #.
    words = [line for line in lines if not line.startswith(("#", DOCUMENT))] or lines
    counts = collections.Counter(
        (len(SPACES.split(line.strip(" \t"))), line.count("\t")) for line in words)
    return max(counts, key=counts.get, default=(1, 0))


def _check_words(lines, width, column, name):
    cells = [SPACES.split(line.strip(" \t")) for _, line in lines]
    words = [row[column] if len(row) == width else "" for row in cells if width >= _cells(column)]
    sentences = [list(group) for is_word, group in itertools.groupby(words, bool) if is_word]
    if max(map(len, sentences), default=0) > 1 and all(
            sentence == list(map(str, range(1, len(sentence) + 1))) for sentence in sentences):
        raise InputError(f"{name}: column {column} numbers the words of each sentence; name the "
                         "column of the words with --text_a_column, from 0.")


def _column_number(column):
    if column is None:
        return None
    try:
        return int(column)
    except ValueError:
        raise InputError(f"column {column!r} of a file of tagged words must be a number: 0 for the "
                         "first column, -1 for the last.") from None


def _cells(column):
    return 0 if column is None else max(column + 1, -column)


def plain_label(cell: Any) -> str | None:
    """Returns a label without blanks at its ends; None where there is none. 1.0, a number, is 1."""
    if cell is None or cell != cell:        # not a number
        return None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell).strip() or None
