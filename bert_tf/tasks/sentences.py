"""Tagged sentences: a word a line, its columns apart by spaces or tabs, a blank line after each
sentence (CoNLL-2003).
"""

import re

from bert_tf.errors import InputError
from bert_tf.tasks.tables import read_lines

_SPACES = re.compile("[ \t]+")
_DOCUMENT = "-DOCSTART-"


def read_sentences(path, layout, omissions):
    """Yields (line number of the first word, words, tags or None, number of the document).

    A line whose word is -DOCSTART- begins a document and is no sentence.

    Args:
        path: the file.
        layout: `Split`; its columns are numbers, -1 the last.
        omissions: `Omissions`, which counts malformed lines.

    Raises:
        InputError: a line has another number of columns than the first, or the tag's column is
            that of the words.
    """
    word_column, tag_column = _number(layout.texts[0]), _number(layout.label)
    words, tags, first, document, width = [], [], 0, 0, None
    for number, line in read_lines(path):
        cells = _SPACES.split(line.strip(" \t"))
        width = width or len(cells)
        needed = max(_cells(word_column), _cells(tag_column), 1)
        if cells != [""] and cells[0] != _DOCUMENT and (len(cells) != width or width < needed):
            omissions.add_malformed(f"{path}, line {number}", f"has {len(cells)} columns where "
                                    f"there must be {max(width, needed)}")
            continue
        if cells == [""] or cells[0] == _DOCUMENT:
            if words:
                yield first, words, tags, document
            words, tags = [], []
            document += cells[0] == _DOCUMENT
            continue
        if tag_column is not None and range(width)[tag_column] == range(width)[word_column]:
            raise InputError(f"{path}, line {number}: column {tag_column} of {width} is that of the"
                             " words; name that of their tags with --label_column.")
        first = first if words else number
        words.append(cells[word_column])
        if tag_column is not None:
            tags.append(cells[tag_column])
    if words:
        yield first, words, tags, document


def _number(column):
    if column is None:
        return None
    try:
        return int(column)
    except ValueError:
        raise InputError(f"column {column!r} of a file of tagged words must be a number from 0, or "
                         "-1 for the last.") from None


def _cells(column):
    """How many cells a line must have to have this one."""
    return 0 if column is None else column + 1 if column >= 0 else -column
