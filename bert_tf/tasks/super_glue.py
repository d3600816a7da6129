"""Files of SuperGLUE whose lines hold more than a row of texts (arXiv:1905.00537;
super.gluebenchmark.com): MultiRC, ReCoRD, WiC and WSC."""

import json
import re
import typing
from collections.abc import Callable, Iterator

from bert_tf.errors import InputError
from bert_tf.files import is_library_name
from bert_tf.tasks.libraries import read_library
from bert_tf.tasks.rows import read_lines

PLACEHOLDER = "@placeholder"
_BLANKS = re.compile("[ \t\n\f\r]+")
_SENTENCE_MARKS = re.compile(r"<br>|<b>Sent \d+: </b>")     # in passages of MultiRC
_WORD = re.compile(r"\S+")


class Question(typing.NamedTuple):
    """A question of MultiRC."""

    passage: int        # its number in the file
    number: int         # of the question in its passage
    text: str           # the passage, with the marks of its sentences if the file has them
    question: str
    answers: list[tuple[int, str, str | None]]      # (number, text, label if the file has it)


class Cloze(typing.NamedTuple):
    """A query of ReCoRD."""

    number: int                 # in the file
    text: str                   # the passage without marks
    query: str                  # with "@placeholder"
    candidates: list[str]       # the texts of the passage's entities, each once
    answers: list[str]          # the right ones, none where the file has no labels


def each_line(form: str) -> Callable:
    """Returns a decorator of a function, which makes it a reader of a file of JSON objects, or of a
    library's data set as such a file. The reader takes the path and further arguments, and yields
    all that `function(number of the line, object, further arguments)` yields. `form`: a key of
    `library_lines`. Raises InputError if a line is not such an object; names file and line."""
    def reader(read):
        def read_file(path, *args):
            lines, row_of = read_lines(path), json.loads
            if is_library_name(path):
                lines, row_of = read_library(path, form), dict
            for number, line in lines:
                try:
                    yield from read(number, row_of(line), *args)
                except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
                    raise InputError(
                        f"{path}, line {number} is not an example of this SuperGLUE task "
                        f"({type(error).__name__}: {error}); correct it.") from error
        return read_file
    return reader


@each_line("multirc")
def read_questions(line: int, row: dict) -> Iterator[tuple[int, Question]]:
    """Yields (line, `Question`) of a file of MultiRC."""
    passage = row["passage"]
    text = str(passage["text"])
    for place, question in enumerate(passage["questions"]):
        answers = [(answer.get("idx", index), str(answer["text"]),
                    str(int(answer["label"])) if "label" in answer else None)
                   for index, answer in enumerate(question["answers"])]
        yield line, Question(row.get("idx", line - 1), question.get("idx", place), text,
                             str(question["question"]), answers)


@each_line("record")
def read_clozes(line: int, row: dict) -> Iterator[tuple[int, Cloze]]:
    """Yields (line, `Cloze`) of a file of ReCoRD. The end of an entity is its last character."""
    whole = row["passage"]["text"]
    candidates = dict.fromkeys(cut(whole, entity["start"], entity["end"] + 1)[1]
                               for entity in row["passage"]["entities"])
    if not candidates:
        raise ValueError("the passage has no entities")
    # Highlights become sentences (text-to-text-transfer-transformer, t5/data/preprocessors.py,
    # record).
    text = re.sub(r"([.?!\"'])\n@highlight\n", r"\1 ", whole).replace("\n@highlight\n", ". ")
    for query in row["qas"]:
        if PLACEHOLDER not in query["query"]:
            raise ValueError(f"the query has no {PLACEHOLDER}")
        answers = dict.fromkeys(answer["text"] for answer in query.get("answers", ()))
        yield line, Cloze(query["idx"], text, query["query"], list(candidates), list(answers))


@each_line("jsonl")
def _word_in_context(line, row):
    pieces = [piece for number in "12" for piece in cut(
        row[f"sentence{number}"], int(row[f"start{number}"]), int(row[f"end{number}"]))]
    yield line, pieces, _boolean(row), 0


