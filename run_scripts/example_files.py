"""Examples of files or of standard input, answered some at a time, and files of the answers.

A file has a line an example (`lines`), or it is a table: `tsv`, where quotes are plain characters,
`csv`, or `jsonl`, JSON objects. For a tagger it may also hold tagged words (`words`, `conllu`), and
its JSON is that of annotation tools. Memory does not grow with the file.
"""

import codecs
import collections
import contextlib
import csv
import fnmatch
import itertools
import json
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator

from bert_tf.data.text.units import SPACES
from bert_tf.data.text.vectors import SEPARATOR
from bert_tf.errors import InputError
from bert_tf.files import (
    STANDARD,
    TABLES,
    as_file,
    check_file,
    check_input,
    ending,
    exists,
    is_folder,
    open_unpacked,
    same_file,
    shown_name,
    unpacked_name,
    write_aside,
)
from bert_tf.tasks import annotations, conllu, forms, rows
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import Malformed, texts_of
from bert_tf.tasks.rows import Omissions, Table
from bert_tf.tasks.tag_schemes import is_tag_of
from bert_tf.tasks.task import Split
from bert_tf.tasks.task_flags import COLUMNS

FORMATS = ("lines", *dict.fromkeys(TABLES.values()))
# Of words, for a tagger: how each is read. JSON comes with `annotations.read_rows`.
_WORDS = {forms.WORDS: rows.read_sentences, forms.CONLLU: conllu.read_sentences}
INPUT_FORMATS = (*FORMATS, *_WORDS)
# Forms that standard input may have without being looked at first.
_STREAMED = ("lines", "tsv", "csv", *_WORDS)
_LEAST_WORDS = 4        # lines between blank ones, all of as many columns, that may be words
_SQUAD = re.compile(rb'"paragraphs"\s*:\s*\[')
_PIECE = 1024       # examples that are answered together
_PREDICTED = "predicted_"       # begins the names of a table's new columns
# The part of a prediction that a line of `lines` shows: the first that it has.
_HEADLINES = ("label", "labels", "value", "tags", "choice", "answer", "text", "masks")


class Row(typing.NamedTuple):
    """An example of a file: its line, from 1; its text, or a tuple of several; the cells of its
    row, {name or number of a column: value}; what separates the cells, in CSV; and the byte-order
    mark of its file, by which Excel knows UTF-8, or ""."""

    line: int
    texts: str | tuple
    cells: dict
    separator: str = ","
    mark: str = ""


def format_of(path: str, default: str = "lines") -> str:
    """Returns the format of an output that the ending of its name tells, else `default`."""
    return TABLES.get(ending(path), default)


def readable(path: str, form: str | None = None) -> str:
    """Returns the name of a file whose form can be looked at: standard input is kept in one, unless
    its form is given or someone types it."""
    is_streamed = path == STANDARD and (form in _STREAMED or sys.stdin.isatty())
    return path if is_streamed else as_file(path)


def form_of(path: str, saved, text_column: str) -> str:
    """Returns the form of a file to predict, as fine-tuning reads it: "lines", that of a table, or
    for a tagger "words", "conllu" or "annotations"; InputError if it has another form, or can't be
    told. `saved` is the model's `SavedTask`, or None; `text_column` is named by a flag, or ""."""
    if path == STANDARD:
        return "lines"
    if saved and saved.task.kind.format == forms.WORDS:
        is_named = bool(text_column) and not text_column.removeprefix("-").isdecimal()
        if ending(path) == ".csv" or is_named and ending(path) == ".tsv":
            return forms.form_of_table(path)
        form = forms.form_of_words(path)
        if form != forms.WORDS or ending(path) in (*forms.WORD_ENDINGS, ".tsv"):
            return form
        return forms.WORDS if _are_words(path, saved.task.labels) else "lines"
    form = forms.form_of(path)
    if form == "jsonl" and saved and saved.task.kind.name == "span" and _SQUAD.search(
            forms.head(path)):
        raise InputError(f"{shown_name(path)} is in SQuAD's form: answer it with bert-finetune "
                         f"--do_predict --predict_file={path}, or give a row for each question.")
    if name := forms.words_in(path):
        raise InputError(f"{shown_name(path)} is {name}, which is for taggers; give the texts, or "
                         "--input_format=lines to read its lines as texts.")
    return form or _table_of(path, saved) or "lines"


def _are_words(path, labels):
    begins = forms.head(path).decode("utf-8", "replace")
    whole = begins.rpartition("\n")[0] or begins       # the last line may be cut
    lines = [line for line in whole.split("\n") if not line.startswith("#")]
    cells = [SPACES.split(line.strip()) for line in lines if line.strip()]
    (width, count), = collections.Counter(map(len, cells)).most_common(1) or [(0, 0)]
    if len(cells) < 2 or 10 * count < 9 * len(cells):
        return False
    sentences = re.split(r"\n(?:[ \t\r]*\n)+", "\n".join(lines).strip())
    if width == 1 and len(sentences) > 1 or all("\t" in line for line in lines if line.strip()):
        return True
    tags = [row[-1] for row in cells if len(row) == width]
    known = sum(is_tag_of(tag, labels) for tag in tags)
    # All texts, too, may end with one of the labels: a full stop.
    if width > 1 and 10 * known >= 9 * len(tags) and (len({*tags}) > 1 or tags[0].isalnum()):
        return True
    if width == 1 or len(cells) >= _LEAST_WORDS * len(sentences) > _LEAST_WORDS:
        raise InputError(f"{shown_name(path)}: its lines may be words or texts; give "
                         "--input_format=words if each line has a word, or --input_format=lines if "
                         "each is a text.")
    return False


