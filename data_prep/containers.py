"""Reading of each container of a corpus: pieces, which hold whole documents and do not depend on
the number of processes; whoever has a piece reads its documents."""

import codecs
import contextlib
import dataclasses
import functools
import html
import json
import os
import re
import xml.etree.ElementTree
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import google_crc32c

from bert_tf import files
from bert_tf.data.text import corpus
from bert_tf.errors import InputError, from_extra
from bert_tf.tasks import libraries
from data_prep import wikipedia
from data_prep.sentences import LANGUAGES

_PIECE_BYTES = 8 << 20
_PAGE_END = re.compile(wikipedia.PAGE_END + rb"\s*")
# What `str.strip` takes from the ends of a line.
_WHITE = b"(?:%s)*" % b"|".join(re.escape(sign.encode()) for sign in map(chr, range(1 << 14))
                                if sign.isspace() and sign != "\n")
_BLANK = re.compile(_WHITE + rb"\n?")
# Line ends with nothing between them, by how many there are.
_GAPS = {2: re.compile(rb"\n" + _WHITE + rb"\n"),
         3: re.compile(rb"\n" + _WHITE + rb"\n" + _WHITE + rb"\n")}
_HEAD_BYTES = 1 << 16
# The first bytes of a dump, whatever its name, such as NAME.xml-p1p41242.
_DUMP_HEAD = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<mediawiki\b")
# WikiExtractor's text, and the keys of its JSON lines.
_DOC = re.compile(r'^(<doc id="[^"\n]*" .*url=".*" title=".*">)$', re.M)
_DOC_END = re.compile(rb"^</doc>\s*\n", re.M)
_EXTRACTED_KEYS = {"id", "url", "title", "text"}


class Piece(NamedTuple):
    """A part of a corpus."""

    source: str
    content: Any    # bytes, texts, or where they are, as the container's `documents` takes them
    first: int = 1  # the number of its first line, from 1, or of another part
    language: str = ""  # that the source names, if `sentences` has rules for it


@dataclasses.dataclass(frozen=True)
class Container:
    """A kind of files or data sets: `pieces` yields the `Piece`s of a name and of the column of the
    texts, `documents` the texts of the documents of a piece and of that column."""

    pieces: Callable[[str, str], Iterator[Piece]]
    documents: Callable[[Piece, str], Iterable[str]]


def _cut(source, boundary):
    """Yields the bytes of a file as pieces that end at boundaries; the file is read once, from its
    begin to its end. A piece is larger than `_PIECE_BYTES` only if a document is."""
    line, held, size = 1, b"", _PIECE_BYTES
    with files.open_unpacked(source) as file:
        while True:
            held += file.read(size - len(held))
            is_last = len(held) < size
            if line == 1:
                held = held.removeprefix(codecs.BOM_UTF8)
            end = len(held)
            if not is_last:
                end = corpus.last_cut(lambda low, high, held=held: held[low:high], 0, end, boundary)
            if end:
                yield Piece(source, held[:end], line)
                line += held.count(b"\n", 0, end)
                held = held[end:]
            if is_last:
                return
            size = _PIECE_BYTES if len(held) < _PIECE_BYTES else 2 * len(held)


def _plain_pieces(source, column):
    newlines = 3 if _has_gaps(source) else 2
    for piece in _cut(source, _GAPS[newlines]):
        yield piece._replace(content=(piece.content, newlines))


def _has_gaps(source):
    blank, begun = 0, False
    with files.open_unpacked(source) as file:
        for line in file:
            if _BLANK.fullmatch(line):
                blank += 1
            elif begun and blank > 1:
                return True
            else:
                blank, begun = 0, True
    return False


def _plain_documents(piece, column):
    content, newlines = piece.content
    text = "\n".join(line.strip() for line in corpus.decode(content, [piece.source])).strip()
    return filter(None, re.split(f"\n{{{newlines},}}", text))


def _json_documents(piece, column):
    for number, line in enumerate(piece.content.split(b"\n"), piece.first):
        where = f"{piece.source}, line {number}"
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(f"{where} is not a JSON object; each line must be one.")
        yield _text_of(row, column, where)


def _text_of(row, column, where):
    if column not in row:
        raise InputError(f"{where} has no column {column!r}; it has {', '.join(map(str, row))}; "
                         "name the column of the texts with --text_column.")
    text = row[column]
    if not isinstance(text, str | None):
        raise InputError(f"{where} has a value of type {type(text).__name__} in place of a text; "
                         "name the column of the texts with --text_column.")
    return text or ""


@contextlib.contextmanager
def _parquet_file(source):
    parquet = from_extra("pyarrow.parquet", "corpora", f"{source}: Parquet")
    try:
        with parquet.ParquetFile(files.staged(source)) as file:
            yield file
    except InputError:      # a ValueError too
        raise
    except (OSError, ValueError) as error:      # pyarrow's errors are among these
        raise InputError(f"{source}: can't be read ({error}); if the file is damaged, download it "
                         "again.") from error


