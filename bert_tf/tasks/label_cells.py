"""The cells that name the labels of examples, of which each may have several. One rule decides over
the whole file what its cells are: names of labels, or flags, a 0 or a 1 for each label. What could
be both is refused."""

import ast
import contextlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf.errors import InputError, counted, warn
from bert_tf.tasks.rows import plain_label

_SEPARATORS = ",;|"
_FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True, "0.": False, "1.": True,
          "false": False, "true": True}
_LISTS = {"[": "]", "(": ")", "{": "}"}
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_TYPED = re.compile(rf"np\.\w+\(({_QUOTED}|[^()]*)\)")      # as in [np.str_('a')]
# A quote within a word, as in don't, opens nothing.
_PIECES = re.compile(rf"(?<![^\s,])(?:{_QUOTED})(?![^\s,])|,|[^\s,]+")
# As in array([...]).
_NAMED = re.compile(r"(?:array|(?:frozen)?set)\((.*?)(?:,\s*dtype=[\w'<>|]+)?\)", re.DOTALL)
_NUMBER = re.compile(r"\.{3}|-?\d+\.?\d*|true|false", re.IGNORECASE)
_NOTHING = ("nan", "None", "null")
_SHARE = re.compile(r"\d*\.\d*[1-9]\d*")
_JOINED = re.compile("[01]{2,}")        # flags without separators, if one begins with 0
_ADVICE = "write lists of names in JSON, or one column of 0 and 1 for each label"


class Flags(NamedTuple):
    """Whether an example has each of the labels, which are those of all rows of a file."""

    names: tuple[str, ...]
    values: tuple[bool, ...]


class _Cell(NamedTuple):
    """The items of a list, or the text of a cell that is not a list."""

    items: tuple[str, ...] | None
    text: str = ""

    def divided(self, separator: str) -> tuple[str, ...]:
        """The items; those of a text are between separators."""
        if self.items is not None:
            return self.items
        parts = self.text.split(separator) if separator else [self.text]
        return tuple(filter(None, map(str.strip, parts)))


def _opened(cell):
    """The `_Cell` of a value in a row; ValueError if it can't name labels."""
    cell = getattr(cell, "tolist", lambda: cell)()
    if isinstance(cell, dict) and "choices" in cell:        # of Label Studio
        cell = cell["choices"]
    if isinstance(cell, (list, tuple)):
        items = list(map(plain_label, cell))
        if None in items:
            raise ValueError("has null in its list of labels")
        if any(isinstance(item, (list, tuple, dict)) for item in cell):
            raise ValueError("has lists or objects in its list of labels")
        return _Cell(tuple(items))
    if isinstance(cell, dict):
        raise ValueError("has an object where labels must be")
    text = plain_label(cell) or ""
    if named := _NAMED.fullmatch(text):
        text = named[1] or "[]"
    if _LISTS.get(text[:1]) != text[-1:] or len(text) < 2:
        return _Cell(None, text)
    value = None
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
    if value and isinstance(value, (dict, list)):
        return _opened(value)
    items = tuple(_items_in(text[1:-1]))
    if "..." in items:
        raise ValueError("has a list of labels that is cut off at '...'")
    if text[0] == "[" or "'" in text or '"' in text or _are_flags(items):
        return _Cell(items)
    return _Cell(None, text)        # round and curly brackets may be a part of a name


def _items_in(text):
    """Yields the items between the brackets of Python's lists and of NumPy's, without commas."""
    pieces = _PIECES.findall(_TYPED.sub(r"\1", text))
    has_commas = "," in pieces
    for is_comma, group in itertools.groupby(pieces, ",".__eq__):
        words = list(group)
        if is_comma:
            continue
        if all(re.fullmatch(_QUOTED, word) for word in words):
            for quoted in words:
                try:
                    yield str(ast.literal_eval(quoted)).strip()
                except (SyntaxError, ValueError):       # an escape that Python does not know
                    yield quoted[1:-1].strip()
        elif not has_commas and all(map(_NUMBER.fullmatch, words)):
            yield from words
        elif words[0] in _NOTHING and len(words) == 1:
            raise ValueError("has null in its list of labels")
        else:
            yield " ".join(words)