def _table_of(path, saved):
    known = known_columns(saved)
    names = [str(name) for key in ("texts", "choices") for name in known.get(key, ())]
    line = forms.head(path).decode("utf-8", "replace").partition("\n")[0].rstrip("\r")
    if not names or all(name.removeprefix("-").isdecimal() for name in names):
        return ""
    for form, cells in (("tsv", line.split("\t")), ("csv", next(csv.reader([line]), [])),
                        ("csv", next(csv.reader([line], delimiter=";"), []))):
        if all(any(fnmatch.fnmatchcase(cell, name) for cell in cells) for name in names):
            return form
    return ""


def known_columns(saved) -> dict:
    """Returns the columns of a table that a model knows: those of its training file, or of its
    task's official file. {} of a model that knows none."""
    if not saved:
        return {}
    if saved.columns and "format" not in saved.columns:
        return saved.columns
    splits = getattr(TASKS.get(saved.task.name), "splits", {})
    return next((vars(split) for name, split in splits.items()
                 if name.startswith("test") and split.format in TABLES.values()), {})


def read_words(path: str, form: str, saved, text_column: str, omissions: Omissions
               ) -> Iterator[Row]:
    """Yields the sentences of a file for a tagger. The column of the words is the one that a flag
    names, else that of the training file if it had the same form."""
    known = saved.columns if saved.columns.get("format") == form else {}
    default, _ = COLUMNS.get(form, saved.task.kind.default_columns)
    layout = Split((path,), (text_column or next(iter(known.get("texts", ())), default),),
                   format=form)
    if form == forms.ANNOTATIONS:
        for row in annotations.read_rows(path, layout, omissions):
            # The Predictor of a model of annotated texts splits them in the same way.
            is_split = known and row.text is not None
            yield Row(row.line, row.text if is_split else tuple(row.words), row.cells)
        return
    for line, words, _, _ in _WORDS[form](path, layout, omissions):
        yield Row(line, tuple(words), {"words": words})


