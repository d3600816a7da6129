"""Sentences of CoNLL-U files, Universal Dependencies' treebanks (universaldependencies.org)."""

import itertools
import re
from collections.abc import Iterator

from bert_tf.errors import InputError, choose_from
from bert_tf.tasks.rows import Omissions, read_lines

ENDING = ".conllu"
COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Words and tags that are read where no flag names others.
DEFAULT_COLUMNS = ("form", "upos")
_NONE = "_"
_WORD = re.compile(r"[1-9]\d*")
# A token of several words, such as 1-2, and a word that is not in the text, such as 8.1: neither is
# a word that is tagged.
_OTHER = re.compile(r"[1-9]\d*-[1-9]\d*|\d+\.[1-9]\d*")


def read_sentences(path: str, layout, omissions: Omissions) -> Iterator[tuple]:
    """Yields (line number of the first word, words, tags or None, number of the document).

    Words are the syntactic ones, which treebanks tag: of a token of several words its words are
    read, and words that are not in the text are left out. The columns of `layout` are names of
    `COLUMNS` or numbers; "feats.NAME" is one feature, in upper or lower case, "_" where a word has
    it not, or without a value. Raises InputError if a line is not of this format, or there is no
    such column."""
    word, tag = _column(layout.texts[0]), layout.label is not None and _column(layout.label)
    words: list[str] = []
    tags: list[str] = []
    first = document = last = 0
    begun = False
    for number, line in itertools.chain(read_lines(path), [(0, "")]):    # ends the last sentence
        if not line.strip():
            if words:
                yield first, words, tags, document
                begun = True
            words, tags, last = [], [], 0
            continue
        if line.startswith("#"):
            document += begun and line[1:].split()[:1] == ["newdoc"]
            continue
        cells = line.split("\t")
        if len(cells) != len(COLUMNS) or not all(cells):
            omissions.add_malformed(f"{path}, line {number}", f"does not have {len(COLUMNS)} "
                                    "columns between tabs")
        elif _WORD.fullmatch(cells[0]) and int(cells[0]) <= last:
            omissions.add_malformed(f"{path}, line {number}", f"has word {cells[0]} after word "
                                    f"{last}; put a blank line between sentences")
        elif _WORD.fullmatch(cells[0]):
            if not words:
                first = number
            last = int(cells[0])
            words.append(_cell(cells, word))
            if tag:
                tags.append(_cell(cells, tag))
        elif not _OTHER.fullmatch(cells[0]):
            omissions.add_malformed(f"{path}, line {number}",
                                    f"has {cells[0]!r} where the number of a word must be")


def _column(name):
    plain, _, feature = str(name).lower().partition(".")
    if plain.removeprefix("-").isdecimal() and -len(COLUMNS) <= int(plain) < len(COLUMNS):
        plain = COLUMNS[int(plain)]
    if plain in COLUMNS and (not feature or plain in ("feats", "misc")):
        return COLUMNS.index(plain), feature
    raise InputError(f"CoNLL-U has no column {name!r}; {choose_from(plain, COLUMNS)[:-1]}, or "
                     "feats.NAME for one feature.")


def _cell(cells, column):
    number, feature = column
    if not feature:
        return cells[number]
    known = (part.partition("=")[::2] for part in cells[number].split("|"))
    return next((value for name, value in known if name.lower() == feature), "") or _NONE