@each_line("wsc")
def _schemas(line, row):
    yield line, cut_schema(row), _boolean(row), 0


def _boolean(row):      # true and false may be texts
    return str(row["label"]).capitalize() if row.get("label") is not None else None


def cut_schema(row: dict) -> list[str]:
    """Returns the text of a line of WSC cut at both spans one after the other, the referent and the
    pronoun; see `cut`."""
    text, target = row["text"], row["target"]
    return [piece for number in "12" for piece in cut(text, *_find_span(
        text, int(target[f"span{number}_index"]), target[f"span{number}_text"]))]


def referent_of(row: dict) -> str:
    """Returns the referent of a line of WSC as the line names it. Where the text does not have it,
    its first letter gets the case of the text's, and its last full stop is dropped
    (tensorflow_datasets, super_glue/wsc.fixed)."""
    text, span = row["text"], row["target"]["span1_text"]
    if span in text:
        return span
    first = "".join(text.split()[int(row["target"]["span1_index"]):][:1])[:1]
    fixed = (span[:1].lower() if first.islower() else span[:1].upper()) + span[1:]
    fixed = fixed.rstrip(".").replace("\n", " ")
    return fixed if fixed in text else span


def cut(text: str, start: int, end: int) -> list[str]:
    """Returns the text before the part from `start` to before `end`, the part, and the rest."""
    if not 0 <= start < end <= len(text):
        raise ValueError(f"characters {start} to {end} are not in a text of {len(text)}")
    return [text[:start], text[start:end], text[end:]]


def _find_span(text, index, span):
    """Returns the start and end of a span of words that the file says to begin at word `index`,
    where a single blank ends a word. A few lines name a neighbouring word: of equal texts the
    nearest counts. The span may end in a full stop that the text lacks. Where the text lacks the
    span, as many words from `index` on count."""
    starts = [0, *(match.end() for match in re.finditer(" ", text))]
    if not 0 <= index < len(starts):
        raise ValueError(f"word {index} is not in a text of {len(starts)}")
    begin, size = starts[index], len(span.split())
    if not size:
        raise ValueError("a span is empty")
    plain = r"\s+".join(map(re.escape, span.split()))
    places = next(filter(None, ([match.span() for match in re.finditer(
        rf"(?<!\w){part}(?!\w)", text, re.IGNORECASE)]
        for part in (plain, plain.removesuffix(r"\.")))), [])
    words = [match.span() for match in _WORD.finditer(text, begin)][:size]
    return min(places or [(words[0][0], words[-1][1])], key=lambda place: abs(place[0] - begin))


def _multirc_rows(path):
    for group, (line, question) in enumerate(read_questions(path)):
        text = _BLANKS.sub(" ", _SENTENCE_MARKS.sub(" ", question.text)).strip()
        for _, answer, label in question.answers:
            yield line, [text, f"{question.question} {answer}"], label, group


def _record_rows(path):
    for group, (line, cloze) in enumerate(read_clozes(path)):
        for candidate in cloze.candidates:
            label = str(int(candidate in cloze.answers)) if cloze.answers else None
            yield line, [cloze.text, cloze.query.replace(PLACEHOLDER, candidate)], label, group


# Readers of a file's examples, as `bert_tf.tasks.reading` yields them.
_READERS = {"multirc": _multirc_rows, "record": _record_rows, "wic": _word_in_context,
            "wsc": _schemas}
FORMATS = tuple(_READERS)


def read_rows(task, layout, path: str, omissions) -> Iterator[tuple]:
    """Yields (line, texts, label, group), the label None where the split has none; the examples of
    one question have one group. Raises InputError if a line is not an example of the task, or lacks
    the label that the split has."""
    for line, texts, label, group in _READERS[layout.format](path):
        yield line, texts, layout.label and labelled(label, path, line), group


def labelled(label: typing.Any, path: str, line: int) -> typing.Any:
    """Returns the label, or raises InputError if it is None."""
    if label is None:
        raise InputError(f"{path}, line {line} has no label; give a file with labels.")
    return label