def text_rows(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """Yields the examples of numbered lines, of one text or of several between " ||| "."""
    for number, line in lines:
        texts = line.split(SEPARATOR)
        yield Row(number, texts[0] if len(texts) == 1 else tuple(texts), {"text": line})


def read_table(path: str, columns: Split, omissions: Omissions) -> Iterator[Row]:
    """Yields the rows of a table; `omissions` decides about lines that cannot be read. InputError
    that names the line if a column is not there, a cell holds no text, or a row has more or fewer
    choices than the first."""
    table, mark = Table(path, columns, omissions), ""
    if path != STANDARD:
        with open_unpacked(path) as file:
            if file.read(3) == codecs.BOM_UTF8:
                mark = "\ufeff"
    flags = ["--text_a_column", *["--text_b_column"] * (len(columns.texts) > 1),
             *["--choice_columns"] * bool(columns.choices)]
    keys, choices = (table.keys(names, f"; name the right ones with {' and '.join(flags)}")
                     for names in (columns.texts, columns.choices))
    names: list[str] = []       # one that comes again gets the number of its column
    for place, name in enumerate(table.names or ()):
        new = name if name not in names else f"{name}_{place}"
        while new in names or new != name and new in table.names:
            new += "_"
        names.append(new)
    for number, row in table:
        cells = row if isinstance(row, dict) else dict(zip(names or map(str, range(len(row))), row))
        try:
            texts = texts_of(row, columns, keys, choices)
        except Malformed as problem:
            omissions.add_malformed(f"{shown_name(path)}, line {number}", str(problem))
            continue
        yield Row(number, texts[0] if len(texts) == 1 else tuple(texts), cells, table.separator,
                  mark)


def answer_rows(rows: Iterable[Row], source: str, output: str,
                answer: Callable[[list, Callable[[int], str]], Iterable],
                writer: Callable[[typing.TextIO], Callable], name: str = "") -> int:
    """Answers rows piece by piece, each row alone where someone types them, and writes the answers;
    returns their number.

    Args:
        source, output: the files of the rows and of the answers, or standard input and output.
        answer: function from texts, and from a function that names a text in errors, to answers.
        writer: function from the open file to the function that writes a row and its answer.
        name: of the source in errors; "": `source`.
    """
    rows, count, name = iter(rows), 0, name or shown_name(source)
    size = 1 if source == STANDARD and sys.stdin.isatty() else _PIECE
    opened: contextlib.AbstractContextManager = write_aside(output, newline="")
    if output == STANDARD:
        opened = contextlib.nullcontext(sys.stdout)
    with opened as file:
        write = writer(file)
        while piece := list(itertools.islice(rows, size)):
            answers = answer([row.texts for row in piece],
                             lambda index, piece=piece: f"{name}, line {piece[index].line}")
            for row, one in zip(piece, answers):
                write(row, one)
            file.flush()
            count += len(piece)
    return count


def writer(form: str, file: typing.TextIO) -> Callable[[Row, dict], None]:
    """Returns the function that writes a prediction in a format: `lines` has its headline, tables
    have it next to the cells of its row, and `jsonl` has it as "prediction" of the object. CSV has
    the separator of its first row."""
    if form == "lines":
        return lambda row, prediction: print(headline(prediction), file=file)
    if form == "jsonl":
        return lambda row, prediction: print(json.dumps(
            _beside(row, {"prediction": prediction}), ensure_ascii=False), file=file)
    return _Cells(form, file)


def _beside(row, predicted):
    if known := [name for name in predicted if name in row.cells]:
        raise InputError(f"line {row.line} of the input has a column {known[0]!r} already; rename "
                         "it, since the output has a column of this name.")
    return {**row.cells, **predicted}


def headline(prediction: dict) -> str:
    """Returns the main value of a prediction, in one line."""
    name = next((name for name in _HEADLINES if name in prediction), next(iter(prediction)))
    value = prediction[name]
    if name == "masks":
        value = [guesses[0]["text"].strip() for guesses in value]
    return re.sub(r"\s+", " ", _cell(value, name))


class _Cells:
    def __init__(self, form, file):
        self._form, self._file = form, file
        self._names, self._has_told = None, False

    def _open(self, separator, begin):
        """Returns the function that writes cells, and quotes all of them if one has a mark. `begin`
        is written first."""
        self._file.write(begin)
        if self._form != "csv":
            return lambda cells, marks: print(
                *(re.sub(r"[\t\r\n]+", " ", cell) for cell in cells), sep="\t", file=self._file)
        plain, quoted = (csv.writer(self._file, delimiter=separator, lineterminator="\n",
                                    quoting=quoting).writerow
                         for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        if separator not in rows.SEPARATORS:
            print(f"sep={separator}", file=self._file)

        def write(cells, marks):
            has_mark = any(mark in cell for cell in cells for mark in marks)
            return (quoted if has_mark else plain)(cells)

        return write

    def __call__(self, row, prediction):
        columns = {}
        for name, value in prediction.items():
            if isinstance(value, dict):     # probabilities_a, probabilities_b
                columns |= {f"{_PREDICTED}{name}_{key}": part for key, part in value.items()}
            else:
                columns[_PREDICTED + name] = value
        cells = {str(name): _cell(value, name) for name, value in _beside(row, columns).items()}
        if self._names is None:
            self._names, self._write = list(cells), self._open(row.separator, row.mark)
            self._write(self._names, rows.SEPARATORS + "\r")     # the names tell the separator
        if not (self._has_told or cells.keys() <= {*self._names}):
            self._has_told = True
            print(f"warning: line {row.line} of the input has "
                  f"{', '.join(cells.keys() - {*self._names})}, which the first line lacks, so the "
                  "table leaves it out; write .jsonl to keep everything", file=sys.stderr)
        # Python before 3.11.9 puts no quotes around a carriage return (its issue 67044).
        self._write([cells.get(name, "") for name in self._names], "\r")


def _cell(value, name):
    """Returns the value of a column in a cell; a list of texts or numbers with blanks between them.
    Labels are as --multi_label reads them: with commas, or a list where a name has one. An object
    is JSON, as in the input."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (list, tuple)):
        return "" if value is None else str(value)
    are_labels = str(name) in ("labels", _PREDICTED + "labels")
    if any(isinstance(part, (list, dict)) or are_labels and "," in str(part) for part in value):
        return json.dumps(value, ensure_ascii=False)
    return ("," if are_labels else " ").join(map(str, value))


def check_files(source: str, output: str, form: str | None) -> None:
    """Raises InputError if --input_file is not there, or if --output_file would replace it while it
    is read. The name of a compressed file, or without --output_format of another form, is refused
    too."""
    if source != STANDARD and not is_folder(source):     # of brat
        check_input(source, "input_file")
    if unpacked_name(output) != output:
        raise InputError(f"--output_file: {output} has the extension of a compressed file, but the "
                         f"output is not compressed; give {unpacked_name(output)}.")
    if ending(output) in (".json", *forms.OTHERS) and not form:
        raise InputError(f"--output_file: the extension of {output} is for another form; give "
                         ".jsonl (a JSON object on each line), .csv, .tsv or .txt, or "
                         "--output_format.")
    if output != STANDARD:
        check_file(output, "output_file")
        if exists(output) and exists(source) and same_file(output, source):
            raise InputError(f"--output_file: {output} is also the input; name another file.")
