"""Texts whose words are annotated, as annotation tools write them: JSON, and brat's files.

A JSON file is a list of values, or has one on each line. `_FORMS` names the forms of a value that
are read, each with the documentation of its tool as the source:

- Hugging Face: words under `tokens` and a tag for each under `ner_tags` or `tags`;
- doccano (1.8): `text`, and spans under `label`, `labels` or `entities`;
- Prodigy (1.15): `text`, `spans`, and its own words under `tokens`; only accepted answers;
- Label Studio (1.13): JSON with `data` and `annotations`, and JSON-MIN;
- spaCy (2 and 3): [text, {"entities": spans}], also a list of them under `annotations` beside
  `classes` (tecoholic's NER annotator), `Doc.to_json`, and the JSON of training with `paragraphs`.

A span is [start, end, name] or an object; its places count characters. Where a form has no words of
its own, a text is split as BERT splits it: at white space, and each punctuation mark and each
ideograph is a word. brat (1.3) has a file .ann beside each .txt, whose lines are sentences."""

import os
import re
import typing
from collections.abc import Callable, Iterable, Iterator

from bert_tf.errors import InputError, counted
from bert_tf.files import is_folder, match_names, open_unpacked, shown_name
from bert_tf.tasks.forms import BRAT, is_brat
from bert_tf.tasks.rows import Omissions, json_values, read_lines
from bert_tf.tokenization.wordpiece import aligned_words

FOUND = "(found)"       # in the place of a column's name: the key that the form has
DEFAULT_COLUMNS = (FOUND, FOUND)

_TAGS = ("ner_tags", "tags", "ner", "labels", "label")
_SPANS = ("spans", "ents", "entities", "label", "labels")


class Row(typing.NamedTuple):
    """An annotated text."""

    line: int   # the number of its first line
    # The JSON object that it is; of other forms an object with the text or the words.
    cells: dict
    words: list[str]
    # Of the words, in the form's own way to write them; None where they are not asked for.
    tags: list[str] | None
    document: int   # the number of its document
    text: str | None    # that was split into the words; None if the form has words


class _Span(typing.NamedTuple):
    start: int
    end: int
    name: str
    text: str | None = None     # where the form repeats it


class _Text(typing.NamedTuple):
    """A text as a form has it: words, and tags or spans."""

    words: list[str]
    tags: list | None = None
    text: str | None = None
    spans: Iterable[_Span] | None = None
    places: Iterable = ()       # (word, start, end) of the words in the text
    whole: str | None = None    # the text, if the form has no words


class _Unlabelled(Exception):
    """A text that nobody annotated, or whose annotation was rejected."""


def read_sentences(path: str, layout, omissions: Omissions) -> Iterator[tuple]:
    """Yields (line, words, tags or None, number of the document); see `read_rows`."""
    return ((row.line, row.words, row.tags, row.document)
            for row in read_rows(path, layout, omissions))


def read_rows(path: str, layout, omissions: Omissions) -> Iterator[Row]:
    """Yields the annotated texts of a file. The columns of `layout` are the keys of the text or the
    words, and of the spans or the tags, or `FOUND`; numbers are names of `layout.tag_names`. Raises
    InputError if no form fits, a span cuts a word, or spans overlap; names file and line."""
    rows = _brat if is_brat(path) else _json
    for name, line, document, cells, take in rows(path, layout):
        where = f"{shown_name(name)}, line {line}"
        try:
            for text in take():
                yield Row(line, cells or {"words": text.words}, text.words,
                          _tags_of(text, layout, where), document, text.whole)
        except _Unlabelled:
            omissions.without_label += 1
        except InputError:      # a ValueError too: of the whole file, not of a line
            raise
        except ValueError as problem:
            omissions.add_malformed(where, str(problem))


def split_words(text: str) -> list[tuple[str, int, int]]:
    """(word, start, end) of the words of a text, as BERT splits it without changing letters."""
    return [(word, places[0], places[-1] + 1) for word, places in aligned_words(text, False)]


# The rows of files: (name of the file, line, document, cells or None, function that gives `_Text`s)

def _json(path, layout):
    for document, (line, value) in enumerate(json_values(path)):
        holds_one = isinstance(value, dict) and not ({"paragraphs", "classes"} & value.keys())
        yield (path, line, document, holds_one and value,
               lambda value=value: _read(value, layout))


def _brat(path, layout):
    names = [os.path.splitext(path)[0] + BRAT]
    if is_folder(path):
        names = match_names(path, f"**/*{BRAT}")
    if not names:
        raise InputError(f"{path} has no files *{BRAT}; name a folder of brat, or a file.")
    for document, name in enumerate(names):
        source = os.path.splitext(name)[0] + ".txt"
        with open_unpacked(source) as file:
            try:
                text = file.read().decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(f"{source} is not UTF-8; save it as UTF-8.") from error
        spans = list(_brat_spans(name, text))
        for start, end in _lines(text, spans):
            inside = [span._replace(start=span.start - start, end=span.end - start)
                      for span in spans if start <= span.start < end]
            piece = text[start:end]
            yield (source, text.count("\n", 0, start) + 1, document, {"text": piece},
                   lambda piece=piece, inside=inside: [_text(piece, inside)])