def _parquet_pieces(source, column):
    with _parquet_file(source) as file:
        _text_of(dict.fromkeys(file.schema_arrow.names), column, source)
        yield from (Piece(source, None, group) for group in range(file.num_row_groups))


def _parquet_documents(piece, column):
    with _parquet_file(piece.source) as file:
        for batch in file.iter_batches(row_groups=[piece.first], columns=[column]):
            for text in batch.column(0).to_pylist():
                yield _text_of({column: text}, column, piece.source)


def _dump_pieces(source, column):
    with files.open_unpacked(source) as file:
        head = file.read(_HEAD_BYTES)
    if b"<mediawiki" not in head:
        raise InputError(f"{source} is not a MediaWiki dump, which starts with <mediawiki>; only "
                         "such dumps may have the extension .xml.")
    namespaces, last = wikipedia.read_namespaces(head), b""
    language = wikipedia.read_language(head)
    if language not in LANGUAGES:
        language = ""
    for piece in _cut(source, _PAGE_END):
        last = piece.content
        yield piece._replace(content=(last, namespaces), language=language)
    if last.rfind(wikipedia.PAGE) > last.rfind(wikipedia.PAGE_END):
        print(f"warning: {source} ends within a page, which is left out; if the dump was cut, "
              "download it again.", flush=True)


def _dump_documents(piece, column):
    content, namespaces = piece.content
    try:
        for _, markup in wikipedia.articles(content, namespaces):
            yield wikipedia.plain_text(markup, namespaces["hidden"], piece.language)
    except xml.etree.ElementTree.ParseError as error:
        raise InputError(f"{piece.source}: the pages from line {piece.first} on are not XML "
                         f"({error}); if the file is damaged, download it again.") from error


def _extracted_documents(piece, column):
    """The documents of WikiExtractor's text, where each line is a paragraph; titles are left out,
    as where dumps are read."""
    lines = (line.strip() for line in corpus.decode(piece.content, [piece.source]))
    parts = _DOC.split("\n".join(lines))
    for header, body in zip(parts[1::2], parts[2::2], strict=True):
        paragraphs = [line for line in body.split("\n") if line and line != "</doc>"]
        if paragraphs and f'title="{paragraphs[0]}"' in header:
            del paragraphs[0]
        yield html.unescape("\n\n".join(paragraphs))


def _library_pieces(source, column):
    texts, size, first = [], 0, 1
    for number, row in enumerate(libraries.find(source).rows(), 1):
        texts.append(_text_of(row, column, f"{source}, row {number}"))
        size += len(texts[-1])
        if size >= _PIECE_BYTES:
            yield Piece(source, texts, first)
            texts, size, first = [], 0, number + 1
    yield Piece(source, texts, first)


_PLAIN = Container(_plain_pieces, _plain_documents)
_JSON = Container(lambda source, column: _cut(source, corpus.LINE_END), _json_documents)
_LIBRARY = Container(_library_pieces, lambda piece, column: piece.content)
_DUMP = Container(_dump_pieces, _dump_documents)
_EXTRACTED = Container(lambda source, column: _cut(source, _DOC_END), _extracted_documents)
_EXTRACTED_JSON = Container(_JSON.pieces, lambda piece, column: (
    html.unescape(text.replace("\n", "\n\n")) for text in _json_documents(piece, column)))
# Containers by the end of a file's name, without the ending of packed files.
_BY_ENDING = {".jsonl": _JSON, ".ndjson": _JSON, ".json": _JSON, ".xml": _DUMP,
              ".parquet": Container(_parquet_pieces, _parquet_documents)}


def container_of(source: str) -> Container:
    """Returns how a file or a data set is read; a file of another ending is plain text, unless it
    begins as a dump or as WikiExtractor's output does."""
    if files.is_library_name(source):
        return _LIBRARY
    ending = os.path.splitext(files.unpacked_name(source))[1].lower()
    return _BY_ENDING.get(ending) or _by_content(source, files.identity(source))


@functools.cache
def _by_content(source, version):
    """The container of a file by its first line; a file that changed is looked at again."""
    with files.open_unpacked(source) as file:
        head = file.read(_HEAD_BYTES).removeprefix(codecs.BOM_UTF8)
        if head.startswith(b"{") and b"\n" not in head:
            head += file.readline()
    if _DUMP_HEAD.match(head):
        return _DUMP
    line = head.partition(b"\n")[0].strip()
    if _DOC.match(line.decode("utf-8", "replace")):
        return _EXTRACTED
    if line.startswith(b"{"):
        with contextlib.suppress(ValueError, RecursionError):
            if json.loads(line).keys() >= _EXTRACTED_KEYS:
                return _EXTRACTED_JSON
    return _PLAIN


def is_plain(source: str) -> bool:
    return container_of(source) is _PLAIN


def version_of(source: str) -> str:
    """Returns a text that changes when the documents of a source may."""
    if files.is_library_name(source):
        return str(libraries.find(source))
    # Of a local file not the date: a copy on the next machine has another.
    return f"{source} {files.identity(source) if files.is_remote(source) else files.digest(source)}"


def checksum(content: bytes) -> str:
    return google_crc32c.Checksum(content).digest().hex()