def _are_flags(items):
    return all(item.lower() in _FLAGS for item in items)


class LabelForm(NamedTuple):
    """How the rows of a file name labels."""

    # Of flags, in their order; None where cells hold the names of labels.
    names: tuple[str, ...] | None = None
    separator: str = ""     # between the names or flags in a text; "" where each text is one
    is_blank_no: bool = False   # whether an empty flag means that an example does not have a label

    def read(self, cell: Any) -> list[str] | Flags:
        """Returns the labels in a cell. Raises ValueError if it has no labels of this form; says
        what it has."""
        if self.names is None:
            return list(_opened(cell).divided(self.separator))
        if isinstance(cell, list) and len(cell) == len(self.names):
            empty = [name for name, one in zip(self.names, cell) if plain_label(one) is None]
            if empty and not self.is_blank_no:
                raise ValueError(f"has nothing where 0 or 1 must be for the label {empty[0]}")
            cell = ["0" if plain_label(one) is None else one for one in cell]
        items = _opened(cell).divided(self.separator)
        if len(items) != len(self.names) or not _are_flags(items):
            each = "each of the labels" if len(self.names) > 1 else "the label"
            raise ValueError(f"has {', '.join(items) or 'nothing'} where 0 or 1 must be for {each} "
                             f"{', '.join(self.names)}")
        return Flags(self.names, tuple(_FLAGS[item.lower()] for item in items))


def form_of_columns(rows: Iterable[Sequence[Any]], columns: Sequence[str] | None, count: int,
                    labels: Sequence[str], path: str) -> LabelForm:
    """Returns the form of rows with a flag in each of `count` columns, whose names are None without
    any. Where no flag is 0, an empty cell means 0. Known labels, else (), name the columns in their
    order where no column has the name of a label."""
    names = tuple(str(name).strip() for name in columns or ())
    if len(set(names)) < len(names):
        raise InputError(f"{path}: two columns of labels have one name in {', '.join(names)}; "
                         "rename one.")
    if labels and set(names) != set(labels):
        if len(labels) != count or set(names) & set(labels):
            raise InputError(f"{path}: the columns of labels are {', '.join(names) or count}, but "
                             f"the labels are {', '.join(labels)}; name a column for each with "
                             "--label_column.")
        names = tuple(labels)
    has_no = any(_FLAGS.get((plain_label(cell) or "").lower()) is False
                 for row in rows for cell in row)
    return LabelForm(names or _default_names(count, path), is_blank_no=not has_no)


def form_of_cells(cells: Iterable[tuple[int, Any]], labels: Sequence[str], path: str) -> LabelForm:
    """Returns the form of a column, from (line number, value) of each row and the known labels,
    else (). Raises InputError if the cells have several forms, or could be names as well as flags.
    """
    lines: dict[_Cell, int] = {}        # the first one with each cell
    for line, value in cells:
        try:
            lines.setdefault(_opened(value), line)
        except ValueError:              # `read` refuses it
            continue
    separator = _separator(lines, labels, path)
    rows: dict[tuple[str, ...], int] = {}
    for cell, line in lines.items():
        rows.setdefault(cell.divided(separator), line)
    is_empty_somewhere = rows.pop((), None) is not None
    if rows and all(map(_are_flags, rows)) and _is_of_flags(
            rows, labels, is_empty_somewhere, path):
        count = len(next(iter(rows)))
        return LabelForm(tuple(labels) or _default_names(count, path), separator)
    each = [item for items in rows for item in items]
    if rows and (all(map(_SHARE.fullmatch, each)) or all(map(_JOINED.fullmatch, each)) and any(
            item.startswith("0") for item in each)):
        first, line = next(iter(rows.items()))
        raise InputError(f"{path}, line {line}: {', '.join(first)} are neither names of labels nor "
                         "a 0 or a 1 for each label; write one of the two.")
    for items, line in rows.items():
        if len(set(items)) < len(items):
            twice = next(item for item in items if items.count(item) > 1)
            raise InputError(f"{path}, line {line}: {twice!r} comes twice among the labels of one "
                             f"example, as it may among flags; name each label once, or {_ADVICE}.")
    for cell, line in lines.items():
        # A quote that begins one part ends another one, as in "a, b".
        if not labels and cell.items is None and any(
                begin[0] == quote != begin[-1] and end[-1] == quote != end[0]
                for quote in "\"'"
                for begin, end in itertools.combinations(cell.divided(separator), 2)):
            raise InputError(f"{path}, line {line}: the labels {cell.text} are in quotes, which "
                             f"are read as a part of names here; leave them out, or {_ADVICE}.")
    names = {cell.text for cell in lines if cell.items is None and cell.text}   # C is not in C++
    joined = [name for name in sorted(names) if not (separator or labels)
              and len(parts := re.split(r"[\s/+&#]+", name)) > 1 and names.issuperset(parts)]
    if joined:
        warn(f"{path}, line {lines[_Cell(None, joined[0])]}: {joined[0]!r} is one label, though "
             "its parts are labels too, since blanks and the like separate no labels; "
             f"{_ADVICE}.")
    return LabelForm(None, separator)