def _brat_spans(path, text):
    """Yields the entities of a file. One over several lines of the text has a part on each."""
    for number, line in read_lines(path):
        if not line.startswith("T"):        # relations, events, notes
            continue
        match = re.fullmatch(r"T\S*\t(\S+) (\d+ \d+(?:;\d+ \d+)*)\t(.*)", line)
        places = list(map(int, re.findall(r"\d+", match[2]))) if match else []
        if not match or any(text[end:start].strip()
                            for end, start in zip(places[1::2], places[2::2])):
            raise InputError(f"{path}, line {number} is not an entity of one part, such as "
                             "\"T1, tab, PER 0 3, tab, Ann\"; split or remove it.")
        if places[-1] > len(text):
            raise InputError(f"{path}, line {number} has an entity that ends at {places[-1]}, in a "
                             f"text of {len(text)} characters; give the text that was annotated.")
        yield _Span(places[0], places[-1], match[1], match[3])


def _lines(text, spans):
    """Yields (start, end) of the lines of a text that are not blank; a span's lines are one."""
    start = 0
    for match in re.finditer(r"\n|$", text):
        place = match.start()
        if any(span.start < place < span.end for span in spans):
            continue
        if text[start:place].strip():
            yield start, place
        start = match.end()


# The forms of JSON

def _read(value, layout):
    if isinstance(value, list) and [*map(type, value)] == [str, dict]:
        return [_text(value[0], map(_span, value[1].get("entities", [])))]
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object of an annotated text; see docs/tasks.md")
    return next(read for fits, read in _FORMS if fits(value))(value, layout)


def _is_words(value):
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _words_of(row):
    return next((name for name in ("tokens", "words") if _is_words(row.get(name))), None)


def _read_words(row, layout):
    name = _key(row, layout.texts[0], _words_of(row))
    words = row[name]
    if not _is_words(words):
        raise ValueError(f"has {name!r} that is not a list of words")
    if layout.label is None:
        return [_Text(words)]
    usual = next((key for key in _TAGS if isinstance(row.get(key), list)), None)
    tags = row[_key(row, layout.label, usual, "tags of its words")]
    if not isinstance(tags, list) or len(tags) != len(words):
        raise ValueError(f"has {counted(len(words), 'word')}, but not as many tags")
    return [_Text(words, tags)]


def _read_spans(row, layout):
    if row.get("answer") in ("reject", "ignore"):       # Prodigy
        raise _Unlabelled
    text = _text_in(row, layout)
    return [_text(text, _spans_in(row, layout), row.get("tokens"))]


def _read_label_studio(row, layout):
    text = _text_in(row["data"], layout)
    if layout.label is None:
        return [_text(text, None)]
    done = [part for part in row.get("annotations", row.get("completions"))
            if isinstance(part, dict) and not part.get("was_cancelled")]
    if not done:
        raise _Unlabelled
    spans = [[_span(part["value"]) for part in annotation["result"]
              if isinstance(part.get("value"), dict) and "start" in part["value"]
              and str(part.get("type", "labels")).endswith("labels")]
             for annotation in done]
    if any(set(others) != set(spans[0]) for others in spans[1:]):
        raise ValueError(f"has {len(spans)} annotations that differ; keep one of them")
    return [_text(text, spans[0])]


def _read_paragraphs(row, layout):
    for paragraph in row["paragraphs"]:
        for sentence in paragraph["sentences"]:
            tokens = sentence["tokens"]
            yield _Text([token["orth"] for token in tokens], [token.get("ner") for token in tokens])


def _read_pairs(row, layout):
    for pair in filter(None, row["annotations"]):       # None: a text that was passed over
        yield from _read(pair, layout)


# The readers of objects: the first that fits.
_FORMS: tuple[tuple[Callable, Callable], ...] = (
    (lambda row: "classes" in row and isinstance(row.get("annotations"), list), _read_pairs),
    (lambda row: isinstance(row.get("paragraphs"), list), _read_paragraphs),
    (lambda row: isinstance(row.get("data"), dict)
     and isinstance(row.get("annotations", row.get("completions")), list), _read_label_studio),
    (lambda row: _words_of(row) is not None, _read_words),
    (lambda row: True, _read_spans),
)


def _key(row, column, usual, what="text"):
    if column == FOUND:
        column = usual
    if column not in row:
        what = what if column is None else repr(column)
        raise ValueError(f"has no {what}; it has {', '.join(map(repr, row)) or 'nothing'}")
    return column


def _text_in(row, layout):
    texts = [name for name, value in row.items() if isinstance(value, str)]
    usual = texts[0] if len(texts) == 1 else "text"
    text = row[_key(row, layout.texts[0], usual)]
    if not isinstance(text, str):
        raise ValueError(f"has {text!r} where text must be")
    return text


def _spans_in(row, layout):
    if layout.label is None:
        return None
    usual = next((name for name in (*_SPANS, *row) if isinstance(row.get(name), list) and (
        name in _SPANS or row[name] and isinstance(row[name][0], dict)
        and {"start", "end"} <= row[name][0].keys())), None)
    if usual is None and "annotation_id" in row:        # of Label Studio, JSON-MIN: no span
        return []
    spans = row[_key(row, layout.label, usual, "spans (an empty list, if the text has none)")]
    if not isinstance(spans, list):
        raise ValueError(f"has {spans!r} where a list of spans must be")
    return [_span(span) for span in spans
            if not (isinstance(span, dict) and span.get("answer") == "reject")]     # Prodigy


def _span(value):
    parts, said = [], None
    if isinstance(value, dict):
        parts = [next((value[name] for name in names if name in value), None) for names in (
            ("start", "start_offset"), ("end", "end_offset"), ("label", "labels", "type"))]
        said = value.get("text")
    elif isinstance(value, list):
        parts = value
    start, end, name = (*parts, None, None, None)[:3]
    if isinstance(name, list) and len(name) == 1:
        name = name[0]
    if type(start) is not int or type(end) is not int or not name or not isinstance(name, str):
        raise ValueError(f"has {value!r} where a span must be: the numbers of its first character "
                         "and of the one behind its last, and the name of its label")
    return _Span(start, end, name, said if isinstance(said, str) else None)


def _text(text, spans, tokens=None):
    if isinstance(tokens, list) and tokens and isinstance(tokens[0], dict):
        places = [(token["start"], token["end"]) for token in tokens]
        words = [(text[start:end], start, end) for start, end in places if text[start:end].strip()]
        return _Text([word for word, *_ in words], None, text, spans, words)
    words = split_words(text)
    return _Text([word for word, *_ in words], None, text, spans, words, text)


# From spans to tags

def _tags_of(text, layout, where):
    if layout.label is None:
        return None
    if text.spans is not None:
        return _tags_of_spans(text.text, text.places, text.spans)
    if not all(type(tag) is int for tag in text.tags):
        if not _is_words(text.tags):
            raise ValueError("has tags that are not names")
        return text.tags
    names = layout.tag_names
    if not all(0 <= tag < len(names) for tag in text.tags):
        raise InputError(f"{where}: its tags are numbers, which the file does not name; give all "
                         "names in their order with --labels, such as --labels=O,B-PER,I-PER.")
    return [names[tag] for tag in text.tags]


def _tags_of_spans(text, words, spans):
    tags = ["O"] * len(words)
    starts = {start: index for index, (_, start, _) in enumerate(words)}
    ends = {end: index for index, (*_, end) in enumerate(words)}
    last = None
    for span in sorted({_placed(text, span) for span in spans}):
        if last and span.start < last.end:
            raise ValueError(f"has spans that overlap, {_shown(text, last)} and "
                             f"{_shown(text, span)}, and a word has one tag; keep one of the two")
        last = span
        if span.start not in starts or span.end not in ends:
            cut = next((f"cuts the word {word!r}" for word, start, end in words
                        if start < span.start < end or start < span.end < end), "holds no word")
            raise ValueError(f"has the span {_shown(text, span)}, which {cut}; let it begin and "
                             "end with words")
        first = starts[span.start]
        count = ends[span.end] + 1 - first
        tags[first:first + count] = [f"B-{span.name}"] + [f"I-{span.name}"] * (count - 1)
    return tags


def _placed(text, span):
    """Returns a span without its text, and without blanks at its ends. Label Studio counts UTF-16,
    in which a character such as an emoji counts twice."""
    start, end = span.start, span.end
    if span.text is not None and not _says(text[start:end], span.text):
        start, end = (len(text.encode("utf-16-le")[:2 * place].decode("utf-16-le", "ignore"))
                      for place in (start, end))
        if not _says(text[start:end], span.text):
            raise ValueError(f"has the span {_shown(text, span)}, whose own text is {span.text!r}; "
                             "give the text that was annotated")
    if not 0 <= start < end <= len(text):
        raise ValueError(f"has the span {_shown(text, span)} in a text of {len(text)} characters; "
                         "give the text that was annotated")
    inner = text[start:end]
    start, end = end - len(inner.lstrip()), start + len(inner.rstrip())
    return _Span(start, end, span.name)


def _says(text, said):
    """Whether a span's own text is the text at its place; tools write line ends in several ways."""
    return text.split() == said.replace("\\n", "\n").split()


def _shown(text, span):
    return f"{text[max(span.start, 0):span.end]!r} ({span.name}, {span.start} to {span.end})"