def _default_names(count, path):
    names = tuple(f"LABEL_{number}" for number in range(count))
    warn(f"{path}: {counted(count, 'flag')} an example without names, which become "
         f"{', '.join(names[:2])}{', ...' if count > 2 else ''}: give their names in this order "
         "with --labels; in TextModel.fit, with label_names.")
    return names


def _separator(lines: Mapping[_Cell, int], labels, path):
    texts = {cell.text: line for cell, line in lines.items() if cell.items is None and cell.text}
    if texts and all(" " in text and _are_flags(text.split()) for text in texts):
        return " "
    marks = {mark: next(line for text, line in texts.items() if mark in text)
             for mark in _SEPARATORS if any(mark in text for text in texts)}
    for mark in ("", *marks):       # a name may hold another mark
        if labels and all(set(_Cell(None, text).divided(mark)) <= set(labels) for text in texts):
            return mark
    used = list(marks.items())
    if len(used) > 1:
        raise InputError(f"{path}: labels are separated by {used[0][0]!r} in line {used[0][1]} and "
                         f"by {used[1][0]!r} in line {used[1][1]}; use one separator, or "
                         f"{_ADVICE}.")
    return next(iter(marks), "")


def _is_of_flags(rows, labels, is_empty_somewhere, path):
    """Whether rows that hold nothing but 0 and 1 are flags, and not the names of two labels."""
    widths: dict[int, int] = {}
    values = {tuple(_FLAGS[item.lower()] for item in items): line for items, line in rows.items()}
    for row, line in values.items():
        widths.setdefault(len(row), line)
    width = min(widths)
    twice = next((line for row, line in values.items() if len(set(row)) < len(row)), None)
    if len(widths) > 1:
        if twice is None:
            return False
        (one, first), (other, second) = list(widths.items())[:2]
        raise InputError(f"{path}: line {first} has {counted(one, 'flag')} and line {second} "
                         f"{other}; write a 0 or a 1 for each label in all lines.")
    are_names = {item for items in rows for item in items} <= set(labels)
    if twice is None and are_names:
        return False
    if labels and (width == len(labels) or twice is not None):
        if width != len(labels):
            raise InputError(f"{path}, line {twice}: there are {counted(width, 'flag')}, but "
                             f"{counted(len(labels), 'label')}: {', '.join(labels)}; write a flag "
                             "for each label.")
        return True
    is_in_both_orders = len(values) > 1 < width and not is_empty_somewhere
    if labels or twice is not None or is_in_both_orders:
        return not labels
    line = next(iter(rows.values()))
    raise InputError(f"{path}, line {line}: {', '.join(next(iter(rows)))} may be names of labels "
                     "or flags; give --labels=0,1 if they are names, else the names of the flags "
                     "with --labels.")
